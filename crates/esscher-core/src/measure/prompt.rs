//! A prompt: points that somebody else owns, as a measure, without a copy.

use super::divergence::Reweighting;
use super::sub_gaussian::{SubGaussian, half_diameter, variance_from_below};
use super::{Empirical, Gaussian, GaussianComponent, Law, Measure, check_sampling, check_tilt};
use crate::error::{Entry, Error, Result};
use crate::numerics::softmax_sums::{self, QuerySums, Tokens};
use crate::numerics::{InstructionSet, Stream, check, linalg, softmax};
use faer::Mat;
use std::slice::ChunksExact;
use std::sync::Arc;

/// The equal-weight measure (1/L) Σ δ_{zₗ} of tokens that stay where they are: a foreign array becomes a measure
/// at the cost of one look at its entries.
///
/// Λ(θ) = log (1/L) Σ exp⟨θ, zₗ⟩, and the tilted mean is the softmax-weighted mean of the tokens. It is the
/// measure of [`Empirical::from_tokens`], which copies; its tilts are owned [`Empirical`] measures.
///
/// Λ and the means are computed in blocks with the fastest instructions of the machine, long prompts on all threads:
/// the number of threads does not show in the result, the instruction set may in its last bits ([`Empirical`]
/// measures use the portable set, so that experiments on them are the same everywhere). Weights below 1e-307 of the
/// largest count as zero.
///
/// ```
/// use esscher_core::measure::{Measure, Prompt};
/// let tokens = [1.0, 0.0, 0.0, 1.0];
/// let prompt = Prompt::new(2, &tokens)?;
/// assert_eq!(prompt.tilted_mean(&[1e4, 0.0])?, [1.0, 0.0]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    dimension: usize,
    /// One token after the other.
    tokens: &'a [f64],
    /// Of an [`Empirical`] measure that has its own; otherwise all are −log L.
    log_weights: Option<&'a [f64]>,
    set: InstructionSet,
}

/// Up to this many points an empirical measure offers itself as a mixture of atoms: the exact
/// finite-prompt theory costs time proportional to the number of components.
const MAX_ATOMS: usize = 256;

/// Nor beyond this many numbers in the covariances of the atoms.
const MAX_COVARIANCE_NUMBERS: usize = 1 << 22;

impl<'a> Prompt<'a> {
    /// Tokens of this dimension laid one after the other.
    ///
    /// # Errors
    /// No token, a dimension of zero, a token that is not whole, an entry that is not finite.
    pub fn new(dimension: usize, tokens: &'a [f64]) -> Result<Self> {
        check::at_least_one("the dimension of a token", dimension)?;
        check::whole_tokens(dimension, tokens.len())?;
        check::not_empty("the prompt", tokens.len())?;
        match check::first_not_finite(tokens) {
            None => Ok(Prompt { dimension, tokens, log_weights: None, set: InstructionSet::best() }),
            Some(position) => Err(Error::NotFinite {
                what: "tokens",
                entry: Entry::RowColumn(position / dimension, position % dimension),
                value: tokens[position],
            }),
        }
    }

    /// Points and log-weights that an [`Empirical`] measure has checked, with the same bits on every machine.
    pub(super) fn of_checked(dimension: usize, tokens: &'a [f64], log_weights: Option<&'a [f64]>) -> Self {
        Prompt { dimension, tokens, log_weights, set: InstructionSet::PORTABLE }
    }

