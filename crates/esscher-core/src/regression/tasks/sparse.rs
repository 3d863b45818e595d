//! Sparse linear regression: w has s non-zero entries in places drawn for each prompt.

use super::design::{Design, Noise, noise_and_prior};
use super::{PromptDraw, Task};
use crate::error::{Error, Result};
use crate::measure::Law;
use crate::numerics::{Stream, check};

/// Prompts with y = ⟨w, x⟩ + noise; s places of w, uniform among all choices, are N(0, k), the others zero.
///
/// ```
/// use esscher_core::measure::Gaussian;
/// use esscher_core::numerics::Stream;
/// use esscher_core::regression::tasks::{PromptDraw, SparseTask, Task};
/// use std::sync::Arc;
///
/// let task = SparseTask::new(2, Arc::new(Gaussian::standard(7)?))?;
/// let mut prompt = PromptDraw::new();
/// task.draw(5, &mut Stream::new(0, 0, 0), &mut prompt)?;
/// assert_eq!(prompt.hidden().iter().filter(|w| **w != 0.0).count(), 2);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SparseTask {
    design: Design,
    noise: Noise,
    prior_scale: f64,
    non_zero: usize,
}

impl SparseTask {
    /// `non_zero` entries, covariates and queries of one law, no noise, k = 1.
    ///
    /// # Errors
    /// No non-zero entry, more than d of them, a law of dimension zero.
    pub fn new(non_zero: usize, covariates: Law) -> Result<Self> {
        SparseTask::with_queries(non_zero, covariates.clone(), covariates)
    }

    /// Covariates of one law, queries of another.
    ///
    /// # Errors
    /// Also laws of different dimension.
    pub fn with_queries(non_zero: usize, covariates: Law, queries: Law) -> Result<Self> {
        let design = Design::new(covariates, queries)?;
        if !(1..=design.dimension()).contains(&non_zero) {
            return Err(Error::OutOfRange {
                what: "the number of non-zero entries of w",
                value: non_zero as f64,
                expected: "from 1 to the dimension",
            });
        }
        Ok(SparseTask { design, noise: Noise::default(), prior_scale: 1.0, non_zero })
    }

    noise_and_prior!();

    /// The number s of weights that are not zero.
    pub fn non_zero(&self) -> usize {
        self.non_zero
    }
}

impl Task for SparseTask {
    fn dimension(&self) -> usize {
        self.design.dimension()
    }

    fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<()> {
        prompt.begin(self.dimension(), length)?;
        // Selection sampling (Knuth, algorithm S): each place in turn, with the chance that keeps all choices equal.
        let mut wanted = self.non_zero;
        for (index, entry) in prompt.hidden.iter_mut().enumerate() {
            let left = self.design.dimension() - index;
            let chosen = stream.uniform() * (left as f64) < wanted as f64;
            wanted -= usize::from(chosen);
            *entry = if chosen { self.prior_scale.sqrt() * stream.normal() } else { 0.0 };
        }
        self.design.draw_labelled(self.noise, |score| score, stream, prompt)
    }
}
