//! Static approximation: can a decaying memory give one row of weights p? With dynamic decay always, with a fixed decay and bounded keys not.
//!
//! Dynamic decay, one state, k = 1 − α: with P_s = Σ_{r≤s} p_r and α_s = P_{s−1}/P_s the weights Π_{j>s} α_j (1 − α_s) are p exactly (key `chou2024`).
//! Fixed decay: the weights are q k_s α^{t−s}; to be p, keys must grow like p_s α^{s−t}. With |q k_s| ≤ bound, the best is the clipped row.

use super::rows::Rows;
use crate::error::{Error, Result};

/// Errors of the two approximations of rows, in Euclidean norm relative to the norm of the row.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticApproximation {
    /// The largest error over rows of dynamic decay.
    pub dynamic_error: f64,
    /// The largest error over rows of the best bounded keys at each fixed decay.
    pub fixed_errors: Vec<(f64, f64)>,
}

/// Approximates every row of nonnegative weights by both devices; `bound` is the largest |q k_s| allowed to fixed decays.
///
/// # Errors
/// A negative weight, a row without weight, or a decay outside of (0, 1].
pub fn static_approximation(rows: &Rows, decays: &[f64], bound: f64) -> Result<StaticApproximation> {
    if let Some(&decay) = decays.iter().find(|&&decay| !(decay > 0.0 && decay <= 1.0)) {
        return Err(Error::Option {
            name: "decays",
            expected: "numbers in (0, 1]".to_string(),
            found: decay.to_string(),
        });
    }
    let mut result = StaticApproximation {
        dynamic_error: 0.0,
        fixed_errors: decays.iter().map(|&decay| (decay, 0.0)).collect(),
    };
    for index in 0..rows.count() {
        let visible = if rows.count() == rows.tokens { rows.visible(index) } else { 0..rows.tokens };
        let row = &rows.row(index)[visible];
        if row.iter().any(|&weight| weight < 0.0) || row.iter().sum::<f64>() <= 0.0 {
            return Err(Error::Missing {
                mechanism: "this row of attention".to_string(),
                what: "static approximation",
                reason: "its weights must be nonnegative and not all zero",
            });
        }
        result.dynamic_error = result.dynamic_error.max(error(row, &dynamic(row)));
        for (decay, largest) in &mut result.fixed_errors {
            *largest = largest.max(error(row, &fixed(row, *decay, bound)));
        }
    }
    Ok(result)
}

/// Weights that the recurrence h ← α_s h + (1 − α_s) v_s gives with α_s = P_{s−1}/P_s, times Σ p.
fn dynamic(row: &[f64]) -> Vec<f64> {
    let mut weights = vec![0.0; row.len()];
    let mut before = 0.0;
    for (s, &weight) in row.iter().enumerate() {
        let after = before + weight;
        let decay = if after > 0.0 { before / after } else { 0.0 };
        weights[..s].iter_mut().for_each(|kept| *kept *= decay);
        weights[s] = 1.0 - decay;
        before = after;
    }
    // Nothing has been written before the first weight, so these are a law; the read-out restores the sum.
    weights.iter().map(|weight| weight * before).collect()
}

/// min(p_s, bound α^{t−s}): the closest that bounded keys get.
fn fixed(row: &[f64], decay: f64, bound: f64) -> Vec<f64> {
    let last = row.len() - 1;
    row.iter().enumerate().map(|(s, weight)| weight.min(bound * decay.powi((last - s) as i32))).collect()
}

fn error(row: &[f64], approximation: &[f64]) -> f64 {
    let squared: f64 = row.iter().zip(approximation).map(|(a, b)| (a - b) * (a - b)).sum();
    (squared / row.iter().map(|a| a * a).sum::<f64>()).sqrt()
}
