//! Two classes: labels ±1, x = y · mean + noise, the mean drawn for each prompt.

use super::design::Design;
use super::{PromptDraw, Task};
use crate::error::Result;
use crate::measure::Law;
use crate::numerics::{Stream, check, linalg};

/// Prompts of a mixture of two classes with means ±m: labels are fair signs, x = y m + noise, and m is uniform on the
/// sphere whose radius is the separation. With Gaussian noise the classes are Gaussian.
///
/// ```
/// use esscher_core::measure::Gaussian;
/// use esscher_core::numerics::Stream;
/// use esscher_core::regression::tasks::{ClassificationTask, PromptDraw, Task};
/// use std::sync::Arc;
///
/// let task = ClassificationTask::new(2.0, Arc::new(Gaussian::standard(3)?))?;
/// let mut prompt = PromptDraw::new();
/// task.draw(5, &mut Stream::new(0, 0, 0), &mut prompt)?;
/// assert!(prompt.tokens().chunks(4).all(|token| token[3].abs() == 1.0));
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClassificationTask {
    design: Design,
    separation: f64,
}

impl ClassificationTask {
    /// Classes at distance 2 · separation, with this law of the noise around their means.
    ///
    /// # Errors
    /// A separation that is not a positive number, a law of dimension zero.
    pub fn new(separation: f64, noise: Law) -> Result<Self> {
        ClassificationTask::with_queries(separation, noise.clone(), noise)
    }

    /// Another law of the noise at the query.
    ///
    /// # Errors
    /// Also laws of different dimension.
    pub fn with_queries(separation: f64, noise: Law, query_noise: Law) -> Result<Self> {
        check::positive("the separation of the classes", separation)?;
        Ok(ClassificationTask { design: Design::new(noise, query_noise)?, separation })
    }

    /// The distance |m| of the classes from the origin.
    pub fn separation(&self) -> f64 {
        self.separation
    }
}

impl Task for ClassificationTask {
    fn dimension(&self) -> usize {
        self.design.dimension()
    }

    fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<()> {
        let dimension = self.dimension();
        prompt.begin(dimension, length)?;
        stream.fill_normals(&mut prompt.hidden);
        let scale = self.separation / linalg::norm(&prompt.hidden).max(f64::MIN_POSITIVE);
        prompt.hidden.iter_mut().for_each(|entry| *entry *= scale);
        // The sign of the normal that stands beside the covariates is the label.
        prompt.target = self.design.draw_query(stream, prompt)?.signum();
        linalg::add_scaled(&mut prompt.query[..dimension], prompt.target, &prompt.hidden);
        self.design.draw_tokens(stream, prompt)?;
        for row in prompt.tokens.chunks_exact_mut(dimension + 1) {
            if let Some((label, covariates)) = row.split_last_mut() {
                *label = label.signum();
                linalg::add_scaled(covariates, *label, &prompt.hidden);
            }
        }
        Ok(())
    }
}
