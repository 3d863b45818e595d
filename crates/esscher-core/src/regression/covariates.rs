//! The block form for covariates of any law: the infinite prompt through the law, finite ones on fixed prompts.
//!
//! Given the covariates, w and the label noise are averaged in closed form. With p = softmax(⟨xₗ, A x_q⟩) and
//! m = Σ pₗxₗ (at the infinite prompt: the mean of the law tilted by A x_q),
//!
//!   R = ½ E [k |b m − x_q|² + b²s² Σ pₗ²] + the noise floor,
//!
//! so only covariates are drawn. They are drawn once: a landscape is a function, flows on it are as smooth as on
//! the exact one, and all lengths share queries and prefixes, which is why distances between their flows are
//! far more accurate than each flow alone.

use super::{Block, BlockGradient, Landscape};
use crate::error::{Error, Result};
use crate::measure::{Law, Measure};
use crate::numerics::{Stream, check, linalg};
use crate::prompt::PromptLength;
use faer::Mat;
use rayon::prelude::*;
use std::sync::Arc;

/// Drawn covariates of many prompts with their queries, and the law they come from.
#[derive(Debug, Clone)]
pub struct DrawnCovariates {
    law: Law,
    noise: f64,
    prior_scale: f64,
    longest: usize,
    /// Prompt after prompt: the query, then `longest` covariates.
    draws: Arc<Vec<f64>>,
}

/// Numbers that a set of draws may hold: 4 GB.
const MOST_NUMBERS: u64 = 1 << 29;

/// Prompts whose contributions are summed together, in order: the same bits on any number of threads.
const PROMPTS_PER_SUM: usize = 8;

impl DrawnCovariates {
    /// Draws `prompts` prompts of up to `longest` covariates, queries from the same law.
    ///
    /// # Errors
    /// Variances out of range, more numbers than fit in 4 GB, what the law refuses.
    pub fn new(
        law: Law,
        noise: f64,
        prior_scale: f64,
        prompts: u32,
        longest: PromptLength,
        seed: u64,
    ) -> Result<Self> {
        check::positive("the scale of the prior", prior_scale)?;
        check::not_empty("the number of prompts", prompts as usize)?;
        check::not_empty("the covariates (dimension)", law.dimension())?;
        check::zero_or_more("the variance of the label noise", noise)?;
        let dimension = law.dimension();
        let numbers = u64::from(prompts)
            .saturating_mul(longest.get().saturating_add(1))
            .saturating_mul(dimension as u64);
        if numbers > MOST_NUMBERS {
            return Err(Error::OutOfRange {
                what: "the size of the draws (prompts times length times dimension)",
                value: numbers as f64,
                expected: "at most 536870912 numbers: draw fewer or shorter prompts",
            });
        }
        let size = (longest.get() as usize + 1) * dimension;
        let mut draws = vec![0.0; size * prompts as usize];
        draws
            .par_chunks_mut(size)
            .enumerate()
            .try_for_each(|(prompt, draws)| law.sample(&mut Stream::new(seed, prompt as u32, 0), draws))?;
        Ok(DrawnCovariates {
            law,
            noise,
            prior_scale,
            longest: longest.get() as usize,
            draws: Arc::new(draws),
        })
    }

    /// The landscape at this length, or at the infinite prompt.
    ///
    /// # Errors
    /// A length beyond the longest that was drawn.
    pub fn landscape(&self, length: Option<PromptLength>) -> Result<DrawnLandscape> {
        let tokens = match length {
            Some(length) if length.get() > self.longest as u64 => {
                return Err(Error::OutOfRange {
                    what: "the prompt length",
                    value: length.as_f64(),
                    expected: "at most the longest prompt that was drawn",
                });
            }
            Some(length) => Some(length.get() as usize),
            None => None,
        };
        Ok(DrawnLandscape { covariates: self.clone(), tokens })
    }
}

/// The risk of a block on drawn covariates at one length: A column by column, then b.
#[derive(Debug, Clone)]
pub struct DrawnLandscape {
    covariates: DrawnCovariates,
    /// Tokens of a prompt; none for the infinite prompt.
    tokens: Option<usize>,
}

