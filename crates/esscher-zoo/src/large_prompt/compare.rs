//! Mechanisms side by side: limit, distance to softmax's, error at finite lengths and its fitted rate.

use super::{AtLength, Draws, Fate, LargePrompt, Limit, Setting, Trials, finite};
use crate::error::{Error, Result};
use esscher_core::Monitor;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::concentration::RateFit;
use faer::Mat;

/// A mechanism with its name.
#[derive(Debug, Clone, Copy)]
pub struct Contender<'a> {
    /// The name, as tables print it.
    pub name: &'a str,
    /// The mechanism.
    pub mechanism: &'a dyn LargePrompt,
}

/// What one mechanism does with large prompts.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The name.
    pub name: String,
    /// What becomes of its output.
    pub fate: Fate,
    /// Where it goes.
    pub limit: Limit,
    /// |limit − softmax's limit|; none where widths differ.
    pub distance_to_softmax: Option<f64>,
    /// Mean, variance and E |reading − limit|² at every length.
    pub lengths: Vec<AtLength>,
    /// κ of E |reading − limit|² ≈ c L^{−κ}; none where no line can be fitted (a single length, or an error of zero).
    pub rate: Option<RateFit>,
}

/// V∇Λ(s Kᵀq), s = 1/√d_k: what softmax attention reads from an infinite prompt (key `boursier2025`).
///
/// # Errors
/// A query that is not constant, keys or values that are no projections, or a tilt outside of the token law's domain.
pub fn softmax_limit(setting: &Setting) -> Result<Limit> {
    let missing = |port: &str| Error::Missing {
        mechanism: format!("the port {port}"),
        what: "limit under softmax attention in closed form",
        reason: "the query must be constant, the key and the value projections of the token",
    };
    let query = setting.constant("query").ok_or_else(|| missing("query"))?;
    let key = setting.projection("key").ok_or_else(|| missing("key"))?;
    let value = setting.projection("value").ok_or_else(|| missing("value"))?;
    let scale = 1.0 / (key.nrows() as f64).sqrt();
    let score = Mat::from_fn(key.ncols(), key.nrows(), |i, j| scale * key[(j, i)]);
    Ok(Limit::closed(Softmax::new(score.as_ref(), value)?.attend(setting.tokens.as_ref(), query)?))
}

/// A row per mechanism, all in the same setting and on the same prompts; nothing if the monitor asked to stop.
///
/// # Errors
/// The first mechanism that the setting does not fit.
pub fn compare(
    contenders: &[Contender<'_>],
    setting: &Setting,
    trials: &Trials,
    draws: &Draws,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<Comparison>>> {
    // Not every law has softmax's limit (the log-partition may be infinite); the others are compared all the same.
    let softmax = softmax_limit(setting).ok();
    contenders
        .iter()
        .map(|Contender { name, mechanism }| {
            let fate = mechanism.fate();
            let limit = mechanism.limit(setting, draws)?;
            let (reading, value) = (fate.reading(), Some(limit.value.as_slice()));
            let Some(found) = finite(*mechanism, setting, trials, reading, value, monitor)? else {
                return Ok(None);
            };
            Ok(Some(Comparison {
                name: (*name).to_string(),
                fate,
                distance_to_softmax: softmax.as_ref().and_then(|softmax| limit.distance(softmax)),
                rate: found.rate().ok(),
                lengths: found.lengths,
                limit,
            }))
        })
        .collect()
}
