//! log Σ exp and softmax that no score size can overflow.

/// log Σₖ exp(scoreₖ), computed relative to the largest score.
///
/// The sum over nothing is zero, so the empty slice gives −∞. A score of +∞ gives +∞, a score that is NaN
/// gives NaN.
///
/// ```
/// use esscher_core::numerics::log_sum_exp;
/// assert_eq!(log_sum_exp(&[1e4, 1e4]), 1e4 + 2f64.ln());
/// ```
pub fn log_sum_exp(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return if scores.iter().any(|score| score.is_nan()) { f64::NAN } else { largest };
    }
    // A NaN, which `max` passes over, comes back in the sum.
    largest + scores.iter().map(|score| (score - largest).exp()).sum::<f64>().ln()
}

/// pₖ = exp(scoreₖ) / Σⱼ exp(scoreⱼ), together with log Σⱼ exp(scoreⱼ).
///
/// Scores of +∞ share the probability equally. Where there is no softmax, because a score is NaN or because
/// all are −∞, every probability is NaN; the logarithm is that of [`log_sum_exp`].
///
/// ```
/// use esscher_core::numerics::softmax;
/// let (probabilities, _) = softmax(&[-1e4, 1e4]);
/// assert_eq!(probabilities, [0.0, 1.0]);
/// ```
pub fn softmax(scores: &[f64]) -> (Vec<f64>, f64) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        let log_total = log_sum_exp(scores);
        let shares = scores.iter().filter(|&&score| score == f64::INFINITY).count() as f64;
        let share = |score: &f64| if *score == f64::INFINITY { 1.0 / shares } else { 0.0 };
        let probability = |score: &f64| if log_total == f64::INFINITY { share(score) } else { f64::NAN };
        return (scores.iter().map(probability).collect(), log_total);
    }
    let mut probabilities: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = probabilities.iter().sum();
    for probability in &mut probabilities {
        *probability /= total;
    }
    (probabilities, largest + total.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_scores_win_and_nan_stays_nan() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY, f64::NEG_INFINITY]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY, 2.0]), 2.0);
        assert_eq!(log_sum_exp(&[0.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(softmax(&[f64::INFINITY, 0.0, f64::INFINITY]), (vec![0.5, 0.0, 0.5], f64::INFINITY));
        assert_eq!(softmax(&[f64::NEG_INFINITY, 2.0]), (vec![0.0, 1.0], 2.0));
        assert_eq!(softmax(&[]), (vec![], f64::NEG_INFINITY));
        for scores in [
            [f64::NAN, 0.0],
            [0.0, f64::NAN],
            [f64::NAN, f64::NAN],
            [f64::NAN, f64::INFINITY],
            [f64::NAN, f64::NEG_INFINITY],
        ] {
            let (probabilities, log_total) = softmax(&scores);
            assert!(log_sum_exp(&scores).is_nan() && log_total.is_nan());
            assert!(probabilities.iter().all(|probability| probability.is_nan()), "{scores:?}");
        }
        let (probabilities, log_total) = softmax(&[f64::NEG_INFINITY]);
        assert!(probabilities[0].is_nan() && log_total == f64::NEG_INFINITY);
    }
}
