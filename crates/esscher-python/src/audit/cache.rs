//! A cache of constant memory that reads tokens one after the other.

use super::context::{dimension, frame, readers, scale};
use crate::alone::Alone;
use crate::arrays::Singles;
use crate::prelude::*;
use crate::watch::one_by_one;
use esscher_audit::candidate::Candidate;
use esscher_audit::eviction::Eviction;
use esscher_audit::head::Order;
use esscher_audit::replacement::{Middle, StreamingCache};

export!(class PyStreamingCache);

/// The context of one key-value head in constant memory, shared by the query heads that read it.
///
/// Token by token it gives the outputs of `replace(..., running="streaming")` in causal order; the other arguments are
/// those of `replace`. The candidate is a measure, "exact", "sink-window/N" or "cluster-means/N".
///
/// >>> import numpy as np
/// >>> from esscher import audit
/// >>> random = np.random.default_rng(0)
/// >>> queries, keys, values = random.standard_normal((3, 300, 8))
/// >>> readers = audit.calibrate(queries, values)
/// >>> cache, steps = audit.StreamingCache("tilted-gaussian", 8, readers), []
/// >>> for query, key, value in zip(queries, keys, values):
/// ...     cache.absorb(key, value)
/// ...     steps.append(cache.read(query))
/// >>> whole = audit.replace(queries, keys, values, "tilted-gaussian", running="streaming", readers=readers)
/// >>> bool(np.allclose(whole, steps, atol=1e-5)), cache.tokens_seen
/// (True, 300)
#[pyclass(name = "StreamingCache", module = "esscher.audit", frozen)]
pub(crate) struct PyStreamingCache {
    cache: Alone<StreamingCache>,
    candidate: String,
    dimension: usize,
    scale: f32,
}

/// Queries that are read between two looks for signals at least: enough that the cache is not read for each of them.
const QUERIES_AT_ONCE: usize = 64;

getters! { PyStreamingCache, own:
    /// Tokens taken in so far.
    tokens_seen: usize = own.cache.used()?.tokens_seen();
    /// Memory that the context takes; what belongs to the readers is not counted, since all contexts share it.
    bytes: usize = own.cache.used()?.bytes();
}

#[pymethods]
impl PyStreamingCache {
    #[new]
    #[pyo3(signature = (candidate, dimension, readers, *, scale = None, window = None, first = None, light = None,
                        most_light = None),
           text_signature = "(candidate, dimension, readers, *, scale=None, window=64, first=4, light=0.4, most_light=16)")]
    #[allow(clippy::too_many_arguments)]
    fn new<'py>(
        py: Python<'py>,
        candidate: &Any<'py>,
        dimension: &Any<'py>,
        readers: &Any<'py>,
        scale: Option<&Any<'py>>,
        window: Option<&Any<'py>>,
        first: Option<&Any<'py>>,
        light: Option<&Any<'py>>,
        most_light: Option<&Any<'py>>,
    ) -> PyResult<Self> {
        let asked = Asked::from(dictionary!(py, candidate: candidate, dimension: dimension, scale: scale,
            window: window, first: first, light: light, most_light: most_light));
        let candidate = asked.text("candidate")?;
        let dimension = self::dimension("dimension", asked.count("dimension", 0)? as usize)?;
        let frame = frame(&asked)?;
        let replacement = match candidate.parse::<Candidate>().or_raise()? {
            Candidate::Exact => frame.replacement(0, Middle::Exact),
            Candidate::Measure { top, middle } => frame.replacement(top, middle),
            Candidate::Kept { policy, budget } => {
                let eviction = Eviction::beside(policy, &frame.atoms, frame.window, budget);
                eviction.as_replacement(Order::Causal).ok_or_else(|| {
                    let policy = eviction.policy;
                    PyValueError::new_err(format!(
                        "there is no cache of {policy} that reads token by token: ask `replace` for its outputs \
                         on a whole text"
                    ))
                })?
            }
        };
        let readers = self::readers(readers, dimension)?;
        let cache = Alone::new("cache", StreamingCache::new(&replacement, &readers, dimension));
        Ok(PyStreamingCache { cache, candidate, dimension, scale: self::scale(&asked, dimension)? })
    }

    /// Takes in the next token, rows (d,), or several, (tokens, d).
    ///
    /// A call that Ctrl-C interrupts has taken in the tokens before that, and `tokens_seen` counts them.
    fn absorb(&self, py: Python<'_>, key: &Any<'_>, value: &Any<'_>) -> PyResult<()> {
        let (key, value) = (Singles::finite("key", key)?, Singles::finite("value", value)?);
        self.check_rows(&key, "(d,) or (tokens, d)")?;
        value.expect_shape(key.shape())?;
        let rows =
            key.entries().chunks_exact(self.dimension).zip(value.entries().chunks_exact(self.dimension));
        let cache = &mut *self.cache.used()?;
        one_by_one(py, rows, |(key, value)| cache.absorb(key, value))?.or_raise()
    }

    /// The output for a query (d,), or for several (queries, d), over all that was taken in; zeros if nothing.
    fn read(&self, py: Python<'_>, query: &Any<'_>) -> PyResult<Array<f32>> {
        let query = Singles::finite("query", query)?;
        self.check_rows(&query, "(d,) or (queries, d)")?;
        let tilts: Vec<f32> = query.entries().iter().map(|entry| entry * self.scale).collect();
        let mut outputs = vec![0.0; tilts.len()];
        let size = QUERIES_AT_ONCE * self.dimension;
        let some = tilts.chunks(size).zip(outputs.chunks_mut(size));
        let cache = &*self.cache.used()?;
        one_by_one(py, some, |(tilts, outputs)| cache.read(tilts, outputs))?.or_raise()?;
        if outputs.iter().any(|output| !output.is_finite()) {
            return Err(PyValueError::new_err(
                "query: its scores are too large for single precision; check the scale",
            ));
        }
        Ok(Array::new(outputs, query.shape()))
    }

    /// A cache of its own that has taken in the same.
    fn copy(&self) -> PyResult<Self> {
        let cache = Alone::new("cache", self.cache.used()?.clone());
        Ok(PyStreamingCache { cache, candidate: self.candidate.clone(), ..*self })
    }

    fn __copy__(&self) -> PyResult<Self> {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Any<'_>) -> PyResult<Self> {
        self.copy()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a StreamingCache cannot be pickled: pickle its readers, make it again from them, and let it absorb the \
             tokens again",
        ))
    }

    fn __repr__(&self) -> PyResult<String> {
        let (candidate, tokens, bytes) = (&self.candidate, self.tokens_seen()?, self.bytes()?);
        Ok(format!("<esscher.audit.StreamingCache {candidate}, {tokens} tokens in {bytes} bytes>"))
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
