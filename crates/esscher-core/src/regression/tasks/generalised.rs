//! Generalised linear targets: y = g(⟨w, x⟩) + noise with a named link g.

use super::design::{Design, Noise, noise_and_prior};
use super::linear::draw_normal;
use super::{PromptDraw, Task};
use crate::error::Result;
use crate::measure::Law;
use crate::numerics::{Stream, check};

/// The function between ⟨w, x⟩ and the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// g(t) = t.
    Identity,
    /// −1, 0 or 1.
    Sign,
    /// tanh t.
    Tanh,
    /// max(t, 0).
    Relu,
    /// g(t) = t³.
    Cubic,
}

impl Link {
    /// Every link.
    pub const ALL: [Link; 5] = [Link::Identity, Link::Sign, Link::Tanh, Link::Relu, Link::Cubic];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Link::Identity => "identity",
            Link::Sign => "sign",
            Link::Tanh => "tanh",
            Link::Relu => "relu",
            Link::Cubic => "cubic",
        }
    }

    /// g(t).
    pub fn apply(self, t: f64) -> f64 {
        match self {
            Link::Identity => t,
            Link::Sign => f64::from(u8::from(t > 0.0)) - f64::from(u8::from(t < 0.0)),
            Link::Tanh => t.tanh(),
            Link::Relu => t.max(0.0),
            Link::Cubic => t * t * t,
        }
    }
}

/// Prompts with y = g(⟨w, x⟩) + noise, w ~ N(0, k I).
///
/// ```
/// use esscher_core::measure::Gaussian;
/// use esscher_core::numerics::Stream;
/// use esscher_core::regression::tasks::{GeneralisedTask, Link, PromptDraw, Task};
/// use std::sync::Arc;
///
/// let task = GeneralisedTask::new(Link::Sign, Arc::new(Gaussian::standard(2)?))?;
/// let mut prompt = PromptDraw::new();
/// task.draw(5, &mut Stream::new(0, 0, 0), &mut prompt)?;
/// assert_eq!(prompt.target().abs(), 1.0);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GeneralisedTask {
    design: Design,
    noise: Noise,
    prior_scale: f64,
    link: Link,
}

impl GeneralisedTask {
    /// Covariates and queries of one law, no noise, prior N(0, I).
    ///
    /// # Errors
    /// A law of dimension zero.
    pub fn new(link: Link, covariates: Law) -> Result<Self> {
        GeneralisedTask::with_queries(link, covariates.clone(), covariates)
    }

    /// Covariates of one law, queries of another.
    ///
    /// # Errors
    /// Laws of different dimension, or of dimension zero.
    pub fn with_queries(link: Link, covariates: Law, queries: Law) -> Result<Self> {
        let design = Design::new(covariates, queries)?;
        Ok(GeneralisedTask { design, noise: Noise::default(), prior_scale: 1.0, link })
    }

    noise_and_prior!();

    /// The link g.
    pub fn link(&self) -> Link {
        self.link
    }
}

impl Task for GeneralisedTask {
    fn dimension(&self) -> usize {
        self.design.dimension()
    }

    fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<()> {
        prompt.begin(self.dimension(), length)?;
        draw_normal(self.prior_scale, stream, &mut prompt.hidden);
        self.design.draw_labelled(self.noise, |score| self.link.apply(score), stream, prompt)
    }
}
