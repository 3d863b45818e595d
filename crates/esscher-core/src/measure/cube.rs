//! Uniform cube [−1, 1]ᵈ: Λ(θ) = Σ ln(sinh θᵢ / θᵢ).

use super::coordinates::{Coordinates, LineLaw, measure_with_independent_coordinates};
use crate::error::Result;
use crate::numerics::Stream;

/// Independent coordinates, uniform on [−1, 1]; the tilted mean is coth θᵢ − 1/θᵢ.
///
/// ```
/// use esscher_core::measure::{Cube, Measure};
/// let slope = Cube::new(1)?.tilted_mean(&[1e-6])?[0] / 1e-6;
/// assert!((slope - 1.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cube(Coordinates<Interval>);

impl Cube {
    /// The cube [−1, 1]ᵈ, d ≥ 1.
    pub fn new(dimension: usize) -> Result<Self> {
        Ok(Cube(Coordinates::new(dimension, Interval)?))
    }
}

measure_with_independent_coordinates!(Cube);

#[derive(Debug, Clone)]
struct Interval;

/// Below this |θ| the closed forms cancel (just above it, to 2 · 10⁻¹⁵ relatively) and Taylor series are exact
/// to the last digit: the first omitted term of the variance, of order θ²², is below 5 · 10⁻¹⁷ of it.
const SERIES_BELOW: f64 = 0.5;

/// Coefficients of θ², θ⁴, … in ln(sinh θ/θ) = Σ 2^{2n} B_{2n} θ^{2n} / (2n (2n)!).
const LOG_SINHC: [f64; 11] = [
    1.0 / 6.0,
    -1.0 / 180.0,
    1.0 / 2835.0,
    -1.0 / 37800.0,
    1.0 / 467_775.0,
    -691.0 / 3_831_077_250.0,
    2.0 / 127_702_575.0,
    -3617.0 / 2_605_132_530_000.0,
    43867.0 / 350_813_659_321_125.0,
    -174_611.0 / 15_313_294_652_906_250.0,
    155_366.0 / 147_926_426_347_074_375.0,
];

impl LineLaw for Interval {
    fn family(&self) -> &'static str {
        "uniform cube"
    }

    fn check_domain(&self, _index: usize, _tilt: f64) -> Result<()> {
        Ok(())
    }

    fn log_partition(&self, tilt: f64) -> f64 {
        let size = tilt.abs();
        if size < SERIES_BELOW {
            series(tilt * tilt, |_| 1.0) * tilt * tilt
        } else {
            size + (-(-2.0 * size).exp_m1()).ln() - (2.0 * size).ln()
        }
    }

    fn tilted_mean(&self, tilt: f64) -> f64 {
        if tilt.abs() < SERIES_BELOW {
            series(tilt * tilt, |n| 2.0 * n) * tilt
        } else {
            1.0 / tilt.tanh() - 1.0 / tilt
        }
    }

    fn tilted_variance(&self, tilt: f64) -> f64 {
        if tilt.abs() < SERIES_BELOW {
            series(tilt * tilt, |n| 2.0 * n * (2.0 * n - 1.0))
        } else {
            // 1/θ² − 1/sinh²θ.
            let decay = (-2.0 * tilt.abs()).exp();
            1.0 / (tilt * tilt) - 4.0 * decay / ((1.0 - decay) * (1.0 - decay))
        }
    }

    fn tilt_divergence(&self, tilt: f64) -> f64 {
        let size = tilt.abs();
        if size < SERIES_BELOW {
            tilt * self.tilted_mean(tilt) - self.log_partition(tilt)
        } else {
            // With q = e^{−2|θ|}: |θ| coth |θ| = |θ| + 2|θ|q/(1 − q), and the |θ| of both terms is left out.
            let decay = (-2.0 * size).exp();
            2.0 * size * decay / (1.0 - decay) - 1.0 - (-decay).ln_1p() + std::f64::consts::LN_2 + size.ln()
        }
    }

    fn renyi_divergence(&self, tilt: f64) -> f64 {
        // sinh 2θ = 2 sinh θ cosh θ makes it ln(θ coth θ), and θ coth θ = 1 + θ∇Λ(θ).
        (tilt * self.tilted_mean(tilt)).ln_1p()
    }

    fn sample_tilted(&self, tilt: f64, stream: &mut Stream) -> f64 {
        // Inverse distribution of the density ∝ e^{θx}, from the heavy end so that nothing overflows.
        let size = tilt.abs();
        let uniform = stream.uniform();
        let distance_from_end =
            if size < 1e-8 { 2.0 * uniform } else { -(uniform * (-2.0 * size).exp_m1()).ln_1p() / size };
        (1.0 - distance_from_end) * tilt.signum()
    }

    fn largest_variance(&self) -> Option<f64> {
        Some(1.0 / 3.0)
    }
}

/// Σₙ cₙ factor(n) θ^{2n−2}.
fn series(square: f64, factor: impl Fn(f64) -> f64) -> f64 {
    LOG_SINHC.iter().enumerate().rev().fold(0.0, |value, (k, c)| value * square + c * factor(k as f64 + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ln(sinh θ/θ), coth θ − 1/θ and 1/θ² − 1/sinh²θ by mpmath with 60 digits. The last digit below the end of the
    /// series, what the closed forms lose to cancellation above it.
    #[test]
    fn both_forms_have_the_digits_they_claim() {
        for (tilt, log_partition, mean, variance) in [
            (0.001, 1.6666666111111146e-07, 0.0003333333111111132, 0.33333326666667723),
            (0.1, 0.0016661114635804608, 0.033311132253989614, 0.332667723388165),
            (0.3, 0.014955255419671121, 0.09940509698840826, 0.3274179801033368),
            (0.4999, 0.04130846085808264, 0.16392168286814401, 0.3173117868340892),
            (0.5, 0.041324854612918106, 0.16395341373865285, 0.3173056231688307),
            (0.7, 0.08037280945585984, 0.2260502072312008, 0.30304356886444306),
            (2.0, 0.5952201920542228, 0.537314720727548, 0.1739781701619289),
            (20.0, 16.311120545886062, 0.95, 0.002499999999999983),
        ] {
            let allowed = if tilt < SERIES_BELOW { 4.0 * f64::EPSILON } else { 5e-15 };
            for (found, expected) in [
                (Interval.log_partition(tilt), log_partition),
                (Interval.tilted_mean(tilt), mean),
                (Interval.tilted_variance(tilt), variance),
                (-Interval.tilted_mean(-tilt), mean),
            ] {
                assert!((found / expected - 1.0).abs() < allowed, "{tilt}: {found} {expected}");
            }
        }
    }
}