impl DrawnLandscape {
    /// The risk and its gradient, averaged over the draws.
    pub fn risk_and_gradient(&self, block: &Block) -> Result<BlockGradient> {
        let DrawnCovariates { law, longest, draws, .. } = &self.covariates;
        let d = law.dimension();
        check::size("the block A (dimension of the covariates)", d, block.matrix().nrows())?;
        let size = (longest + 1) * d;
        let parts: Vec<BlockGradient> = draws
            .par_chunks(size * PROMPTS_PER_SUM)
            .map(|prompts| {
                let mut total = BlockGradient { risk: 0.0, matrix: Mat::zeros(d, d), gain: 0.0 };
                let mut attended = Attended::zero(d);
                for prompt in prompts.chunks_exact(size) {
                    let (query, prompt) = prompt.split_at(d);
                    self.add(block, query, prompt, &mut attended, &mut total)?;
                }
                Ok(total)
            })
            .collect::<Result<_>>()?;
        let scale = 1.0 / (draws.len() / size) as f64;
        let mut mean = BlockGradient { risk: 0.0, matrix: Mat::zeros(d, d), gain: 0.0 };
        for part in parts {
            mean.risk += scale * part.risk;
            mean.gain += scale * part.gain;
            mean.matrix += part.matrix * faer::Scale(scale);
        }
        mean.risk = check::finite_number("the risk", mean.risk + 0.5 * self.covariates.noise)?;
        check::finite_number("the gradient in b", mean.gain)?;
        check::finite_matrix("the gradient in A", mean.matrix.as_ref())?;
        Ok(mean)
    }

    /// Adds one prompt.
    fn add(
        &self,
        block: &Block,
        query: &[f64],
        prompt: &[f64],
        attended: &mut Attended,
        total: &mut BlockGradient,
    ) -> Result<()> {
        let DrawnCovariates { law, noise, prior_scale, .. } = &self.covariates;
        let gain = block.gain();
        let tilt = linalg::apply(block.matrix(), query);
        match self.tokens {
            Some(tokens) => attended.read(&tilt, &prompt[..tokens * query.len()]),
            None => attended.tilt(law.as_ref(), &tilt)?,
        }
        let miss: Vec<f64> =
            attended.mean.iter().zip(query).map(|(mean, query)| gain * mean - query).collect();
        let spread = gain * noise * attended.participation;
        total.risk += 0.5 * (prior_scale * linalg::squared_norm(&miss) + gain * spread);
        total.gain += prior_scale * linalg::dot(&attended.mean, &miss) + spread;
        let mut by_tilt = linalg::apply(attended.covariance.as_ref(), &miss);
        by_tilt.iter_mut().for_each(|entry| *entry *= prior_scale * gain);
        linalg::add_scaled(&mut by_tilt, 0.5 * gain * gain * noise, &attended.participation_slope);
        linalg::add_outer(&mut total.matrix, 1.0, &by_tilt, query);
        Ok(())
    }
}

impl Landscape for DrawnLandscape {
    fn size(&self) -> usize {
        self.scores() + 1
    }

    fn scores(&self) -> usize {
        self.covariates.law.dimension().pow(2)
    }

    fn weight(&self, _index: usize) -> f64 {
        1.0
    }

    fn slope(&self, parameters: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let block = Block::from_parameters(self.covariates.law.dimension(), parameters)?;
        self.risk_and_gradient(&block)?.write(gradient)
    }
}

/// What a tilt sees of a prompt: Σ p x, its covariance, Σ p², and the derivative of Σ p² in the tilt.
struct Attended {
    mean: Vec<f64>,
    covariance: Mat<f64>,
    participation: f64,
    participation_slope: Vec<f64>,
    weights: Vec<f64>,
}

impl Attended {
    fn zero(dimension: usize) -> Self {
        Attended {
            mean: vec![0.0; dimension],
            covariance: Mat::zeros(dimension, dimension),
            participation: 0.0,
            participation_slope: vec![0.0; dimension],
            weights: Vec::new(),
        }
    }

    fn tilt(&mut self, law: &dyn Measure, tilt: &[f64]) -> Result<()> {
        self.mean = law.tilted_mean(tilt)?;
        self.covariance = law.tilted_covariance(tilt)?;
        Ok(())
    }

    fn read(&mut self, tilt: &[f64], prompt: &[f64]) {
        let d = tilt.len();
        self.weights.clear();
        self.weights.extend(prompt.chunks_exact(d).map(|token| linalg::dot(token, tilt)));
        let largest = self.weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut mass = 0.0;
        for weight in &mut self.weights {
            *weight = (*weight - largest).exp();
            mass += *weight;
        }
        self.mean.fill(0.0);
        self.participation = 0.0;
        self.participation_slope.fill(0.0);
        for (token, weight) in prompt.chunks_exact(d).zip(&mut self.weights) {
            *weight /= mass;
            self.participation += *weight * *weight;
            linalg::add_scaled(&mut self.mean, *weight, token);
            linalg::add_scaled(&mut self.participation_slope, 2.0 * *weight * *weight, token);
        }
        linalg::add_scaled(&mut self.participation_slope, -2.0 * self.participation, &self.mean);
        self.covariance.fill(0.0);
        for (token, weight) in prompt.chunks_exact(d).zip(&self.weights) {
            let offset = linalg::difference(token, &self.mean);
            linalg::add_outer(&mut self.covariance, *weight, &offset, &offset);
        }
    }
}
