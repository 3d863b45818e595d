//! Replacements on arrays: the outputs of candidates on a whole text, what readers are like, and what a state takes.

use super::context::{Queries, dimension, frame, readers};
use crate::arrays::Singles;
use crate::prelude::*;
use crate::watch::left_behind;
use esscher_audit::answer::answers;
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::head::Order;
use esscher_audit::readers::Readers;

export!(fn audit_replace, audit_calibrate, audit_state_tokens);

/// The outputs of the heads that share keys and values with a candidate in place of attention, in the shape of the queries.
#[pyfunction]
fn audit_replace(py: Python<'_>, asked: Asked<'_>) -> PyResult<Array<f32>> {
    let candidate = asked.text("candidate")?.parse::<Candidate>().or_raise()?;
    let order = asked.choice("order", &Order::ALL.map(|one| (one.name(), one)))?;
    let running = asked.choice("running", &Running::ALL.map(|one| (one.name(), one)))?;
    let frame = frame(&asked)?;
    if order == Order::Whole && frame.window > 0 {
        return Err(PyValueError::new_err(format!(
            "window is {}: expected 0 where every token sees all, since there are no last ones",
            frame.window
        )));
    }
    let queries = Queries::read(&asked)?;
    let read = |what| Singles::finite(what, &asked.get(what)?);
    let (keys, values) = (read("keys")?, read("values")?);
    for tokens in [&keys, &values] {
        tokens.expect_shape(&[queries.tokens, queries.dimension])?;
    }
    let given = asked.given("readers")?.map(|given| readers(&given, queries.dimension)).transpose()?;
    let shape = queries.shape.clone();
    // Copies, so that a long text may be left behind on Ctrl-C.
    let (keys, values) = (keys.entries().to_vec(), values.entries().to_vec());
    let outputs = left_behind(py, None, move |_| {
        let heads = queries.heads(order, &keys, &values);
        let readers = match given {
            Some(readers) => readers,
            None => Readers::from_heads(std::slice::from_ref(&heads))?,
        };
        answers(candidate, &frame, running, &heads, &readers)
    })?
    .or_raise()?
    .concat();
    if outputs.iter().any(|output| !output.is_finite()) {
        return Err(PyValueError::new_err(
            "queries, keys and values: the scores are too large for single precision; check the scale",
        ));
    }
    Ok(Array::new(outputs, shape))
}

/// The readers of one key-value head, from the queries of the heads that share it and its values: mean tilt, covariance
/// of tilts and median norm of values.
#[pyfunction]
fn audit_calibrate(py: Python<'_>, asked: Asked<'_>) -> PyResult<(Array<f32>, Array<f32>, f32)> {
    let queries = Queries::read(&asked)?;
    let values = Singles::finite("values", &asked.get("values")?)?;
    values.expect_shape(&[queries.tokens, queries.dimension])?;
    let (dimension, values) = (queries.dimension, values.entries().to_vec());
    let found = left_behind(py, None, move |_| {
        // Readers do not look at keys: the values stand in for them.
        Readers::from_heads(&[queries.heads(Order::Causal, &values, &values)])
    })?
    .or_raise()?;
    let numbers = found.pooled.mean.iter().chain(&found.pooled.covariance).chain([&found.median_value_norm]);
    if numbers.into_iter().any(|number| !number.is_finite()) {
        return Err(PyValueError::new_err(
            "queries and values: their squares are too large for single precision; check the scale",
        ));
    }
    let covariance = Array::new(found.pooled.covariance, [dimension; 2]);
    Ok((found.pooled.mean.into(), covariance, found.median_value_norm))
}

/// What the state of a candidate takes at most, in tokens of 2d numbers.
#[pyfunction]
fn audit_state_tokens(asked: Asked<'_>) -> PyResult<f64> {
    let candidate = asked.text("candidate")?.parse::<Candidate>().or_raise()?;
    let dimension = dimension("dimension", asked.count("dimension", 0)? as usize)?;
    Ok(frame(&asked)?.tokens() as f64 + candidate.middle_tokens(dimension))
}
