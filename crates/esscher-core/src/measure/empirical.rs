//! Empirical measure Σ wₗ δ_{zₗ} of weighted points: a finite prompt is one.

use super::sub_gaussian::{SubGaussian, half_diameter, largest_eigenvalue};
use super::{Gaussian, GaussianComponent, Law, Measure, check_sampling, check_tilt};
use crate::error::Result;
use crate::numerics::{Stream, check, linalg, softmax};
use faer::{Mat, MatRef};
use std::sync::Arc;

/// Weighted points; the attention of a query on it is ordinary softmax attention over a prompt.
///
/// Λ(θ) = log Σ wₗ exp⟨θ, zₗ⟩, and the tilted mean is the softmax-weighted mean of the points. It is also
/// how a user's own law enters when it is known through samples.
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
    log_weights: Vec<f64>,
}

/// Up to this many points an empirical measure offers itself as a mixture of atoms: the exact
/// finite-prompt theory costs time proportional to the number of components.
const MAX_ATOMS: usize = 256;

impl Empirical {
    /// Equal weights on tokens laid one after the other.
    pub fn from_tokens(dimension: usize, tokens: &[f64]) -> Result<Self> {
        check::at_least_one("the dimension of a token", dimension)?;
        check::whole_tokens(dimension, tokens.len())?;
        check::not_empty("the prompt", tokens.len())?;
        let count = tokens.len() / dimension;
        if let Some(position) = tokens.iter().position(|value| !value.is_finite()) {
            return Err(crate::Error::NotFinite {
                what: "tokens",
                entry: crate::error::Entry::RowColumn(position / dimension, position % dimension),
                value: tokens[position],
            });
        }
        Ok(Empirical { dimension, points: tokens.into(), log_weights: vec![-(count as f64).ln(); count] })
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
        self.log_weights = check::weights(weights)?.into_iter().map(f64::ln).collect();
        Ok(self)
    }

    /// All mass on one point.
    pub fn atom(point: &[f64]) -> Result<Self> {
        Empirical::from_tokens(point.len(), point)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.log_weights.len()
    }

    /// Never: an empirical measure has at least one point.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The points, one after the other.
    pub fn points(&self) -> std::slice::ChunksExact<'_, f64> {
        self.points.chunks_exact(self.dimension)
    }

    /// Softmax probabilities of the points under a tilt, and Λ(θ).
    fn probabilities(&self, tilt: &[f64]) -> Result<(Vec<f64>, f64)> {
        check_tilt(self.dimension, tilt)?;
        let scores: Vec<f64> = self
            .points()
            .zip(&self.log_weights)
            .map(|(point, log_weight)| linalg::dot(tilt, point) + log_weight)
            .collect();
        let (probabilities, log_partition) = softmax(&scores);
        check::finite_number("a score of the prompt", log_partition)?;
        Ok((probabilities, log_partition))
    }

    fn mean_under(&self, probabilities: &[f64]) -> Result<Vec<f64>> {
        let mut mean = vec![0.0; self.dimension];
        for (point, &probability) in self.points().zip(probabilities) {
            linalg::add_scaled(&mut mean, probability, point);
        }
        check::finite_result("the tilted mean", mean)
    }
}

impl Measure for Empirical {
    fn family(&self) -> &'static str {
        "empirical measure"
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        Ok(self.probabilities(tilt)?.1)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        self.mean_under(&self.probabilities(tilt)?.0)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        let (probabilities, _) = self.probabilities(tilt)?;
        let mean = self.mean_under(&probabilities)?;
        let mut covariance = Mat::zeros(self.dimension, self.dimension);
        for (point, &probability) in self.points().zip(&probabilities) {
            let offset = linalg::difference(point, &mean);
            linalg::add_outer(&mut covariance, probability, &offset, &offset);
        }
        check::finite_matrix_result("the tilted covariance", covariance)
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension, tilt, tokens)?;
        let mut cumulative = self.probabilities(tilt)?.0;
        let mut total = 0.0;
        for probability in &mut cumulative {
            total += *probability;
            *probability = total;
        }
        for token in tokens.chunks_exact_mut(self.dimension) {
            let target = total * stream.uniform();
            let index = cumulative.partition_point(|&mass| mass <= target).min(self.len() - 1);
            token.copy_from_slice(&self.points[index * self.dimension..(index + 1) * self.dimension]);
        }
        Ok(())
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        check_tilt(self.dimension, tilt)?;
        let (_, log_partition) = self.probabilities(tilt)?;
        let log_weights = self
            .points()
            .zip(&self.log_weights)
            .map(|(point, log_weight)| log_weight + linalg::dot(tilt, point) - log_partition)
            .collect();
        let log_weights = check::finite_result("the log-weights of the tilted prompt", log_weights)?;
        Ok(Arc::new(Empirical { log_weights, ..self.clone() }))
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        if self.len() > MAX_ATOMS {
            return None;
        }
        let none = Mat::zeros(self.dimension, self.dimension);
        self.points()
            .zip(&self.log_weights)
            .map(|(point, log_weight)| {
                let gaussian = Gaussian::new(point, none.as_ref()).ok()?;
                Some(GaussianComponent { log_weight: *log_weight, gaussian })
            })
            .collect()
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        let parameter = self.sub_gaussian_under_tilts()?;
        let variance = largest_eigenvalue(self.covariance().ok()?.as_ref())?;
        Some(SubGaussian::against_lower_bound(parameter, variance))
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        let points: Vec<&[f64]> = self.points().collect();
        Some(half_diameter(&points)).filter(|parameter| parameter.is_finite())
    }
}
