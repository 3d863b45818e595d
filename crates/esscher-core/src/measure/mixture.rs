//! Mixture Σ πₖ μₖ of measures of any families: selective, where a single Gaussian is linear.

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
    weights: Vec<f64>,
    components: Vec<Law>,
}

/// One component of a Gaussian mixture: πₖ and N(mₖ, Gₖ), an atom where Gₖ = 0.
#[derive(Debug, Clone)]
pub struct GaussianComponent {
    /// πₖ; the weights of a mixture sum to one.
    pub weight: f64,
    /// N(mₖ, Gₖ).
    pub gaussian: Gaussian,
}

impl Mixture {
    /// The mixture of these weighted components; weights are normalised to sum one.
    ///
    /// # Errors
    /// No component, a weight that is not positive, or components of different dimensions.
    pub fn new(components: Vec<(f64, Law)>) -> Result<Self> {
        let (weights, components): (Vec<f64>, Vec<Law>) = components.into_iter().unzip();
        let weights = check::weights(&weights)?;
        let dimension = components[0].dimension();
        for component in &components {
            check::size("a component of the mixture (dimension)", dimension, component.dimension())?;
        }
        Ok(Mixture { weights, components })
    }

    /// πₖ.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// μₖ.
    pub fn components(&self) -> &[Law] {
        &self.components
    }

    /// softmax(ln πₖ + Λₖ(θ)) and Λ(θ).
    fn responsibilities(&self, tilt: &[f64]) -> Result<(Vec<f64>, f64)> {
        check_tilt(self.dimension(), tilt)?;
        let log_masses: Vec<f64> = self
            .weights
            .iter()
            .zip(&self.components)
            .map(|(weight, component)| Ok(weight.ln() + component.log_partition(tilt)?))
            .collect::<Result<_>>()?;
        Ok(softmax(&log_masses))
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
        Ok(self.responsibilities(tilt)?.1)
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
        for (weight, component) in weights.iter().zip(&self.components) {
            let offset = linalg::difference(&component.tilted_mean(tilt)?, &mean);
            covariance += faer::Scale(*weight) * component.tilted_covariance(tilt)?;
            linalg::add_outer(&mut covariance, *weight, &offset, &offset);
        }
        check::finite_matrix_result("the tilted covariance", covariance)
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
        let (weights, _) = self.responsibilities(tilt)?;
        // A component whose tilted weight underflows has left the mixture.
        let components = weights
            .iter()
            .zip(&self.components)
            .filter(|(weight, _)| **weight > 0.0)
            .map(|(weight, component)| Ok((*weight, component.tilted(tilt)?)))
            .collect::<Result<_>>()?;
        Ok(Arc::new(Mixture::new(components)?))
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        let mut flattened = Vec::new();
        for (weight, component) in self.weights.iter().zip(&self.components) {
            for inner in component.as_gaussian_mixture()? {
                flattened.push(GaussianComponent { weight: weight * inner.weight, gaussian: inner.gaussian });
            }
        }
        Some(flattened)
    }
}
