//! The Bessel functions of the uniform sphere: log ₀F₁ and the ratio I_{d/2}/I_{d/2−1} with its derivative.

use std::f64::consts::TAU;

/// What a sphere of dimension d needs at argument x = r|θ|.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SphereFunctions {
    /// ln[ Γ(d/2) (2/x)^{d/2−1} I_{d/2−1}(x) ], the log-partition of the unit sphere.
    pub(crate) log_partition: f64,
    /// ρ(x) = I_{d/2}(x) / I_{d/2−1}(x), the length of the tilted mean.
    pub(crate) ratio: f64,
    /// ρ(x)/x, the variance of a coordinate across the tilt (1/d at x = 0).
    pub(crate) ratio_over_argument: f64,
    /// ρ′(x) = 1 − ρ² − (d−1)ρ/x, the variance along the tilt.
    pub(crate) ratio_derivative: f64,
    /// x − Λ(x), where Λ is the log-partition: what is left of it at arguments that swallow it.
    log_shortfall: f64,
    /// x − xρ(x).
    mean_shortfall: f64,
}

/// Terms of the large-argument series; at its threshold each term is about a tenth of the last.
const ASYMPTOTIC_TERMS: usize = 16;

/// Up to this argument the convergent sums are used: they need a few times x terms, a tenth of a millisecond.
const SUMMED_UP_TO: f64 = 1e4;

impl SphereFunctions {
    /// Evaluates all of them for d ≥ 1 and a finite x ≥ 0.
    pub(crate) fn new(dimension: usize, x: f64) -> Self {
        let d = dimension as f64;
        // Beyond 60 + 3d²/2 the series in 1/x has converged to the last digit. Below it, an argument beyond
        // 10⁴ comes with an order beyond 40, where the series of Debye has.
        let functions = match x {
            _ if x > 60.0 + 1.5 * d * d => asymptotic(d, x),
            _ if x > SUMMED_UP_TO => uniform(d, x),
            _ => convergent(d, x),
        };
        let ratio_derivative = if dimension == 1 {
            // ρ = tanh: 1/cosh², which underflows to 0 where 1 − tanh² would be rounding noise.
            let decay = (-2.0 * x).exp();
            4.0 * decay / ((1.0 + decay) * (1.0 + decay))
        } else {
            functions.ratio_derivative.max(0.0)
        };
        SphereFunctions { ratio_derivative, ..functions }
    }

    /// xρ(x) − Λ(x), the divergence of the tilted measure from the sphere, at the argument x of these functions.
    pub(crate) fn tilt_divergence(&self, x: f64) -> f64 {
        if self.near_the_pole(x) {
            self.log_shortfall - self.mean_shortfall
        } else {
            x * self.ratio - self.log_partition
        }
    }

    /// Λ(2x) − 2Λ(x), the divergence of order two, with the functions at 2x.
    pub(crate) fn renyi_divergence(&self, x: f64, at_twice: &SphereFunctions) -> f64 {
        if self.near_the_pole(x) {
            2.0 * self.log_shortfall - at_twice.log_shortfall
        } else {
            at_twice.log_partition - 2.0 * self.log_partition
        }
    }

    /// Whether Λ is nearer to x than to 0: then divergences are differences of what is missing.
    fn near_the_pole(&self, x: f64) -> bool {
        self.log_partition > 0.5 * x
    }
}

fn convergent(d: f64, x: f64) -> SphereFunctions {
    // ₀F₁(; d/2; x²/4) − 1: positive terms, rescaled whenever the partial sum grows large. Without the 1, which would swallow
    // them at small x.
    let quarter_square = 0.25 * x * x;
    let (mut term, mut excess, mut log_scale, mut k) = (1.0, 0.0, 0.0, 0.0);
    loop {
        k += 1.0;
        term *= quarter_square / (k * (0.5 * d + k - 1.0));
        excess += term;
        if excess > 1e250 {
            term /= excess;
            log_scale += excess.ln();
            excess = 0.0;
        }
        // The terms fall faster than a geometric series: this one is the error, even relative to the first.
        if term < 1e-17 * (1.0 + excess) {
            break;
        }
    }
    // ρ/x = 1/(d + x²/(d + 2 + x²/(d + 4 + …))), evaluated from the tail upwards.
    let mut denominator = d + 2.0 * (x + 30.0).ceil();
    let (mut tail, mut next_tail) = (denominator, denominator + 2.0);
    while denominator > d {
        denominator -= 2.0;
        (tail, next_tail) = (denominator + x * x / tail, tail);
    }
    let ratio_over_argument = 1.0 / tail;
    let ratio = x * ratio_over_argument;
    // 1 − ρ² − (d−1)ρ/x with 1 = (d + x²/next)/tail put in: in high dimension 1 − (d−1)/d would cancel.
    let bend = (x / tail) * (x / next_tail) * (next_tail - tail);
    let log_partition = log_scale + excess.ln_1p();
    SphereFunctions {
        log_partition,
        log_shortfall: x - log_partition,
        mean_shortfall: x - x * ratio,
        ratio,
        ratio_over_argument,
        ratio_derivative: ratio_over_argument * (1.0 - bend),
    }
}

