//! Replacements on arrays: the outputs of candidates on a whole text, what readers are like, and what a state takes.

use super::context::{PyFrame, PyReaders, Queries, dimension, frame, readers};
use crate::arrays::Singles;
use crate::failure::{OrRaise, choice};
use crate::numbers;
use crate::threads;
use esscher_audit::answer::answers;
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::head::Order;
use esscher_audit::readers::Readers;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const ORDERS: [(&str, Order); 2] = [("causal", Order::Causal), ("whole", Order::Whole)];
const RUNNINGS: [(&str, Running); 2] = [("offline", Running::Offline), ("streaming", Running::Streaming)];

/// The outputs of the heads that share keys and values with a candidate in place of attention, in the shape of the queries.
#[pyfunction]
#[pyo3(signature = (queries, keys, values, candidate, *, scale, order, running, frame, readers))]
pub(crate) fn audit_replace<'py>(
    py: Python<'py>,
    queries: &Bound<'py, PyAny>,
    keys: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    candidate: &str,
    scale: Option<&Bound<'py, PyAny>>,
    order: &str,
    running: &str,
    frame: PyFrame<'py>,
    readers: Option<PyReaders<'py>>,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let candidate = candidate.parse::<Candidate>().or_raise()?;
    let order = choice("order", order, &ORDERS)?;
    let running = choice("running", running, &RUNNINGS)?;
    let frame = self::frame(&frame)?;
    if order == Order::Whole && frame.window > 0 {
        let window = frame.window;
        let message = format!(
            "window is {window}: expected 0 where every token sees all, since there are no last ones"
        );
        return Err(PyValueError::new_err(message));
    }
    let queries = Queries::read(queries, scale)?;
    let (keys, values) = (Singles::read("keys", keys)?, Singles::read("values", values)?);
    for tokens in [&keys, &values] {
        tokens.expect_shape(&[queries.tokens, queries.dimension])?;
    }
    let given = readers.map(|given| self::readers(&given, queries.dimension)).transpose()?;
    let heads = queries.heads(order, keys.entries(), values.entries());
    let outputs = threads::detached(py, || {
        let readers = match given {
            Some(readers) => readers,
            None => Readers::from_heads(std::slice::from_ref(&heads))?,
        };
        answers(candidate, &frame, running, &heads, &readers)
    })
    .or_raise()?
    .concat();
    if outputs.iter().any(|output| !output.is_finite()) {
        return Err(PyValueError::new_err(
            "queries, keys and values: the scores are too large for single precision; check the scale",
        ));
    }
    PyArray1::from_vec(py, outputs).reshape(queries.shape)
}

/// Mean tilt, covariance of tilts and median norm of values.
type Calibrated<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArrayDyn<f32>>, f32);

/// The readers of one key-value head, from the queries of the heads that share it and its values.
#[pyfunction]
#[pyo3(signature = (queries, values, *, scale))]
pub(crate) fn audit_calibrate<'py>(
    py: Python<'py>,
    queries: &Bound<'py, PyAny>,
    values: &Bound<'py, PyAny>,
    scale: Option<&Bound<'py, PyAny>>,
) -> PyResult<Calibrated<'py>> {
    let queries = Queries::read(queries, scale)?;
    let values = Singles::read("values", values)?;
    values.expect_shape(&[queries.tokens, queries.dimension])?;
    // Readers do not look at keys: the values stand in for them.
    let heads = queries.heads(Order::Causal, values.entries(), values.entries());
    let found = threads::detached(py, || Readers::from_heads(&[heads])).or_raise()?;
    let d = queries.dimension;
    let covariance = PyArray1::from_vec(py, found.pooled.covariance).reshape(vec![d, d])?;
    Ok((PyArray1::from_vec(py, found.pooled.mean), covariance, found.median_value_norm))
}

/// What the state of a candidate takes at most, in tokens of 2d numbers.
#[pyfunction]
pub(crate) fn audit_state_tokens(
    candidate: &str,
    dimension: &Bound<'_, PyAny>,
    frame: PyFrame<'_>,
) -> PyResult<f64> {
    let candidate = candidate.parse::<Candidate>().or_raise()?;
    let dimension = self::dimension(
        "dimension",
        numbers::whole("dimension", dimension, 0..=u64::from(u32::MAX))? as usize,
    )?;
    Ok(self::frame(&frame)?.tokens() as f64 + candidate.middle_tokens(dimension))
}
