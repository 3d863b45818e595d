//! Mixture Σ πₖ μₖ of measures of any families: selective, where a single Gaussian is linear.

use super::divergence::Reweighting;
use super::sub_gaussian::{SubGaussian, half_diameter, variance_from_below};
use super::{Gaussian, Law, Measure, check_sampling, check_tilt};
use crate::error::Result;
use crate::numerics::{Stream, check, linalg, softmax};
use faer::Mat;
use std::sync::Arc;

/// A mixture of measures with positive weights.
///
/// Λ(θ) = log Σ πₖ exp Λₖ(θ); the tilted measure is the mixture of the tilted components with weights
/// softmax(ln πₖ + Λₖ(θ)). Atoms plus Gaussians is how a real attention head looks.
///
/// ```
/// use esscher_core::measure::{Empirical, Gaussian, Measure, Mixture};
/// use std::sync::Arc;
/// let sink = Empirical::atom(&[4.0, 0.0])?;
/// let bulk = Gaussian::standard(2)?;
/// let tokens = Mixture::new(vec![(0.01, Arc::new(sink)), (0.99, Arc::new(bulk))])?;
/// assert!(tokens.as_gaussian_mixture().is_some());
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Mixture {
    log_weights: Vec<f64>,
    components: Vec<Law>,
}

/// One component of a Gaussian mixture: πₖ and N(mₖ, Gₖ), an atom where Gₖ = 0.
#[derive(Debug, Clone)]
pub struct GaussianComponent {
    /// ln πₖ; the weights of a mixture sum to one. A logarithm, because tilting can make πₖ underflow and
    /// tilting back must bring it back.
    pub log_weight: f64,
    /// N(mₖ, Gₖ).
    pub gaussian: Gaussian,
}

/// Up to this many components a measure offers itself as a Gaussian mixture: each holds two d × d matrices,
/// and the exact finite-prompt theory costs time proportional to their number.
pub(super) const MAX_COMPONENTS: usize = 4096;

impl GaussianComponent {
    /// The weight πₖ.
    pub fn weight(&self) -> f64 {
        self.log_weight.exp()
    }
}

impl Mixture {
    /// The mixture of these weighted components; weights are normalised to sum one.
    ///
    /// # Errors
    /// No component, a weight that is not positive, or components of different dimensions.
    pub fn new(components: Vec<(f64, Law)>) -> Result<Self> {
        let (weights, components): (Vec<f64>, Vec<Law>) = components.into_iter().unzip();
        let log_weights = check::weights(&weights)?.into_iter().map(f64::ln).collect();
        let dimension = components[0].dimension();
        for component in &components {
            check::size("a component of the mixture (dimension)", dimension, component.dimension())?;
        }
        Ok(Mixture { log_weights, components })
    }

    /// The mixture of the components that another measure offers, log-weights and all.
    pub(super) fn of_gaussians(components: Vec<GaussianComponent>) -> Self {
        let (log_weights, components) =
            components.into_iter().map(|part| (part.log_weight, Arc::new(part.gaussian) as Law)).unzip();
        Mixture { log_weights, components }
    }

    /// The weights πₖ.
    pub fn weights(&self) -> Vec<f64> {
        self.log_weights.iter().map(|log_weight| log_weight.exp()).collect()
    }

    /// The components μₖ.
    pub fn components(&self) -> &[Law] {
        &self.components
    }

    /// softmax(ln πₖ + Λₖ(θ)) and Λ(θ).
    fn responsibilities(&self, tilt: &[f64]) -> Result<(Vec<f64>, f64)> {
        Ok(softmax(&self.log_masses(tilt)?))
    }

    /// What a tilt does to the weights of the components.
    fn reweighting(&self, tilt: &[f64]) -> Result<Reweighting> {
        let log_partitions: Vec<f64> =
            self.components.iter().map(|component| component.log_partition(tilt)).collect::<Result<_>>()?;
        Ok(Reweighting::new(self.log_weights.iter().copied(), &log_partitions))
    }

    /// ln πₖ + Λₖ(θ).
    fn log_masses(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension(), tilt)?;
        self.log_weights
            .iter()
            .zip(&self.components)
            .map(|(log_weight, component)| Ok(log_weight + component.log_partition(tilt)?))
            .collect()
    }
}

