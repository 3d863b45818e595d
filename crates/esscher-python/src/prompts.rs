//! Finite prompts of a law at given queries: exact deviations, and the constants they approach.

use crate::arrays::{self, Reals};
use crate::failure::{OrRaise, room_for};
use crate::heads::softmax_from;
use crate::measures::{gaussian_from, measure_from};
use crate::threads;
use crate::watch::watched;
use esscher_core::attention::Attention;
use esscher_core::prompt::{self, Deviation, FinitePrompt, Sweep};
use esscher_core::{Accuracy, Error, MatRef};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Exact deviations of finite prompts at each query and length: arrays by name, queries first.
#[pyfunction]
pub(crate) fn finite_prompt<'py>(
    py: Python<'py>,
    head: &Bound<'_, PyAny>,
    tokens: &Bound<'_, PyAny>,
    queries: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let head = &softmax_from(head)?;
    let (law, exceptions) = measure_from("tokens", tokens)?;
    let queries = Reals::read("queries", queries)?;
    let rows = match *queries.shape() {
        [size] => MatRef::from_row_major_slice(queries.entries(), 1, size),
        _ => queries.matrix()?,
    };
    let lengths = arrays::lengths(lengths)?;
    if lengths.is_empty() {
        return Err(Error::Empty { what: "the list of lengths" }).or_raise();
    }
    let shape = [rows.nrows(), lengths.len()];
    let cells = [shape[0], shape[1], head.output_dimension()];
    let mut bias = room_for("the biases", &cells)?;
    // The library holds as much while it computes.
    drop(room_for("the covariances, twice,", &[2, cells[0], cells[1], cells[2], cells[2]])?);
    let found = watched(py, progress, |watch| {
        FinitePrompt::exact(head, law.as_ref())?.at_queries(rows, &lengths, watch)
    })?;
    let Sweep { deviations, .. } = exceptions.or_raise(found)?;
    let mut covariance = room_for("the covariances", &[cells[0], cells[1], cells[2], cells[2]])?;
    for deviation in deviations.iter().flatten() {
        bias.extend(&deviation.bias);
        arrays::append_rows(deviation.covariance.as_ref(), &mut covariance);
    }
    let numbers = PyDict::new(py);
    let column = |name: &str, number: fn(&Deviation) -> f64| -> PyResult<()> {
        let entries = deviations.iter().flatten().map(number).collect();
        numbers.set_item(name, arrays::array(py, entries, &shape)?)
    };
    column("output_error", |deviation| deviation.output_error)?;
    column("score_gradient_error", |deviation| deviation.score_gradient_error)?;
    column("value_gradient_error", |deviation| deviation.value_gradient_error)?;
    column("participation", |deviation| deviation.participation)?;
    column("tolerance", |deviation| match deviation.accuracy {
        Accuracy::Exact { tolerance } => tolerance,
        // The exact theory gives nothing else.
        Accuracy::QuasiMonteCarlo { .. } | Accuracy::Sampled { .. } => f64::NAN,
    })?;
    numbers.set_item("bias", arrays::array(py, bias, &cells)?)?;
    let shape = [cells[0], cells[1], cells[2], cells[2]];
    numbers.set_item("covariance", arrays::array(py, covariance, &shape)?)?;
    numbers.set_item("lengths", lengths.iter().map(|length| length.get()).collect::<Vec<_>>())?;
    Ok(numbers)
}

/// The constants of bias, covariance and mean squared error, each times L as L grows.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn delta_method<'py>(
    py: Python<'py>,
    head: &Bound<'_, PyAny>,
    tokens: &Bound<'_, PyAny>,
    query: &Bound<'_, PyAny>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArrayDyn<f64>>, f64)> {
    let head = &softmax_from(head)?;
    let (law, exceptions) = measure_from("tokens", tokens)?;
    let query = arrays::owned_vector("query", query)?;
    let found = threads::detached(py, || prompt::delta_method(head, law.as_ref(), &query));
    let found = exceptions.or_raise(found)?;
    let covariance = arrays::matrix(py, found.covariance.as_ref())?;
    Ok((arrays::vector(py, found.bias), covariance, found.output_error))
}

/// The constant of the error of the gradient in U, for Gaussian tokens.
#[pyfunction]
pub(crate) fn gaussian_gradient_constant(
    py: Python<'_>,
    head: &Bound<'_, PyAny>,
    tokens: &Bound<'_, PyAny>,
    query: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let head = &softmax_from(head)?;
    let tokens = gaussian_from("tokens", tokens)?;
    let query = arrays::owned_vector("query", query)?;
    threads::detached(py, || prompt::gaussian_gradient_constant(head, &tokens, &query)).or_raise()
}
