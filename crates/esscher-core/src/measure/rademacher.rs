//! Rademacher tokens, each coordinate ±1: Λ(θ) = Σ ln cosh θᵢ, the negative control of the Gaussian lemma.

use super::coordinates::{Coordinates, LineLaw, measure_with_independent_coordinates};
use crate::error::Result;
use crate::numerics::Stream;

/// Independent fair signs; the tilted mean is tanh θᵢ, so attention saturates instead of being linear.
///
/// ```
/// use esscher_core::measure::{Measure, Rademacher};
/// assert_eq!(Rademacher::new(1)?.tilted_mean(&[2.0])?, [2f64.tanh()]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rademacher(Coordinates<Sign>);

impl Rademacher {
    /// Signs in dimension d ≥ 1.
    pub fn new(dimension: usize) -> Result<Self> {
        Ok(Rademacher(Coordinates::new(dimension, Sign)?))
    }
}

measure_with_independent_coordinates!(Rademacher);

#[derive(Debug, Clone)]
struct Sign;

impl LineLaw for Sign {
    fn family(&self) -> &'static str {
        "Rademacher measure"
    }

    fn check_domain(&self, _index: usize, _tilt: f64) -> Result<()> {
        Ok(())
    }

    fn log_partition(&self, tilt: f64) -> f64 {
        // ln cosh θ = |θ| + ln(1 + e^{−2|θ|}) − ln 2; near 0 the first two terms cancel, so use
        // cosh θ − 1 = 2 sinh²(θ/2) there.
        let size = tilt.abs();
        if size < 1.0 {
            let half_sine = (0.5 * size).sinh();
            (2.0 * half_sine * half_sine).ln_1p()
        } else {
            size + (-2.0 * size).exp().ln_1p() - std::f64::consts::LN_2
        }
    }

    fn tilted_mean(&self, tilt: f64) -> f64 {
        tilt.tanh()
    }

    fn tilted_variance(&self, tilt: f64) -> f64 {
        // 1/cosh², which underflows to 0 where 1 − tanh² would be rounding noise.
        let decay = (-2.0 * tilt.abs()).exp();
        4.0 * decay / ((1.0 + decay) * (1.0 + decay))
    }

    fn tilt_divergence(&self, tilt: f64) -> f64 {
        let size = tilt.abs();
        if size < 1.0 {
            tilt * self.tilted_mean(tilt) - self.log_partition(tilt)
        } else {
            // With q = e^{−2|θ|}: |θ| tanh |θ| = |θ| − 2|θ|q/(1 + q), and the |θ| of both terms is left out.
            let decay = (-2.0 * size).exp();
            std::f64::consts::LN_2 - decay.ln_1p() - 2.0 * size * decay / (1.0 + decay)
        }
    }

    fn renyi_divergence(&self, tilt: f64) -> f64 {
        // cosh 2θ = cosh²θ + sinh²θ.
        tilt.tanh().powi(2).ln_1p()
    }

    fn sample_tilted(&self, tilt: f64, stream: &mut Stream) -> f64 {
        // P(+1) = 1/(1 + e^{−2θ}).
        if stream.uniform() * (1.0 + (-2.0 * tilt).exp()) < 1.0 { 1.0 } else { -1.0 }
    }

    fn largest_variance(&self) -> Option<f64> {
        Some(1.0)
    }
}
