//! Linear regression: w ~ N(0, k I), covariates of any law, y = ⟨w, x⟩ + noise.

use super::design::{Design, Noise, noise_and_prior};
use super::{PromptDraw, Task};
use crate::error::Result;
use crate::measure::Law;
use crate::numerics::{Stream, check, linalg};
use crate::regression::LinearRegression;

/// Prompts of linear regression.
///
/// ```
/// use esscher_core::measure::Rademacher;
/// use esscher_core::numerics::Stream;
/// use esscher_core::regression::tasks::{LinearTask, PromptDraw, Task};
/// use std::sync::Arc;
///
/// let task = LinearTask::new(Arc::new(Rademacher::new(3)?))?.with_noise(0.1)?;
/// let mut prompt = PromptDraw::new();
/// task.draw(10, &mut Stream::new(0, 0, 0), &mut prompt)?;
/// assert!(prompt.token(9)[..3].iter().all(|x| x.abs() == 1.0));
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinearTask {
    design: Design,
    noise: Noise,
    prior_scale: f64,
}

impl LinearTask {
    /// Covariates and queries of one law, no noise, prior N(0, I).
    ///
    /// # Errors
    /// A law of dimension zero.
    pub fn new(covariates: Law) -> Result<Self> {
        LinearTask::with_queries(covariates.clone(), covariates)
    }

    /// Covariates of one law, queries of another.
    ///
    /// # Errors
    /// Laws of different dimension, or of dimension zero.
    pub fn with_queries(covariates: Law, queries: Law) -> Result<Self> {
        let design = Design::new(covariates, queries)?.recognise_gaussian();
        Ok(LinearTask { design, noise: Noise::default(), prior_scale: 1.0 })
    }

    /// The Gaussian task of the theory; drawn faster than through a law.
    ///
    /// # Errors
    /// A covariance without Cholesky factor, which [`LinearRegression`] has refused but for rounding.
    pub fn gaussian(task: &LinearRegression) -> Result<Self> {
        Ok(LinearTask {
            design: Design::gaussian(task)?,
            noise: Noise { prompt: task.noise(), query: task.query_noise() },
            prior_scale: task.prior_scale(),
        })
    }

    noise_and_prior!();

    /// Noise of this variance on the query's target only.
    pub fn with_query_noise(mut self, variance: f64) -> Result<Self> {
        check::zero_or_more("the variance of the query's noise", variance)?;
        self.noise.query = variance;
        Ok(self)
    }
}

impl Task for LinearTask {
    fn dimension(&self) -> usize {
        self.design.dimension()
    }

    fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<()> {
        prompt.begin(self.dimension(), length)?;
        draw_normal(self.prior_scale, stream, &mut prompt.hidden);
        self.design.draw_labelled(self.noise, |score| score, stream, prompt)
    }

    fn as_gaussian_linear(&self) -> Option<&LinearTask> {
        self.design.is_gaussian().then_some(self)
    }
}

/// What training through projections needs of a Gaussian task.
impl LinearTask {
    /// Hidden vector, query and target of a prompt without its tokens.
    pub(crate) fn draw_query(
        &self,
        length: usize,
        stream: &mut Stream,
        prompt: &mut PromptDraw,
    ) -> Result<()> {
        super::check_prompt(self.dimension(), length)?;
        prompt.begin(self.dimension(), 1)?;
        draw_normal(self.prior_scale, stream, &mut prompt.hidden);
        self.design.draw_target(self.noise, |score| score, stream, prompt)
    }

    /// R g in place, for a token R g = (C g_x, ⟨w, C g_x⟩ + s g_y).
    pub(crate) fn apply_token_root(&self, hidden: &[f64], vector: &mut [f64]) {
        if let Some((label, covariates)) = vector.split_last_mut() {
            self.design.transform(covariates);
            *label = linalg::dot(hidden, covariates) + self.noise.prompt.sqrt() * *label;
        }
    }

    /// Rᵀ θ in place.
    pub(crate) fn apply_token_root_transpose(&self, hidden: &[f64], vector: &mut [f64]) {
        if let Some((label, covariates)) = vector.split_last_mut() {
            linalg::add_scaled(covariates, *label, hidden);
            self.design.transform_transpose(covariates);
            *label *= self.noise.prompt.sqrt();
        }
    }
}

/// w ~ N(0, scale · I).
pub(super) fn draw_normal(scale: f64, stream: &mut Stream, hidden: &mut [f64]) {
    stream.fill_normals(hidden);
    let deviation = scale.sqrt();
    hidden.iter_mut().for_each(|entry| *entry *= deviation);
}
