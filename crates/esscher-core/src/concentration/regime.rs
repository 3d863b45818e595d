//! The regime of a query at a length: diluted, intermediate or frozen, by τ²/ln L against 2/3 and 2.

use crate::error::{Error, Result};
use crate::prompt::{PromptLength, critical_score_deviation};

/// How the softmax over L tokens with scores of standard deviation τ shares its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Regime {
    /// τ² ≤ ⅔ ln L: very many tokens share the weight, and the mean squared error is about e^{τ²}/L.
    Diluted,
    /// ⅔ ln L < τ² < 2 ln L: the output still converges, but its error is made by rare large scores and
    /// falls more slowly than e^{τ²}/L.
    Intermediate,
    /// τ² ≥ 2 ln L: the few largest scores take the weight, as in the random energy model below its
    /// critical temperature; the typical output is clipped at (√(2 ln L)/τ) times the limit.
    Frozen,
}

/// The regime of a query whose scores have standard deviation τ, τ² = θᵀGθ, at length L.
///
/// At L = 1 only τ = 0, where the single token is no worse than its share, counts as diluted; every other
/// query is frozen on the one token there is.
///
/// # Errors
/// A negative or non-finite τ.
///
/// ```
/// use esscher_core::concentration::{Regime, regime};
/// use esscher_core::prompt::PromptLength;
/// let length = PromptLength::new(1000)?; // ln L is about 6.9
/// assert_eq!(regime(1.0, length)?, Regime::Diluted);
/// assert_eq!(regime(3.0, length)?, Regime::Intermediate);
/// assert_eq!(regime(4.0, length)?, Regime::Frozen);
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn regime(score_deviation: f64, length: PromptLength) -> Result<Regime> {
    check_deviation(score_deviation)?;
    // Deviations are compared, not their squares, which could underflow or overflow. The order of the two
    // questions decides L = 1, where both thresholds are 0.
    let critical = critical_score_deviation(length);
    Ok(if score_deviation <= critical / 3f64.sqrt() {
        Regime::Diluted
    } else if score_deviation < critical {
        Regime::Intermediate
    } else {
        Regime::Frozen
    })
}

/// Heuristic: the k for which the mean squared error of a typical query is L^{−k}, up to factors that grow more
/// slowly than any power of L.
///
/// With t = τ²/ln L: k = 1 − t for t ≤ ⅔, (1/√t − √t/2)²/2 for ⅔ ≤ t ≤ 2, 0 beyond; continuous, with
/// continuous slope at ⅔. It comes from the large deviations of the largest score and is not proved; exact
/// values approach it as slowly as 1/ln L.
///
/// # Errors
/// A negative or non-finite τ.
pub fn typical_error_exponent(score_deviation: f64, length: PromptLength) -> Result<f64> {
    let regime = regime(score_deviation, length)?;
    // 1/√t; infinite for τ = 0, and 0/0 only at L = 1, where that query is diluted and t is 0.
    let inverse_root = length.as_f64().ln().sqrt() / score_deviation;
    Ok(match regime {
        Regime::Diluted if score_deviation == 0.0 => 1.0,
        Regime::Diluted => 1.0 - 1.0 / (inverse_root * inverse_root),
        Regime::Intermediate => 0.5 * (inverse_root - 0.5 / inverse_root).powi(2),
        Regime::Frozen => 0.0,
    })
}

fn check_deviation(score_deviation: f64) -> Result<()> {
    if score_deviation >= 0.0 && score_deviation.is_finite() {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "the score deviation τ",
        value: score_deviation,
        expected: "a finite number from 0 up",
    })
}
