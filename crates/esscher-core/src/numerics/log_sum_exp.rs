//! log Σ exp and softmax that no score size can overflow.

/// log Σₖ exp(scoreₖ), computed relative to the largest score.
///
/// The sum over nothing is zero, so the empty slice gives −∞.
///
/// ```
/// use esscher_core::numerics::log_sum_exp;
/// assert_eq!(log_sum_exp(&[1e4, 1e4]), 1e4 + 2f64.ln());
/// ```
pub fn log_sum_exp(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + scores.iter().map(|score| (score - largest).exp()).sum::<f64>().ln()
}

/// pₖ = exp(scoreₖ) / Σⱼ exp(scoreⱼ), together with log Σⱼ exp(scoreⱼ).
///
/// ```
/// use esscher_core::numerics::softmax;
/// let (probabilities, _) = softmax(&[-1e4, 1e4]);
/// assert_eq!(probabilities, [0.0, 1.0]);
/// ```
pub fn softmax(scores: &[f64]) -> (Vec<f64>, f64) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut probabilities: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = probabilities.iter().sum();
    for probability in &mut probabilities {
        *probability /= total;
    }
    (probabilities, largest + total.ln())
}
