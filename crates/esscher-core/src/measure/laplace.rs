//! Laplace tokens, density ∝ exp(−|x|/b) in each coordinate: Λ is infinite outside the box |θᵢ| < 1/b.

use super::coordinates::{Coordinates, LineLaw, measure_with_independent_coordinates};
use crate::error::{Error, Figure, Result};
use crate::numerics::{Stream, check};

/// Independent Laplace coordinates of scale b; Λ(θ) = −Σ ln(1 − b²θᵢ²) inside the box.
///
/// Tails heavier than Gaussian: attention is defined for tilts inside the box only, and asking outside
/// is an error that names the violated bound.
///
/// ```
/// use esscher_core::measure::{Laplace, Measure};
/// let tokens = Laplace::new(2, 0.5)?;
/// assert!(tokens.log_partition(&[1.9, 0.0]).is_ok());
/// let error = tokens.log_partition(&[0.0, 2.5]).unwrap_err();
/// assert!(error.to_string().contains("|θ[1]| < 2"));
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Laplace(Coordinates<TwoSidedExponential>);

impl Laplace {
    /// Laplace coordinates of this scale in dimension d ≥ 1; the variance of a coordinate is 2b².
    pub fn new(dimension: usize, scale: f64) -> Result<Self> {
        check::positive("the scale of a Laplace law", scale)?;
        Ok(Laplace(Coordinates::new(dimension, TwoSidedExponential { scale })?))
    }
}

measure_with_independent_coordinates!(Laplace);

#[derive(Debug, Clone)]
struct TwoSidedExponential {
    scale: f64,
}

impl LineLaw for TwoSidedExponential {
    fn family(&self) -> &'static str {
        "Laplace measure"
    }

    fn size(&self) -> f64 {
        self.scale
    }

    fn check_domain(&self, index: usize, tilt: f64) -> Result<()> {
        if (self.scale * tilt).abs() < 1.0 {
            return Ok(());
        }
        Err(Error::OutsideDomain {
            family: self.family(),
            bound: format!("|θ[{index}]| < {}", Figure(1.0 / self.scale)),
            found: format!("θ[{index}] = {}", Figure(tilt)),
        })
    }

    fn log_partition(&self, tilt: f64) -> f64 {
        let x = self.scale * tilt;
        // ln(1 − x²): of the square it keeps its digits when x is small, as a sum when |x| is close to 1.
        if x.abs() < 0.5 { -(-x * x).ln_1p() } else { -(x.ln_1p() + (-x).ln_1p()) }
    }

    fn tilted_mean(&self, tilt: f64) -> f64 {
        let x = self.scale * tilt;
        2.0 * self.scale * x / ((1.0 - x) * (1.0 + x))
    }

    fn tilted_variance(&self, tilt: f64) -> f64 {
        let x = self.scale * tilt;
        let gap = (1.0 - x) * (1.0 + x);
        2.0 * self.scale * self.scale * (1.0 + x * x) / (gap * gap)
    }

    fn sample_tilted(&self, tilt: f64, stream: &mut Stream) -> f64 {
        // Tilted, the right side has mean b/(1 − x), the left b/(1 + x), and mass in that proportion.
        let x = self.scale * tilt;
        let size = self.scale * stream.exponential();
        if stream.uniform() < 0.5 * (1.0 + x) { size / (1.0 - x) } else { -size / (1.0 + x) }
    }
}
