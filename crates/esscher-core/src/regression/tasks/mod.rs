//! Tasks as laws of prompts: what the examples, the query and the target of one prompt are drawn from.
//!
//! A shift at test time is another task value: train on one, evaluate on the other.
//!
//! # Adding a task
//! 1. A struct with what fixes the law, checked in its constructor.
//! 2. [`Task::dimension`] and [`Task::draw`]. Begin with [`PromptDraw::begin`]; draw what belongs to the prompt as a
//!    whole (hidden vector, query, target) *before* the examples, and the examples in order, a fixed number of draws
//!    each: then a prompt is a prefix of every longer one with the same stream.
//! 3. Nothing else: [`RiskSimulation`](crate::regression::RiskSimulation),
//!    [`Descent`](crate::regression::Descent) and [`baseline_risks`](crate::regression::baseline_risks) take any task.
//!
//! ```
//! use esscher_core::numerics::Stream;
//! use esscher_core::regression::tasks::{PromptDraw, Task};
//!
//! /// Every label is the same hidden sign.
//! #[derive(Debug)]
//! struct OneSign;
//!
//! impl Task for OneSign {
//!     fn dimension(&self) -> usize {
//!         1
//!     }
//!     fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> esscher_core::Result<()> {
//!         prompt.begin(1, length)?;
//!         let sign = stream.normal().signum();
//!         prompt.set_target(sign);
//!         prompt.query_covariates_mut()[0] = stream.normal();
//!         for token in prompt.tokens_mut().chunks_exact_mut(2) {
//!             token.copy_from_slice(&[stream.normal(), sign]);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut prompt = PromptDraw::new();
//! OneSign.draw(3, &mut Stream::new(0, 0, 0), &mut prompt)?;
//! assert_eq!((prompt.length(), prompt.token(2)[1]), (3, prompt.target()));
//! # Ok::<(), esscher_core::Error>(())
//! ```

mod classification;
pub(crate) mod design;
mod generalised;
mod linear;
mod sparse;

pub use classification::ClassificationTask;
pub use generalised::{GeneralisedTask, Link};
pub use linear::LinearTask;
pub use sparse::SparseTask;

use crate::error::{Error, Result};
use crate::numerics::{Stream, check};
use std::fmt::Debug;

/// A law of prompts.
///
/// # Laws
/// - The prompt is a function of the task, the length and the stream: nothing else enters, and the buffer's past
///   does not show.
/// - The first L examples, the query and the target are the same for every length from L up.
pub trait Task: Send + Sync + Debug {
    /// d, the dimension of a covariate.
    fn dimension(&self) -> usize;

    /// Draws one prompt of `length` examples into `prompt`.
    ///
    /// # Errors
    /// A length of zero or one that does not fit into memory; what a law of covariates refuses.
    fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> Result<()>;

    /// The task as linear regression whose covariates are one centred Gaussian of full rank, where it is known to be
    /// that: training can then draw two
    /// numbers a token instead of d + 1, with the same law.
    fn as_gaussian_linear(&self) -> Option<&LinearTask> {
        None
    }
}

/// Numbers in a stored prompt at most: a gigabyte.
const LARGEST_PROMPT: usize = 1 << 27;

/// One prompt: L tokens (x, y), the query (x_q, 0), and the target to predict. Reused from draw to draw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptDraw {
    dimension: usize,
    tokens: Vec<f64>,
    query: Vec<f64>,
    target: f64,
    /// What is hidden from the layer: w, or the mean of a class.
    hidden: Vec<f64>,
    /// Covariates of a block, for laws that write them without labels.
    block: Vec<f64>,
}

impl PromptDraw {
    /// An empty buffer for prompts of any task.
    pub fn new() -> Self {
        PromptDraw::default()
    }

    /// A prompt that was drawn elsewhere: `tokens` row by row (x, y), the query's covariates, the target.
    ///
    /// # Errors
    /// No covariate, no example, half an example, entries that are not finite.
    pub fn from_rows(tokens: &[f64], query: &[f64], target: f64) -> Result<Self> {
        check::not_empty("the covariates (dimension)", query.len())?;
        check::whole_tokens(query.len() + 1, tokens.len())?;
        check::finite_vector("the tokens", tokens)?;
        check::finite_vector("the query", query)?;
        check::finite_vector("the target", &[target])?;
        let mut prompt = PromptDraw::new();
        prompt.begin(query.len(), tokens.len() / (query.len() + 1))?;
        prompt.tokens.copy_from_slice(tokens);
        prompt.query_covariates_mut().copy_from_slice(query);
        prompt.target = target;
        Ok(prompt)
    }

    /// Makes room for a prompt of this dimension and length; a task then fills all of it.
    ///
    /// # Errors
    /// A dimension or length of zero, or more than 2²⁷ numbers.
    pub fn begin(&mut self, dimension: usize, length: usize) -> Result<()> {
        check_prompt(dimension, length)?;
        self.dimension = dimension;
        self.tokens.resize(length * (dimension + 1), 0.0);
        self.query.resize(dimension + 1, 0.0);
        self.query[dimension] = 0.0;
        self.hidden.clear();
        self.hidden.resize(dimension, 0.0);
        Ok(())
    }

    /// The dimension d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The prompt length L.
    pub fn length(&self) -> usize {
        self.tokens.len() / (self.dimension + 1)
    }

    /// The tokens (x, y), one after the other.
    pub fn tokens(&self) -> &[f64] {
        &self.tokens
    }

    /// The tokens, to be filled.
    pub fn tokens_mut(&mut self) -> &mut [f64] {
        &mut self.tokens
    }

    /// Token number `index`, (x, y); empty if there is none.
    pub fn token(&self, index: usize) -> &[f64] {
        let size = self.dimension + 1;
        index.checked_mul(size).and_then(|start| self.tokens.get(start..start + size)).unwrap_or(&[])
    }

    /// (x_q, 0).
    pub fn query(&self) -> &[f64] {
        &self.query
    }

    /// x_q, to be filled.
    pub fn query_covariates_mut(&mut self) -> &mut [f64] {
        &mut self.query[..self.dimension]
    }

    /// What the layer is to predict.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Sets what the layer is to predict.
    pub fn set_target(&mut self, target: f64) {
        self.target = target;
    }

    /// The vector behind the labels (w, or the mean of a class) if the task has one, else zeros.
    pub fn hidden(&self) -> &[f64] {
        &self.hidden
    }
}

/// A prompt that can be stored.
pub(crate) fn check_prompt(dimension: usize, length: usize) -> Result<()> {
    check::at_least_one("the dimension of the covariates", dimension)?;
    check::at_least_one("the prompt length", length)?;
    let numbers = dimension.checked_add(1).and_then(|size| size.checked_mul(length));
    if numbers.is_some_and(|numbers| numbers <= LARGEST_PROMPT) {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "the length of a stored prompt",
        value: length as f64,
        expected: "at most 2²⁷ numbers in all its tokens",
    })
}
