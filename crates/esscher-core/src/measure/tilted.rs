//! Tilted measure μ_a of any family, for families that are not closed under tilting.

use super::divergence::{difference_or, integral_of_variance, size_of_product};
use super::sub_gaussian::{SubGaussian, variance_from_below};
use super::{GaussianComponent, Law, Measure, Mixture, check_tilt};
use crate::error::Result;
use crate::numerics::{Stream, check, linalg};
use faer::Mat;
use std::sync::Arc;

/// The base measure tilted by a fixed tilt a: Λ_a(θ) = Λ(a + θ) − Λ(a).
#[derive(Debug, Clone)]
pub struct Tilted {
    base: Law,
    tilt: Vec<f64>,
    log_partition_of_tilt: f64,
}

impl Tilted {
    /// `base` tilted by `tilt`.
    ///
    /// # Errors
    /// Where the log-partition of `base` is infinite at `tilt`, or the tilt has the wrong size.
    pub fn new(base: Law, tilt: &[f64]) -> Result<Self> {
        let log_partition_of_tilt = base.log_partition(tilt)?;
        Ok(Tilted { base, tilt: tilt.to_vec(), log_partition_of_tilt })
    }

    fn total(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension(), tilt)?;
        check::finite_result("the sum of the tilts", linalg::sum(&self.tilt, tilt))
    }

    /// The variance of ⟨θ, z⟩ after tilting by sθ.
    fn variance_along(&self, tilt: &[f64], s: f64) -> Result<f64> {
        let part: Vec<f64> = tilt.iter().map(|entry| s * entry).collect();
        let covariance = self.tilted_covariance(&part)?;
        Ok(linalg::dot(tilt, &linalg::apply(covariance.as_ref(), tilt)))
    }
}

impl Measure for Tilted {
    fn family(&self) -> &'static str {
        self.base.family()
    }

    fn dimension(&self) -> usize {
        self.base.dimension()
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        let value = self.base.log_partition(&self.total(tilt)?)? - self.log_partition_of_tilt;
        check::finite_number("the log-partition", value)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        self.base.tilted_mean(&self.total(tilt)?)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        self.base.tilted_covariance(&self.total(tilt)?)
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        self.base.sample_tilted(&self.total(tilt)?, stream, tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        Ok(Arc::new(Tilted::new(self.base.clone(), &self.total(tilt)?)?))
    }

    /// At a small tilt as ∫₀¹ s θᵀ∇²Λ(a + sθ)θ ds: Λ(a + θ) − Λ(a) loses it.
    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let mean = self.tilted_mean(tilt)?;
        let divergence = linalg::dot(tilt, &mean) - self.log_partition(tilt)?;
        let size = size_of_product(tilt, &mean) + self.log_partition_of_tilt.abs();
        let integral = || integral_of_variance(|s| self.variance_along(tilt, s));
        difference_or(divergence, size, integral)
    }

    /// At a small tilt as ∫₀¹ s θᵀ[∇²Λ(a + sθ) + ∇²Λ(a + (2 − s)θ)]θ ds.
    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let twice = check::finite_result("twice the tilt", tilt.iter().map(|entry| 2.0 * entry).collect())?;
        let at_twice = self.log_partition(&twice)?;
        let divergence = at_twice - 2.0 * self.log_partition(tilt)?;
        let size = at_twice.abs() + self.log_partition_of_tilt.abs();
        let integral = || {
            let variance = |s| Ok(self.variance_along(tilt, s)? + self.variance_along(tilt, 2.0 - s)?);
            integral_of_variance(variance)
        };
        difference_or(divergence, size, integral)
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        // Through the components of the base: asking the base for its tilted self would lead back here.
        Mixture::of_gaussians(self.base.as_gaussian_mixture()?).tilted(&self.tilt).ok()?.as_gaussian_mixture()
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        if let Some(parameter) = self.sub_gaussian_under_tilts() {
            let variance = variance_from_below(self.covariance())?;
            return Some(SubGaussian::against_lower_bound(parameter, variance));
        }
        Mixture::of_gaussians(self.as_gaussian_mixture()?).sub_gaussian()
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        self.base.sub_gaussian_under_tilts()
    }
}
