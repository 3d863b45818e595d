//! What candidates are given beside queries, keys and values: what is kept exactly, and what is known of readers in advance.

use crate::arrays::Singles;
use crate::prelude::*;
use esscher_audit::candidate::Frame;
use esscher_audit::head::{Head, LARGEST_DIMENSION, Order};
use esscher_audit::readers::{Readers, Tilts};
use esscher_audit::replacement::Atoms;

/// What is kept exactly: the first tokens, light ones, and the window; as usual where nothing is said.
pub(super) fn frame(asked: &Asked<'_>) -> PyResult<Frame> {
    let Frame { atoms, window } = Frame::default();
    let tokens = |what, usual| {
        let given = asked.maybe(what, |asked, what| asked.count(what, 0))?;
        PyResult::Ok(given.map_or(usual, |count| count as usize))
    };
    let light = asked.maybe("light", Asked::real)?.unwrap_or(f64::from(atoms.light));
    if !(light >= 0.0 && light.is_finite()) {
        let message = format!("light is {light}: expected a share of the median norm of values, from 0 on");
        return Err(PyValueError::new_err(message));
    }
    let (first, most_light) = (tokens("first", atoms.first)?, tokens("most_light", atoms.most_light)?);
    Ok(Frame { atoms: Atoms { first, light: light as f32, most_light }, window: tokens("window", window)? })
}

/// What Python's `Readers` say of those who read keys of this dimension.
pub(super) fn readers(value: &Any<'_>, dimension: usize) -> PyResult<Readers> {
    let part = |name| {
        value.getattr(name).map_err(|_| numbers::wrong_type("readers", "what calibrate returns", value))
    };
    let mean = Singles::finite("mean_tilt", &part("mean_tilt")?)?;
    mean.expect_shape(&[dimension])?;
    let covariance = Singles::finite("tilt_covariance", &part("tilt_covariance")?)?;
    covariance.expect_shape(&[dimension, dimension])?;
    let norm = numbers::real("median_value_norm", &part("median_value_norm")?)?;
    if !(norm >= 0.0 && norm.is_finite()) {
        let message = format!("median_value_norm is {norm}: expected a norm, from 0 on");
        return Err(PyValueError::new_err(message));
    }
    Ok(Readers {
        pooled: Tilts { mean: mean.entries().to_vec(), covariance: covariance.entries().to_vec() },
        heads: Vec::new(),
        median_value_norm: norm as f32,
    })
}

/// What scores are multiplied with: 1/√d unless given.
pub(super) fn scale(asked: &Asked<'_>, dimension: usize) -> PyResult<f32> {
    let given = asked.maybe("scale", Asked::real)?;
    let Some(scale) = given else { return Ok((1.0 / (dimension as f64).sqrt()) as f32) };
    if scale > 0.0 && (scale as f32).is_finite() && scale as f32 > 0.0 {
        return Ok(scale as f32);
    }
    Err(PyValueError::new_err(format!("scale is {scale}: expected a number above 0")))
}

/// Numbers per key, value and query.
pub(super) fn dimension(what: &str, found: usize) -> PyResult<usize> {
    if (1..=LARGEST_DIMENSION).contains(&found) {
        return Ok(found);
    }
    Err(PyValueError::new_err(format!(
        "{what} is {found}: expected from 1 to {LARGEST_DIMENSION} numbers per key"
    )))
}

/// The query heads that share keys and values: tilts of each, heads × tokens × dimension.
pub(super) struct Queries {
    pub(super) tokens: usize,
    pub(super) dimension: usize,
    /// As they came in.
    pub(super) shape: Vec<usize>,
    tilts: Vec<f32>,
}

impl Queries {
    /// Reads (tokens, d) or (heads, tokens, d).
    pub(super) fn read(asked: &Asked<'_>) -> PyResult<Self> {
        let queries = Singles::finite("queries", &asked.get("queries")?)?;
        let (heads, tokens, width) = match *queries.shape() {
            [tokens, width] => (1, tokens, width),
            [heads, tokens, width] => (heads, tokens, width),
            _ => return Err(queries.shape_error("(tokens, d) or (heads, tokens, d)")),
        };
        let dimension = dimension("the last axis of queries", width)?;
        if heads == 0 || tokens == 0 {
            return Err(queries.shape_error("at least one head and one token"));
        }
        let scale = scale(asked, dimension)?;
        let tilts: Vec<f32> = queries.entries().iter().map(|entry| entry * scale).collect();
        if tilts.iter().any(|tilt| !tilt.is_finite()) {
            let message =
                format!("scale is {scale}: some queries times it are too large for single precision");
            return Err(PyValueError::new_err(message));
        }
        Ok(Queries { tokens, dimension, shape: queries.shape().to_vec(), tilts })
    }

    /// The heads, which share these keys and values.
    pub(super) fn heads<'a>(&'a self, order: Order, keys: &'a [f32], values: &'a [f32]) -> Vec<Head<'a>> {
        self.tilts
            .chunks_exact(self.tokens * self.dimension)
            .map(|tilts| Head { order, dimension: self.dimension, tilts, keys, values })
            .collect()
    }
}