/// Polynomials of Debye's series that are kept; beyond x = 10⁴ the next one is below 10⁻²⁰.
const DEBYE_TERMS: usize = 5;

/// Debye's series, uniform in x: I_ν(νz) ~ e^{νη} / (√(2πν) (1 + z²)^¼) · Σ Uₖ(p)/νᵏ with p = 1/√(1 + z²) and
/// ν = d/2 − 1 (DLMF 10.41).
///
/// Stirling's series of Γ(d/2) takes out of e^{νη} what would cancel. With V and U the sums for I′ and I,
/// V − U = −(1 − p²) D gives ρ = z (1/(1 + w) − E), w = 1/p, E = pD/U, and ρ′ by differentiating that.
fn uniform(d: f64, x: f64) -> SphereFunctions {
    let order = 0.5 * d - 1.0;
    let z = x / order;
    let w = z.hypot(1.0);
    let (p, excess) = (1.0 / w, z * (z / (1.0 + w)));
    let (mut sum, mut sum_slope, mut difference, mut difference_slope) = (0.0, 0.0, 0.0, 0.0);
    let mut power = 1.0;
    for polynomial in debye_polynomials() {
        let [value, slope, bend] = value_and_derivatives(&polynomial, p);
        sum += power * value;
        sum_slope += power * slope;
        power /= order;
        // D = Σ (pUₖ/2 + p²Uₖ′)/νᵏ⁺¹ and its derivative.
        difference += power * (0.5 * p * value + p * p * slope);
        difference_slope += power * (0.5 * value + 2.5 * p * slope + p * p * bend);
    }
    let correction = p * difference / sum;
    let correction_slope = difference / sum + p * difference_slope / sum - correction * sum_slope / sum;
    let ratio_over_argument = (1.0 / (1.0 + w) - correction) / order;
    let stirling = (1.0 / 12.0 - 1.0 / (360.0 * order * order)) / order;
    let log_partition = order * (excess - (0.5 * excess).ln_1p()) - 0.5 * w.ln() + stirling + sum.ln();
    let ratio = x * ratio_over_argument;
    SphereFunctions {
        log_partition,
        log_shortfall: x - log_partition,
        mean_shortfall: x - x * ratio,
        ratio,
        ratio_over_argument,
        ratio_derivative: (p / (1.0 + w) - correction + p * (1.0 - p * p) * correction_slope) / order,
    }
}

/// Coefficients of a polynomial in p, constant term first.
type Polynomial = [f64; 3 * DEBYE_TERMS];

/// U₀ = 1, Uₖ₊₁(p) = p²(1 − p²)Uₖ′(p)/2 + ∫₀ᵖ (1 − 5t²) Uₖ(t) dt / 8.
fn debye_polynomials() -> [Polynomial; DEBYE_TERMS] {
    let mut polynomials = [[0.0; 3 * DEBYE_TERMS]; DEBYE_TERMS];
    polynomials[0][0] = 1.0;
    for k in 1..DEBYE_TERMS {
        // Uₖ₋₁ has degree 3(k − 1), so every index below stays inside.
        for degree in 0..=3 * (k - 1) {
            let (n, coefficient) = (degree as f64, polynomials[k - 1][degree]);
            polynomials[k][degree + 1] += coefficient * (0.5 * n + 0.125 / (n + 1.0));
            polynomials[k][degree + 3] -= coefficient * (0.5 * n + 0.625 / (n + 3.0));
        }
    }
    polynomials
}

fn value_and_derivatives(polynomial: &Polynomial, p: f64) -> [f64; 3] {
    polynomial.iter().rev().fold([0.0; 3], |[value, slope, bend], coefficient| {
        [value * p + coefficient, slope * p + value, bend * p + 2.0 * slope]
    })
}

