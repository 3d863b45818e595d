//! Any row of attention by decays alone: with S_t = Σ_{s≤t} p_s and α_s = S_{s−1}/S_s, (1 − α_s) Π_{s<j≤t} α_j = p_s/S_t (key `chou2024`).
//!
//! Bounded decays that depend on the token reproduce any positive weights exactly, with one channel and the query 1. A fixed
//! decay α needs the keys p_s/α^{t−s} instead, which no bound holds: [`keys_for_fixed_decay`].

use crate::error::{Error, Result};

/// ln 0 for all purposes: e^x = 0 and 1 − e^x = 1 exactly, in f32 and f64. The first token finds nothing to keep.
pub const FORGET_ALL: f64 = -1e4;

/// Log-decays under which one channel with keys 1 − α gives every token t the weights p_s/S_t, s ≤ t.
///
/// ln α_s = −ln(1 + p_s/S_{s−1}), which loses nothing when p_s is small beside the sum; the first is [`FORGET_ALL`].
///
/// ```
/// use esscher_zoo::metala::static_approximation::log_decays_for;
/// let log_decays = log_decays_for(&[0.25, 0.25, 0.5])?;
/// assert!((log_decays[1].exp() - 0.5).abs() < 1e-15 && (log_decays[2].exp() - 0.5).abs() < 1e-15);
/// # Ok::<(), esscher_zoo::Error>(())
/// ```
///
/// # Errors
/// A weight that is not positive and finite.
pub fn log_decays_for(weights: &[f64]) -> Result<Vec<f64>> {
    check(weights)?;
    let mut sum = 0.0;
    Ok(weights
        .iter()
        .map(|weight| {
            let log_decay = if sum == 0.0 { FORGET_ALL } else { -(weight / sum).ln_1p() };
            sum += weight;
            log_decay
        })
        .collect())
}

/// The keys that give the last token the weights p_s when every decay is the same: p_s e^{−(t−s) ln α}.
///
/// # Errors
/// A weight that is not positive and finite, or a log-decay above 0.
pub fn keys_for_fixed_decay(weights: &[f64], log_decay: f64) -> Result<Vec<f64>> {
    check(weights)?;
    if !(log_decay.is_finite() && log_decay <= 0.0) {
        return Err(Error::NotAllowed {
            name: "log_decay",
            index: 0,
            found: log_decay,
            expected: "at most 0, since it is the logarithm of a decay",
        });
    }
    let length = weights.len();
    Ok(weights
        .iter()
        .enumerate()
        .map(|(s, weight)| weight * (-((length - 1 - s) as f64) * log_decay).exp())
        .collect())
}

fn check(weights: &[f64]) -> Result<()> {
    match weights.iter().position(|&weight| !(weight > 0.0 && weight.is_finite())) {
        Some(index) => {
            Err(Error::NotAllowed { name: "weights", index, found: weights[index], expected: "above 0" })
        }
        None => Ok(()),
    }
}
