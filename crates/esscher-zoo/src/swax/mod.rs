//! The layout of SWAX: layers of sliding-window softmax attention and mLSTM in turn, trained with a window drawn per batch (key `cabannes2025`).
//!
//! Softmax over a short window and a recurrent memory share the work. With a long window softmax takes all of the training
//! signal and the memory is never exercised; a window that is longer in tests than in training breaks rotary positions. So
//! the window is short with some probability for every batch, long otherwise, and long for the last tenth of training and in
//! tests.
//!
//! Known from reports of others that agree: the alternation one to one, windows of 128 and 2048, probabilities of the short
//! one 0.5 (1.4 billion parameters) and 0.75 (7 billion). Unknown: which of the two comes first (mLSTM here), the base of the
//! rotations ([`ROTARY_BASE`] is a port's), the schedule of learning rates. There is no official code. What a layer consists of
//! besides its mixer (gated perceptron, norms, residuals) is the model's.

use crate::catalogue::Sizes;
use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use crate::mlstm::MatrixLstm;
use crate::selective_rope::{Rotated, Rotation};
use crate::softmax::{Reach, Softmax};
use esscher_core::numerics::Stream;
use std::sync::Arc;

/// The base of the rotary positions in the windows' layers, as a port has it.
pub const ROTARY_BASE: f64 = 10_000.0;

/// The part of training at its end in which the window is always the long one.
pub const SETTLED: f64 = 0.1;

/// The block of the windows' streams: examples and weights of the same seed read others.
const WINDOW_BLOCK: u32 = 2;

/// Which mixer a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// The recurrent memory.
    Mlstm,
    /// Softmax attention over the last tokens, with rotary positions.
    SlidingWindow,
}

impl LayerKind {
    /// The mixer, with this window where it has one.
    pub fn mechanism(self, sizes: Sizes, window: usize) -> Arc<dyn Mechanism> {
        let (key_width, value_width) = (sizes.key, sizes.value);
        match self {
            LayerKind::Mlstm => Arc::new(MatrixLstm { key_width, value_width }),
            LayerKind::SlidingWindow => Arc::new(Rotated {
                inner: Softmax { key_width, value_width, reach: Reach::Window(window) },
                rotation: Rotation::Fixed { base: ROTARY_BASE },
            }),
        }
    }
}

/// The mixers of this many layers, in turn, the mLSTM first.
///
/// ```
/// use esscher_zoo::swax::{LayerKind::{Mlstm, SlidingWindow}, layout};
/// assert_eq!(layout(3), [Mlstm, SlidingWindow, Mlstm]);
/// ```
pub fn layout(layers: usize) -> Vec<LayerKind> {
    [LayerKind::Mlstm, LayerKind::SlidingWindow].into_iter().cycle().take(layers).collect()
}

/// How long the window is at every step of training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowSchedule {
    steps: usize,
    short: usize,
    long: usize,
    probability: f64,
    seed: u64,
}

impl WindowSchedule {
    /// A schedule over `steps` batches: `short` with this probability, otherwise `long`.
    ///
    /// # Errors
    /// A window of no tokens, a short one longer than the long one, a probability outside of [0, 1].
    pub fn new(steps: usize, short: usize, long: usize, probability: f64, seed: u64) -> Result<Self> {
        if short == 0 || short > long {
            return Err(Error::Option {
                name: "short",
                expected: format!("between 1 and the long window, {long}"),
                found: short.to_string(),
            });
        }
        if !(0.0..=1.0).contains(&probability) {
            return Err(Error::Option {
                name: "probability",
                expected: "between 0 and 1".to_string(),
                found: probability.to_string(),
            });
        }
        Ok(WindowSchedule { steps, short, long, probability, seed })
    }

    /// The window of a batch: a function of seed and step alone, so that training can resume anywhere.
    pub fn window_at(&self, step: usize) -> usize {
        if step >= self.settled_from() {
            return self.long;
        }
        let drawn = Stream::new(self.seed, step as u32, WINDOW_BLOCK).uniform();
        if drawn < self.probability { self.short } else { self.long }
    }

    /// The first step of the last tenth.
    pub fn settled_from(&self) -> usize {
        self.steps - (SETTLED * self.steps as f64).round() as usize
    }

    /// The window in tests, the long one.
    pub fn window_in_tests(&self) -> usize {
        self.long
    }
}