/// Series in 1/x. For ρ they follow from the Riccati equation ρ′ = 1 − ρ² − (d−1)ρ/x, for I from Hankel.
fn asymptotic(d: f64, x: f64) -> SphereFunctions {
    let mut coefficients = [0.0; ASYMPTOTIC_TERMS];
    coefficients[0] = 1.0;
    for k in 1..ASYMPTOTIC_TERMS {
        let products: f64 = (1..k).map(|i| coefficients[i] * coefficients[k - i]).sum();
        coefficients[k] = 0.5 * ((k as f64 - d) * coefficients[k - 1] - products);
    }
    // ρ, ρ′ and x − xρ, the series of ρ without its first term and its first power of 1/x.
    let (mut ratio, mut derivative, mut mean_shortfall, mut power) = (1.0, 0.0, 0.0, 1.0);
    for (k, coefficient) in coefficients.iter().enumerate().skip(1) {
        mean_shortfall -= coefficient * power;
        power /= x;
        ratio += coefficient * power;
        derivative -= k as f64 * coefficient * power / x;
    }
    let order = 0.5 * d - 1.0;
    let (mut term, mut hankel) = (1.0, 1.0);
    for k in 1..ASYMPTOTIC_TERMS {
        let odd = 2.0 * k as f64 - 1.0;
        term *= -(4.0 * order * order - odd * odd) / (8.0 * k as f64 * x);
        hankel += term;
    }
    // The powers of x together: in dimension 1 there are none.
    let log_shortfall = 0.5 * (d - 1.0) * x.ln() + 0.5 * TAU.ln()
        - order * std::f64::consts::LN_2
        - libm::lgamma(0.5 * d)
        - hankel.ln();
    SphereFunctions {
        log_partition: x - log_shortfall,
        log_shortfall,
        mean_shortfall,
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
            let slope = 1.0 / x.cosh().powi(2);
            assert!((one.ratio_derivative - slope).abs() <= 1e-13 * slope, "1/cosh² {x}");
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

    /// Against the sums, at their end, and against mpmath's besseli with 50 digits beyond.
    #[test]
    fn debyes_series_agrees_with_the_sums_and_with_high_precision() {
        for dimension in [100, 300, 2000, 20_000, 1_000_000] {
            let (d, x) = (f64::from(dimension), SUMMED_UP_TO);
            let (sums, series) = (convergent(d, x), uniform(d, x));
            assert!((sums.log_partition / series.log_partition - 1.0).abs() < 1e-12, "{dimension}");
            assert!((sums.ratio / series.ratio - 1.0).abs() < 1e-14, "{dimension}");
            let gap = (sums.ratio_derivative - series.ratio_derivative).abs();
            assert!(gap < 10.0 * f64::EPSILON, "{dimension}: {gap:e}");
        }
        for (dimension, x, log_partition, ratio, slope) in [
            (200, 30000.0, 29400.93269957009, 0.9966887783611237, 1.1019254864081518e-07),
            (5000, 20000.0, 13878.68399257929, 0.8828014020524783, 5.474091161752247e-06),
            (100000, 200000.0, 109124.83148620512, 0.7807778407889765, 9.468276194215697e-07),
        ] {
            let found = SphereFunctions::new(dimension, x);
            assert!((found.log_partition / log_partition - 1.0).abs() < 1e-15, "{dimension} {x}: {found:?}");
            assert!((found.ratio / ratio - 1.0).abs() < 1e-15, "{dimension} {x}: {found:?}");
            assert!((found.ratio_derivative / slope - 1.0).abs() < 1e-14, "{dimension} {x}: {found:?}");
        }
    }

    #[test]
    fn no_argument_takes_long_and_no_variance_is_negative() {
        let begun = std::time::Instant::now();
        for dimension in [1, 2, 3, 82, 2001, 100_000, 1 << 40] {
            for exponent in -30..=308 {
                let x = 10f64.powi(exponent);
                let functions = SphereFunctions::new(dimension, x);
                assert!(functions.log_partition.is_finite() && functions.log_partition >= 0.0);
                assert!((0.0..=1.0).contains(&functions.ratio), "{dimension} {x}: {functions:?}");
                assert!(functions.ratio_derivative >= 0.0 && functions.ratio_over_argument >= 0.0);
            }
        }
        for tenth in 0..2000 {
            assert!(SphereFunctions::new(1, 0.1 * f64::from(tenth)).ratio_derivative >= 0.0);
        }
        assert!(begun.elapsed().as_secs_f64() < 2.0, "{:?}", begun.elapsed());
    }
}