impl Measure for Mixture {
    fn family(&self) -> &'static str {
        "mixture"
    }

    fn dimension(&self) -> usize {
        self.components[0].dimension()
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        check::finite_number("the log-partition", self.responsibilities(tilt)?.1)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        let (weights, _) = self.responsibilities(tilt)?;
        let mut mean = vec![0.0; self.dimension()];
        for (weight, component) in weights.iter().zip(&self.components) {
            linalg::add_scaled(&mut mean, *weight, &component.tilted_mean(tilt)?);
        }
        check::finite_result("the tilted mean", mean)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        let (weights, _) = self.responsibilities(tilt)?;
        let mean = self.tilted_mean(tilt)?;
        let mut covariance = Mat::zeros(mean.len(), mean.len());
        let means: Vec<Vec<f64>> =
            self.components.iter().map(|component| component.tilted_mean(tilt)).collect::<Result<_>>()?;
        for ((weight, component), own) in weights.iter().zip(&self.components).zip(&means) {
            let offset = linalg::difference(own, &mean);
            covariance += faer::Scale(*weight) * component.tilted_covariance(tilt)?;
            linalg::add_outer(&mut covariance, *weight, &offset, &offset);
        }
        check::tilted_covariance_result(covariance, |index| {
            means.iter().map(|own| (own[index] - means[0][index]).abs()).fold(0.0, f64::max)
        })
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension(), tilt, tokens)?;
        let (weights, _) = self.responsibilities(tilt)?;
        for token in tokens.chunks_exact_mut(self.dimension()) {
            self.components[stream.index(&weights)].sample_tilted(tilt, stream, token)?;
        }
        Ok(())
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        let log_masses = self.log_masses(tilt)?;
        let log_partition = softmax(&log_masses).1;
        let log_weights = log_masses.iter().map(|log_mass| log_mass - log_partition).collect();
        let log_weights = check::finite_result("the log-weights of the tilted mixture", log_weights)?;
        let components =
            self.components.iter().map(|component| component.tilted(tilt)).collect::<Result<_>>()?;
        Ok(Arc::new(Mixture { log_weights, components }))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let of_components: Vec<f64> =
            self.components.iter().map(|component| component.tilt_divergence(tilt)).collect::<Result<_>>()?;
        let divergence = self.reweighting(tilt)?.tilt_divergence(of_components.into_iter());
        check::finite_number("the divergence of the tilt", divergence)
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let of_components: Vec<f64> = self
            .components
            .iter()
            .map(|component| component.renyi_divergence(tilt))
            .collect::<Result<_>>()?;
        let divergence = self.reweighting(tilt)?.renyi_divergence(of_components.into_iter());
        check::finite_number("the divergence of the tilt", divergence)
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        let mut flattened = Vec::new();
        for (log_weight, component) in self.log_weights.iter().zip(&self.components) {
            for inner in component.as_gaussian_mixture()? {
                let log_weight = log_weight + inner.log_weight;
                flattened.push(GaussianComponent { log_weight, gaussian: inner.gaussian });
            }
            if flattened.len() > MAX_COMPONENTS {
                return None;
            }
        }
        Some(flattened)
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        if let [single] = self.components.as_slice() {
            return single.sub_gaussian();
        }
        let parameters: Vec<f64> = self
            .components
            .iter()
            .map(|component| Some(component.sub_gaussian()?.parameter))
            .collect::<Option<_>>()?;
        let widest = parameters.into_iter().fold(0.0, f64::max);
        let means: Vec<Vec<f64>> =
            self.components.iter().map(|component| component.mean().ok()).collect::<Option<_>>()?;
        let spread = half_diameter(&means.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let parameter = widest.hypot(spread);
        if !parameter.is_finite() {
            return None;
        }
        // Lower bounds on σ²: the covariance and, far out, each Gaussian component.
        let mut lower_bound = variance_from_below(self.covariance())?;
        for component in self.as_gaussian_mixture().unwrap_or_default() {
            lower_bound = lower_bound.max(component.gaussian.sub_gaussian_under_tilts()?.powi(2));
        }
        Some(SubGaussian::against_lower_bound(parameter, lower_bound))
    }
}