    /// L, the number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len() / self.dimension
    }

    /// Never: a prompt has at least one token.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The tokens, one after the other.
    pub fn points(&self) -> ChunksExact<'a, f64> {
        self.tokens.chunks_exact(self.dimension)
    }

    /// The tokens with the logarithms of their weights.
    fn weighted_points(&self) -> impl Iterator<Item = (&'a [f64], f64)> {
        let (equal, log_weights) = (-(self.len() as f64).ln(), self.log_weights);
        self.points()
            .enumerate()
            .map(move |(index, point)| (point, log_weights.map_or(equal, |weights| weights[index])))
    }

    /// ⟨θ, z⟩ + log-weight of every token.
    fn scores(&self, tilt: &[f64]) -> Vec<f64> {
        self.weighted_points().map(|(point, log_weight)| linalg::dot(tilt, point) + log_weight).collect()
    }

    /// Softmax probabilities of the tokens under a tilt, and Λ(θ).
    fn probabilities(&self, tilt: &[f64]) -> Result<(Vec<f64>, f64)> {
        check_tilt(self.dimension, tilt)?;
        let (probabilities, log_partition) = softmax(&self.scores(tilt));
        check::finite_number("a score of the prompt", log_partition)?;
        Ok((probabilities, log_partition))
    }

    /// What a tilt does to the weights of the tokens.
    fn reweighting(&self, tilt: &[f64]) -> Result<Reweighting> {
        check_tilt(self.dimension, tilt)?;
        // From the first token: a prompt far from the origin has large scores that differ by little.
        let first = &self.tokens[..self.dimension];
        let from = |origin: &[f64]| -> Vec<f64> {
            let score = |point: &[f64]| {
                tilt.iter().zip(point).zip(origin).map(|((entry, z), origin)| entry * (z - origin)).sum()
            };
            self.points().map(score).collect()
        };
        let mut scores = from(first);
        if check::first_not_finite(&scores).is_some() {
            // Tokens at both ends of the doubles.
            scores = from(&vec![0.0; self.dimension]);
        }
        // A token whose score is −∞ has no weight, unless there is nothing else.
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, linalg::larger);
        check::finite_number("a score of the prompt", largest)?;
        Ok(Reweighting::new(self.weighted_points().map(|(_, log_weight)| log_weight), &scores))
    }

    /// Tokens and weights as the kernels read them.
    fn for_sums(&self) -> Tokens<'a> {
        Tokens { dimension: self.dimension, entries: self.tokens, log_weights: self.log_weights }
    }

    /// Σ p z from the sums at a tilt.
    fn mean_of(&self, sums: QuerySums, tilt: &[f64]) -> Result<Vec<f64>> {
        check::finite_number("a score of the prompt", sums.log_total())?;
        let mean = sums.into_mean();
        if check::first_not_finite(&mean).is_none() {
            return Ok(mean);
        }
        // Tokens near the end of the doubles, whose sum overflows where its share of each might not.
        self.mean_under(&self.probabilities(tilt)?.0)
    }

    fn mean_under(&self, probabilities: &[f64]) -> Result<Vec<f64>> {
        let mut mean = vec![0.0; self.dimension];
        for (point, &probability) in self.points().zip(probabilities) {
            linalg::add_scaled(&mut mean, probability, point);
        }
        check::finite_result("the tilted mean", mean)
    }

    /// The log-weights of the tilted measure, which has the same points.
    pub(super) fn tilted_log_weights(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        let log_partition = self.log_partition(tilt)?;
        let log_weights = self
            .weighted_points()
            .map(|(point, log_weight)| log_weight + linalg::dot(tilt, point) - log_partition)
            .collect();
        check::finite_result("the log-weights of the tilted prompt", log_weights)
    }
}

impl Measure for Prompt<'_> {
    fn family(&self) -> &'static str {
        "empirical measure"
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension, tilt)?;
        let weights = if self.log_weights.is_some() { 1.0 } else { self.len() as f64 };
        let log_partition = softmax_sums::mass(self.for_sums(), tilt, self.set)?.log_total() - weights.ln();
        check::finite_number("a score of the prompt", log_partition)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension, tilt)?;
        self.mean_of(softmax_sums::first_order(self.for_sums(), tilt, self.set)?, tilt)
    }

    fn tilted_means(&self, tilts: &[f64]) -> Result<Vec<f64>> {
        check::whole_tokens(self.dimension, tilts.len())?;
        let tilts_of_queries = tilts.chunks_exact(self.dimension);
        tilts_of_queries.clone().try_for_each(|tilt| check_tilt(self.dimension, tilt))?;
        let all_sums = softmax_sums::first_order_of_all(self.for_sums(), tilts, self.set)?;
        let mut means = Vec::with_capacity(tilts.len());
        for (sums, tilt) in all_sums.into_iter().zip(tilts_of_queries) {
            means.extend(self.mean_of(sums, tilt)?);
        }
        Ok(means)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check::matrix_dimension(self.dimension)?;
        let (probabilities, _) = self.probabilities(tilt)?;
        let mean = self.mean_under(&probabilities)?;
        let mut covariance = Mat::zeros(self.dimension, self.dimension);
        for (point, &probability) in self.points().zip(&probabilities) {
            let offset = linalg::difference(point, &mean);
            linalg::add_outer(&mut covariance, probability, &offset, &offset);
        }
        check::tilted_covariance_result(covariance, |index| {
            self.points().map(|point| (point[index] - self.tokens[index]).abs()).fold(0.0, f64::max)
        })
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
            token.copy_from_slice(&self.tokens[index * self.dimension..(index + 1) * self.dimension]);
        }
        Ok(())
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        let log_weights = self.tilted_log_weights(tilt)?;
        Ok(Arc::new(Empirical::of_checked(self.dimension, self.tokens.into(), Some(log_weights))))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let divergence = self.reweighting(tilt)?.tilt_divergence(std::iter::repeat(0.0));
        check::finite_number("the divergence of the tilt", divergence)
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let divergence = self.reweighting(tilt)?.renyi_divergence(std::iter::repeat(0.0));
        check::finite_number("the divergence of the tilt", divergence)
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        let numbers = self.len().saturating_mul(self.dimension.saturating_mul(self.dimension));
        if self.len() > MAX_ATOMS || numbers > MAX_COVARIANCE_NUMBERS {
            return None;
        }
        let none = Mat::zeros(self.dimension, self.dimension);
        self.weighted_points()
            .map(|(point, log_weight)| {
                let gaussian = Gaussian::new(point, none.as_ref()).ok()?;
                Some(GaussianComponent { log_weight, gaussian })
            })
            .collect()
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        let parameter = self.sub_gaussian_under_tilts()?;
        let variance = variance_from_below(self.covariance())?;
        Some(SubGaussian::against_lower_bound(parameter, variance))
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        let points: Vec<&[f64]> = self.points().collect();
        Some(half_diameter(&points)).filter(|parameter| parameter.is_finite())
    }
}
