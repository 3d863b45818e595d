//! A cache of constant memory that reads tokens one after the other.

use super::context::{PyFrame, PyReaders, dimension, frame, readers, scale};
use crate::arrays::Singles;
use crate::failure::OrRaise;
use crate::numbers;
use crate::threads;
use esscher_audit::candidate::Candidate;
use esscher_audit::eviction::Eviction;
use esscher_audit::head::Order;
use esscher_audit::replacement::{Middle, Replacement, StreamingCache};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The context of one key-value head, shared by the query heads that read it.
#[pyclass(name = "AuditCache", module = "esscher._native")]
pub(crate) struct PyStreamingCache {
    cache: StreamingCache,
    dimension: usize,
    scale: f32,
}

#[pymethods]
impl PyStreamingCache {
    #[new]
    #[pyo3(signature = (candidate, dimension, readers, *, scale, frame))]
    fn new(
        candidate: &str,
        dimension: &Bound<'_, PyAny>,
        readers: PyReaders<'_>,
        scale: Option<&Bound<'_, PyAny>>,
        frame: PyFrame<'_>,
    ) -> PyResult<Self> {
        let whole = numbers::whole("dimension", dimension, 0..=u64::from(u32::MAX))? as usize;
        let dimension = self::dimension("dimension", whole)?;
        let frame = self::frame(&frame)?;
        let replacement = match candidate.parse::<Candidate>().or_raise()? {
            Candidate::Exact => frame.replacement(0, Middle::Exact),
            Candidate::Measure { top, middle } => frame.replacement(top, middle),
            Candidate::Kept { policy, budget } => {
                of_eviction(&Eviction::beside(policy, &frame.atoms, frame.window, budget))?
            }
        };
        let readers = self::readers(&readers, dimension)?;
        let cache = StreamingCache::new(&replacement, &readers, dimension);
        Ok(PyStreamingCache { cache, dimension, scale: self::scale(scale, dimension)? })
    }

    /// Takes in the next token, or several: rows (d,) or (tokens, d).
    fn absorb(&mut self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (Singles::read("key", key)?, Singles::read("value", value)?);
        self.check_rows(&key, "(d,) or (tokens, d)")?;
        value.expect_shape(key.shape())?;
        let (d, keys, values, cache) = (self.dimension, key.entries(), value.entries(), &mut self.cache);
        threads::detached(py, || {
            let mut rows = keys.chunks_exact(d).zip(values.chunks_exact(d));
            rows.try_for_each(|(key, value)| cache.absorb(key, value))
        })
        .or_raise()
    }

    /// The outputs for one query (d,) or several (queries, d), over all that was absorbed.
    fn read<'py>(&self, py: Python<'py>, query: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let query = Singles::read("query", query)?;
        self.check_rows(&query, "(d,) or (queries, d)")?;
        let tilts: Vec<f32> = query.entries().iter().map(|entry| entry * self.scale).collect();
        let mut outputs = vec![0.0; tilts.len()];
        threads::detached(py, || self.cache.read(&tilts, &mut outputs)).or_raise()?;
        if outputs.iter().any(|output| !output.is_finite()) {
            return Err(PyValueError::new_err(
                "query: its scores are too large for single precision; check the scale",
            ));
        }
        PyArray1::from_vec(py, outputs).reshape(query.shape().to_vec())
    }

    #[getter]
    fn tokens_seen(&self) -> usize {
        self.cache.tokens_seen()
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.cache.bytes()
    }

    fn copy(&self) -> Self {
        PyStreamingCache { cache: self.cache.clone(), dimension: self.dimension, scale: self.scale }
    }
}

impl PyStreamingCache {
    fn check_rows(&self, rows: &Singles<'_>, expected: &str) -> PyResult<()> {
        match *rows.shape() {
            [width] | [_, width] if width == self.dimension => Ok(()),
            _ => Err(rows.shape_error(&format!("{expected} with d = {}", self.dimension))),
        }
    }
}

/// Evictions that are replacements too; the others need to see who reads.
fn of_eviction(eviction: &Eviction) -> PyResult<Replacement> {
    eviction.as_replacement(Order::Causal).ok_or_else(|| {
        PyValueError::new_err(format!(
            "there is no cache of {} that reads token by token: ask `replace` for its outputs on a whole text",
            eviction.policy
        ))
    })
}
