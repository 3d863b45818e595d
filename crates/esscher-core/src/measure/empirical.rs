//! Empirical measure Σ wₗ δ_{zₗ} of weighted points that it owns: a finite prompt is one.

use super::{GaussianComponent, Law, Measure, Prompt, SubGaussian};
use crate::error::Result;
use crate::numerics::{Stream, check};
use faer::{Mat, MatRef};
use std::sync::Arc;

/// Weighted points; the attention of a query on it is ordinary softmax attention over a prompt.
///
/// Λ(θ) = log Σ wₗ exp⟨θ, zₗ⟩, and the tilted mean is the softmax-weighted mean of the points. It is also
/// how a user's own law enters when it is known through samples. All formulas are those of [`Prompt`], the same
/// measure of points that somebody else owns.
///
/// ```
/// use esscher_core::measure::{Empirical, Measure};
/// let prompt = Empirical::from_tokens(2, &[1.0, 0.0, 0.0, 1.0])?;
/// assert_eq!(prompt.tilted_mean(&[1e4, 0.0])?, [1.0, 0.0]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Empirical {
    dimension: usize,
    /// One point after the other.
    points: Arc<[f64]>,
    /// None where all weights are equal.
    log_weights: Option<Vec<f64>>,
}

impl Empirical {
    /// Equal weights on tokens laid one after the other.
    pub fn from_tokens(dimension: usize, tokens: &[f64]) -> Result<Self> {
        Prompt::new(dimension, tokens)?;
        Ok(Empirical::of_checked(dimension, tokens.into(), None))
    }

    /// Equal weights on the rows of an L × d matrix.
    pub fn from_rows(rows: MatRef<'_, f64>) -> Result<Self> {
        let tokens: Vec<f64> =
            (0..rows.nrows()).flat_map(|i| (0..rows.ncols()).map(move |j| rows[(i, j)])).collect();
        Empirical::from_tokens(rows.ncols(), &tokens)
    }

    /// The same points with these positive weights, normalised to sum one.
    pub fn with_weights(mut self, weights: &[f64]) -> Result<Self> {
        check::size("the list of weights", self.len(), weights.len())?;
        self.log_weights = Some(check::weights(weights)?.into_iter().map(f64::ln).collect());
        Ok(self)
    }

    /// All mass on one point.
    pub fn atom(point: &[f64]) -> Result<Self> {
        Empirical::from_tokens(point.len(), point)
    }

    /// Finite points, and as many finite log-weights or none.
    pub(super) fn of_checked(dimension: usize, points: Arc<[f64]>, log_weights: Option<Vec<f64>>) -> Self {
        Empirical { dimension, points, log_weights }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.as_prompt().len()
    }

    /// Never: an empirical measure has at least one point.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The points, one after the other.
    pub fn points(&self) -> std::slice::ChunksExact<'_, f64> {
        self.as_prompt().points()
    }

    fn as_prompt(&self) -> Prompt<'_> {
        Prompt::of_checked(self.dimension, &self.points, self.log_weights.as_deref())
    }
}

impl Measure for Empirical {
    fn family(&self) -> &'static str {
        self.as_prompt().family()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        self.as_prompt().log_partition(tilt)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        self.as_prompt().tilted_mean(tilt)
    }

    fn tilted_means(&self, tilts: &[f64]) -> Result<Vec<f64>> {
        self.as_prompt().tilted_means(tilts)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        self.as_prompt().tilted_covariance(tilt)
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        self.as_prompt().sample_tilted(tilt, stream, tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        let log_weights = self.as_prompt().tilted_log_weights(tilt)?;
        Ok(Arc::new(Empirical::of_checked(self.dimension, self.points.clone(), Some(log_weights))))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        self.as_prompt().tilt_divergence(tilt)
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        self.as_prompt().renyi_divergence(tilt)
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        self.as_prompt().as_gaussian_mixture()
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        self.as_prompt().sub_gaussian()
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        self.as_prompt().sub_gaussian_under_tilts()
    }
}
