//! Finite prompts of a law at given queries: exact deviations, and the constants they approach.

use crate::heads::softmax_from;
use crate::measures::{gaussian_from, measure_from};
use crate::prelude::*;
use crate::watch::{UNKNOWN, Watch, by_size};
use esscher_core::attention::Attention;
use esscher_core::prompt::{self, Deviation, FinitePrompt};
use esscher_core::{Error, MatRef};

export!(fn finite_prompt, delta_method, gaussian_gradient_constant);

/// Exact deviations of finite prompts at each query and length: arrays by name, queries first.
#[pyfunction]
fn finite_prompt<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let head = &softmax_from(&asked.get("head")?)?;
    let (law, exceptions) = measure_from("tokens", &asked.get("tokens")?)?;
    let queries = asked.reals("queries")?;
    let rows = match *queries.shape() {
        [size] => MatRef::from_row_major_slice(queries.entries(), 1, size),
        _ => queries.matrix()?,
    };
    let lengths = asked.lengths()?;
    if lengths.is_empty() {
        return Err(Error::Empty { what: "the list of lengths" }).or_raise();
    }
    let (count, each, size) = (rows.nrows(), lengths.len(), head.output_dimension());
    let mut bias = room_for("the biases", &[count, each, size])?;
    // The library holds as much while it computes.
    drop(room_for("the covariances, twice,", &[2, count, each, size, size])?);
    let work = |watch: &Watch| FinitePrompt::exact(head, law.as_ref())?.at_queries(rows, &lengths, watch);
    let deviations = exceptions.watched(&asked, work)?.deviations;
    let mut covariance = room_for("the covariances", &[count, each, size, size])?;
    for deviation in deviations.iter().flatten() {
        bias.extend(&deviation.bias);
        arrays::append_rows(deviation.covariance.as_ref(), &mut covariance);
    }
    let column = |number: fn(&Deviation) -> f64| {
        Array::new(deviations.iter().flatten().map(number).collect(), [count, each])
    };
    Ok(dictionary!(py,
        output_error: column(|deviation| deviation.errors.output),
        score_gradient_error: column(|deviation| deviation.errors.score_gradient),
        value_gradient_error: column(|deviation| deviation.errors.value_gradient),
        participation: column(|deviation| deviation.participation),
        tolerance: column(|deviation| deviation.tolerance),
        bias: Array::new(bias, [count, each, size]),
        covariance: Array::new(covariance, [count, each, size, size]),
        lengths: lengths.iter().map(|length| length.get()).collect::<Vec<_>>()))
}

/// The constants of bias, covariance and mean squared error, each times L as L grows.
#[pyfunction]
fn delta_method(py: Python<'_>, asked: Asked<'_>) -> PyResult<(Array, Array, f64)> {
    let head = softmax_from(&asked.get("head")?)?;
    let (law, exceptions) = measure_from("tokens", &asked.get("tokens")?)?;
    let query = asked.vector("query")?;
    let work = move || prompt::delta_method(&head, law.as_ref(), &query);
    let found = exceptions.after(exceptions.by_size(py, UNKNOWN, work))?;
    Ok((found.bias.into(), found.covariance.into(), found.output_error))
}

/// The constant of the error of the gradient in U, for Gaussian tokens.
#[pyfunction]
fn gaussian_gradient_constant(py: Python<'_>, asked: Asked<'_>) -> PyResult<f64> {
    let head = softmax_from(&asked.get("head")?)?;
    let (tokens, query) = (gaussian_from("tokens", &asked.get("tokens")?)?, asked.vector("query")?);
    let numbers = head.token_dimension().saturating_pow(2);
    by_size(py, numbers, move || prompt::gaussian_gradient_constant(&head, &tokens, &query))?.or_raise()
}
