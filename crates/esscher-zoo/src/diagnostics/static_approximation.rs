//! Static approximation: can a decaying memory give one row of weights p? With dynamic decay always, with a fixed decay and bounded keys not.
//!
//! Dynamic decay, one state, k = 1 − α: with P_s = Σ_{r≤s} p_r and α_s = P_{s−1}/P_s the weights Π_{j>s} α_j (1 − α_s) are p exactly (key `chou2024`).
//! Fixed decay: the weights are q k_s α^{t−s}; to be p, keys must grow like p_s α^{s−t}. With |q k_s| ≤ bound, the best is the clipped row.

use super::rows::Rows;
use crate::error::{Error, Result};
use crate::metala::static_approximation::{keys_for_fixed_decay, log_decays_for};

/// Errors of the two approximations of rows, in Euclidean norm relative to the norm of the row.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticApproximation {
    /// The largest error over rows of dynamic decay.
    pub dynamic_error: f64,
    /// The largest error over rows of the best bounded keys at each fixed decay.
    pub fixed_errors: Vec<(f64, f64)>,
}

/// Approximates every row of positive weights by both devices; `bound` is the largest |q k_s| allowed to fixed decays.
///
/// # Errors
/// A visible weight that is not positive, or a decay outside of (0, 1].
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
        result.dynamic_error = result.dynamic_error.max(error(row, &dynamic(row)?));
        for (decay, largest) in &mut result.fixed_errors {
            *largest = largest.max(error(row, &fixed(row, *decay, bound)?));
        }
    }
    Ok(result)
}

/// Weights that the recurrence h ← α_s h + (1 − α_s) v_s gives to the last token, times Σ p.
fn dynamic(row: &[f64]) -> Result<Vec<f64>> {
    let mut weights = vec![0.0; row.len()];
    for (s, log_decay) in log_decays_for(row)?.iter().enumerate() {
        weights[..s].iter_mut().for_each(|kept| *kept *= log_decay.exp());
        weights[s] = -log_decay.exp_m1();
    }
    // They are a law; the read-out restores the sum.
    let sum: f64 = row.iter().sum();
    Ok(weights.iter().map(|weight| weight * sum).collect())
}

/// The weights of the keys that would be needed, cut at the bound: the closest that bounded keys get.
fn fixed(row: &[f64], decay: f64, bound: f64) -> Result<Vec<f64>> {
    let keys = keys_for_fixed_decay(row, decay.ln())?;
    let kept = |(s, key): (usize, &f64)| key.min(bound) * (decay.ln() * (row.len() - 1 - s) as f64).exp();
    Ok(keys.iter().enumerate().map(kept).collect())
}

fn error(row: &[f64], approximation: &[f64]) -> f64 {
    let squared: f64 = row.iter().zip(approximation).map(|(a, b)| (a - b) * (a - b)).sum();
    (squared / row.iter().map(|a| a * a).sum::<f64>()).sqrt()
}
