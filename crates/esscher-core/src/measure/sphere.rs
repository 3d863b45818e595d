//! Uniform sphere of radius r: Λ is a Bessel function of r|θ|, the tilted measure is von Mises–Fisher.

use super::{Law, Measure, Radial, SubGaussian, Tilted, check_sampling, check_tilt};
use crate::error::Result;
use crate::numerics::bessel::SphereFunctions;
use crate::numerics::radius::RadiusLaw;
use crate::numerics::{Stream, check, linalg};
use faer::Mat;
use std::sync::Arc;

/// The uniform law on the sphere {|z| = r} of Rᵈ.
///
/// With x = r|θ| and ρ = I_{d/2}(x)/I_{d/2−1}(x): Λ = ln[Γ(d/2)(2/x)^{d/2−1} I_{d/2−1}(x)], tilted mean
/// rρ θ/|θ|, tilted variance r²ρ′ along θ and r²ρ/x across it.
///
/// ```
/// use esscher_core::measure::{Measure, Sphere};
/// let tokens = Sphere::new(3, 2.0)?;
/// let mean = tokens.tilted_mean(&[0.0, 0.5, 0.0])?;
/// assert!((mean[1] - 2.0 * (1.0 / 1f64.tanh() - 1.0)).abs() < 1e-14);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sphere {
    dimension: usize,
    radius: f64,
}

impl Sphere {
    /// The sphere of this radius in dimension d ≥ 1 (in dimension 1: the two points ±r).
    pub fn new(dimension: usize, radius: f64) -> Result<Self> {
        check::dimension(dimension)?;
        check::positive("the radius of a sphere", radius)?;
        Ok(Sphere { dimension, radius })
    }

    /// θ/|θ| (any direction at θ = 0) and the Bessel functions at r|θ|.
    fn along(&self, tilt: &[f64]) -> Result<(Vec<f64>, SphereFunctions)> {
        let (direction, concentration) = self.concentration(tilt)?;
        Ok((direction, SphereFunctions::new(self.dimension, concentration)))
    }

    /// θ/|θ| (any direction at θ = 0) and r|θ|.
    fn concentration(&self, tilt: &[f64]) -> Result<(Vec<f64>, f64)> {
        check_tilt(self.dimension, tilt)?;
        let largest = tilt.iter().fold(0.0, |size: f64, entry| size.max(entry.abs()));
        let mut direction = vec![0.0; self.dimension];
        let mut length = 0.0;
        if largest > 0.0 {
            let scaled: Vec<f64> = tilt.iter().map(|entry| entry / largest).collect();
            let norm = linalg::squared_norm(&scaled).sqrt();
            length = largest * norm;
            direction = scaled.iter().map(|entry| entry / norm).collect();
        } else {
            direction[0] = 1.0;
        }
        Ok((direction, check::finite_number("radius times tilt", self.radius * length)?))
    }
}

impl Measure for Sphere {
    fn family(&self) -> &'static str {
        "uniform sphere"
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        check::finite_number("the log-partition", self.along(tilt)?.1.log_partition)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        let (direction, functions) = self.along(tilt)?;
        Ok(direction.iter().map(|entry| self.radius * functions.ratio * entry).collect())
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check::matrix_dimension(self.dimension)?;
        let (direction, functions) = self.along(tilt)?;
        let square = self.radius * self.radius;
        let (along, across) = (functions.ratio_derivative, functions.ratio_over_argument);
        // On the diagonal as a mean of the two variances, which cannot become negative by rounding.
        let covariance = Mat::from_fn(self.dimension, self.dimension, |i, j| {
            let share = direction[i] * direction[j];
            square
                * if i == j {
                    along * share + across * (1.0 - share).max(0.0)
                } else {
                    (along - across) * share
                }
        });
        check::tilted_covariance_result(covariance, |_| self.radius)
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension, tilt, tokens)?;
        let (direction, concentration) = self.concentration(tilt)?;
        for token in tokens.chunks_exact_mut(self.dimension) {
            let drop = drop_below_pole(self.dimension, concentration, stream);
            // A uniform direction across θ, from a normal vector with its θ part removed.
            token.fill_with(|| stream.normal());
            let along = linalg::dot(token, &direction);
            linalg::add_scaled(token, -along, &direction);
            let norm = linalg::squared_norm(token).sqrt();
            let width = if norm > 0.0 { (drop * (2.0 - drop)).sqrt() / norm } else { 0.0 };
            for (entry, axis) in token.iter_mut().zip(&direction) {
                *entry = self.radius * (width * *entry + (1.0 - drop) * axis);
            }
        }
        check::finite_tokens(tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        Ok(Arc::new(Tilted::new(Arc::new(self.clone()), tilt)?))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let (_, x) = self.concentration(tilt)?;
        let divergence = SphereFunctions::new(self.dimension, x).tilt_divergence(x);
        check::finite_number("the divergence of the tilt", linalg::larger(divergence, 0.0))
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let (_, x) = self.concentration(tilt)?;
        let twice = check::finite_number("twice the tilt", 2.0 * x)?;
        let [at_tilt, at_twice] = [x, twice].map(|x| SphereFunctions::new(self.dimension, x));
        let divergence = at_tilt.renyi_divergence(x, &at_twice);
        check::finite_number("the divergence of the tilt", linalg::larger(divergence, 0.0))
    }

    fn as_radial(&self) -> Option<Radial> {
        check::matrix_dimension(self.dimension).ok()?;
        Some(Radial {
            centre: vec![0.0; self.dimension],
            root: linalg::identity(self.dimension),
            radius: RadiusLaw::Fixed { radius: self.radius },
        })
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        self.sub_gaussian_under_tilts().map(SubGaussian::optimal)
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        Some(self.radius / (self.dimension as f64).sqrt())
    }
}

/// Beyond this concentration per degree of freedom the cap around the pole is flat to the last digit, and the
/// drop is χ²/(2κ); the rejection below squares numbers that would leave double precision.
const SO_CONCENTRATED: f64 = 1e100;

/// 1 − cos(angle to the tilt) under the von Mises–Fisher law, by the rejection of Wood 1994 (key `wood1994`).
///
/// Written in distances from the pole, which keep their digits when the law concentrates there.
fn drop_below_pole(dimension: usize, concentration: f64, stream: &mut Stream) -> f64 {
    if dimension == 1 {
        return if stream.uniform() * (1.0 + (-2.0 * concentration).exp()) < 1.0 { 0.0 } else { 2.0 };
    }
    let degrees = dimension as f64 - 1.0;
    if concentration > SO_CONCENTRATED * degrees {
        return 0.5 * chi_square(dimension - 1, stream) / concentration;
    }
    let b = degrees / (2.0 * concentration + (2.0 * concentration).hypot(degrees));
    // The drop of the point from which the envelope is drawn.
    let centre = 2.0 * b / (1.0 + b);
    loop {
        // Beta(degrees/2, degrees/2) as a ratio of two χ² with `degrees` degrees of freedom each.
        let (left, right) = (chi_square(dimension - 1, stream), chi_square(dimension - 1, stream));
        let beta = left / (left + right);
        let drop = 2.0 * b * beta / (1.0 - beta + b * beta);
        let envelope = (centre + drop - centre * drop) / (centre * (2.0 - centre));
        let log_acceptance = concentration * (centre - drop) + degrees * envelope.ln();
        if log_acceptance >= stream.uniform().ln() {
            return drop.clamp(0.0, 2.0);
        }
    }
}

fn chi_square(degrees: usize, stream: &mut Stream) -> f64 {
    (0..degrees).map(|_| stream.normal().powi(2)).sum()
}
