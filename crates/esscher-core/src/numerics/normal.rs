//! The standard normal law: density and quantile.

/// γ(g) = exp(−g²/2)/√(2π).
pub fn density(g: f64) -> f64 {
    const INVERSE_ROOT_TAU: f64 = 0.398_942_280_401_432_7;
    INVERSE_ROOT_TAU * (-0.5 * g * g).exp()
}

/// P(N(0,1) ≤ g).
pub fn distribution(g: f64) -> f64 {
    0.5 * libm::erfc(-g * std::f64::consts::FRAC_1_SQRT_2)
}

/// The g with P(N(0,1) ≤ g) = `probability`: −∞ at 0, +∞ at 1, NaN outside of [0, 1].
///
/// A rational starting value (relative error 10⁻⁹, Acklam) and one step of Halley's method,
/// which triples the digits.
///
/// ```
/// use esscher_core::numerics::normal::{distribution, quantile};
/// assert!((distribution(quantile(1e-7)) / 1e-7 - 1.0).abs() < 1e-12);
/// ```
pub fn quantile(probability: f64) -> f64 {
    if probability == 0.0 || probability == 1.0 {
        return if probability == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    // Work in the lower half: there erfc keeps full relative precision.
    if probability > 0.5 {
        return -quantile_of_lower_half(1.0 - probability);
    }
    quantile_of_lower_half(probability)
}

fn quantile_of_lower_half(probability: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 5] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |value, c| value * x + c);
    let start = if probability < 0.02425 {
        let q = (-2.0 * probability.ln()).sqrt();
        horner(&C, q) / horner(&D, q)
    } else {
        let q = probability - 0.5;
        q * horner(&A, q * q) / horner(&B, q * q)
    };
    let step = (distribution(start) - probability) / density(start);
    start - step / (1.0 + 0.5 * start * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Φ is libm's erfc, which shares nothing with the quantile's rational starting value.
    #[test]
    fn quantile_inverts_the_distribution() {
        for exponent in 0..300 {
            let probability = 0.5 * 10f64.powf(-f64::from(exponent) / 20.0);
            assert!((distribution(quantile(probability)) / probability - 1.0).abs() < 1e-13);
            assert!(
                (quantile(1.0 - probability) + quantile(probability)).abs() < 1e-3 || probability < 1e-13
            );
        }
        assert_eq!(quantile(0.5), 0.0);
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!([-0.1, 1.1, f64::NAN].into_iter().all(|outside| quantile(outside).is_nan()));
        // The smallest probability there is, from mpmath.
        assert!((quantile(5e-324) + 38.467_405_617_144_346).abs() < 1e-6, "{}", quantile(5e-324));
    }
}
