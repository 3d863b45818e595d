//! The Bessel functions of the uniform sphere: log ₀F₁ and the ratio I_{d/2}/I_{d/2−1} with its derivative.

use std::f64::consts::TAU;

/// What a sphere of dimension d needs at argument x = r|θ|.
#[derive(Debug, Clone, Copy)]
pub struct SphereFunctions {
    /// ln[ Γ(d/2) (2/x)^{d/2−1} I_{d/2−1}(x) ], the log-partition of the unit sphere.
    pub log_partition: f64,
    /// ρ(x) = I_{d/2}(x) / I_{d/2−1}(x), the length of the tilted mean.
    pub ratio: f64,
    /// ρ(x)/x, the variance of a coordinate across the tilt (1/d at x = 0).
    pub ratio_over_argument: f64,
    /// ρ′(x) = 1 − ρ² − (d−1)ρ/x, the variance along the tilt.
    pub ratio_derivative: f64,
}

/// Terms of the large-argument series; at its threshold each term is about a tenth of the last.
const ASYMPTOTIC_TERMS: usize = 16;

impl SphereFunctions {
    /// Evaluates all of them for d ≥ 1 and a finite x ≥ 0.
    pub fn new(dimension: usize, x: f64) -> Self {
        let d = dimension as f64;
        // Beyond this the asymptotic series has converged to the last digit; below it, the sums
        // converge in at most a few times x terms.
        if x > 60.0 + 1.5 * d * d { asymptotic(d, x) } else { convergent(d, x) }
    }
}

fn convergent(d: f64, x: f64) -> SphereFunctions {
    // ₀F₁(; d/2; x²/4): positive terms, rescaled whenever the partial sum grows large.
    let quarter_square = 0.25 * x * x;
    let (mut term, mut total, mut log_scale, mut k) = (1.0, 1.0, 0.0, 0.0);
    loop {
        k += 1.0;
        term *= quarter_square / (k * (0.5 * d + k - 1.0));
        total += term;
        if total > 1e250 {
            term /= total;
            log_scale += total.ln();
            total = 1.0;
        }
        if term < 1e-17 * total {
            break;
        }
    }
    // ρ/x = 1/(d + x²/(d + 2 + x²/(d + 4 + …))), evaluated from the tail upwards.
    let mut denominator = d + 2.0 * (x + 30.0).ceil();
    let mut tail = denominator;
    while denominator > d {
        denominator -= 2.0;
        tail = denominator + x * x / tail;
    }
    let ratio_over_argument = 1.0 / tail;
    let ratio = x * ratio_over_argument;
    SphereFunctions {
        log_partition: log_scale + total.ln(),
        ratio,
        ratio_over_argument,
        ratio_derivative: 1.0 - ratio * ratio - (d - 1.0) * ratio_over_argument,
    }
}

/// Series in 1/x. For ρ they follow from the Riccati equation ρ′ = 1 − ρ² − (d−1)ρ/x, for I from Hankel.
fn asymptotic(d: f64, x: f64) -> SphereFunctions {
    let mut coefficients = [0.0; ASYMPTOTIC_TERMS];
    coefficients[0] = 1.0;
    for k in 1..ASYMPTOTIC_TERMS {
        let products: f64 = (1..k).map(|i| coefficients[i] * coefficients[k - i]).sum();
        coefficients[k] = 0.5 * ((k as f64 - d) * coefficients[k - 1] - products);
    }
    let (mut ratio, mut derivative, mut power) = (0.0, 0.0, 1.0);
    for (k, coefficient) in coefficients.iter().enumerate() {
        ratio += coefficient * power;
        power /= x;
        derivative -= k as f64 * coefficient * power;
    }
    let order = 0.5 * d - 1.0;
    let (mut term, mut hankel) = (1.0, 1.0);
    for k in 1..ASYMPTOTIC_TERMS {
        let odd = 2.0 * k as f64 - 1.0;
        term *= -(4.0 * order * order - odd * odd) / (8.0 * k as f64 * x);
        hankel += term;
    }
    SphereFunctions {
        log_partition: libm::lgamma(0.5 * d) + order * (2.0 / x).ln() + x - 0.5 * (TAU * x).ln()
            + hankel.ln(),
        ratio,
        ratio_over_argument: ratio / x,
        ratio_derivative: derivative,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In dimension 1 the sphere is {−1, 1}: log cosh, tanh; in dimension 3: log(sinh x / x), coth x − 1/x.
    #[test]
    fn dimensions_one_and_three_are_elementary() {
        for x in [1e-8f64, 0.3, 2.0, 11.0, 59.0, 61.0, 97.0, 300.0] {
            let one = SphereFunctions::new(1, x);
            let log_cosh = x + (-2.0 * x).exp().ln_1p() - 2f64.ln();
            assert!((one.log_partition - log_cosh).abs() < 1e-14 * (1.0 + x), "log cosh {x}");
            assert!((one.ratio - x.tanh()).abs() < 1e-14, "tanh {x}");
            let three = SphereFunctions::new(3, x);
            if x > 0.1 {
                let log_sinhc = x + (-(-2.0 * x).exp_m1()).ln() - (2.0 * x).ln();
                assert!((three.log_partition - log_sinhc).abs() < 1e-13 * (1.0 + x), "log sinhc {x}");
                assert!((three.ratio - (1.0 / x.tanh() - 1.0 / x)).abs() < 1e-14, "Langevin {x}");
                let langevin_slope = 1.0 / (x * x) - 1.0 / x.sinh().powi(2);
                assert!((three.ratio_derivative / langevin_slope - 1.0).abs() < 1e-10, "slope {x}");
            }
        }
    }

    /// The two regimes must agree where they meet, in every dimension.
    #[test]
    fn both_expansions_agree_at_the_threshold() {
        for dimension in [1, 2, 5, 16, 64] {
            let d = dimension as f64;
            let x = 60.0 + 1.5 * d * d;
            let (low, high) = (convergent(d, x), asymptotic(d, x));
            assert!((low.log_partition / high.log_partition - 1.0).abs() < 1e-13, "{dimension}");
            assert!((low.ratio / high.ratio - 1.0).abs() < 1e-14, "{dimension}");
            // The plain formula has the rounding of its terms of order one; the series does not.
            let gap = (low.ratio_derivative - high.ratio_derivative).abs();
            assert!(gap < 10.0 * f64::EPSILON, "{dimension}: {gap:e}");
        }
    }
}
