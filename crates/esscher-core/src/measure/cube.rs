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

/// Below this |θ| the closed forms cancel (they lose ε/θ² to ε/θ⁴) and Taylor series are exact to the
/// last digit: the first omitted term, of order θ¹⁸, is below 10⁻¹⁶.
const SERIES_BELOW: f64 = 0.5;

/// Coefficients of θ², θ⁴, … in ln(sinh θ/θ) = Σ 2^{2n} B_{2n} θ^{2n} / (2n (2n)!).
const LOG_SINHC: [f64; 9] = [
    1.0 / 6.0,
    -1.0 / 180.0,
    1.0 / 2835.0,
    -1.0 / 37800.0,
    1.0 / 467_775.0,
    -691.0 / 3_831_077_250.0,
    2.0 / 127_702_575.0,
    -3617.0 / 2_605_132_530_000.0,
    43867.0 / 350_813_659_321_125.0,
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
