//! The answer: a row for each number about a training.

use crate::measured::Measured;
use esscher_core::Ending;
use esscher_lab::{named, rows};

named! {
    /// What a number is.
    pub enum Quantity {
        /// Mean over a stretch of training batches, with its standard error over them.
        Loss = "loss",
        /// The share of right answers, likewise.
        Accuracy = "accuracy",
        /// The loss before the first step.
        FirstLoss = "first-loss",
        /// The loss on examples that no training has seen.
        TestLoss = "test-loss",
        /// The share of right answers on them.
        TestAccuracy = "test-accuracy",
        /// The share of test answers that are the same token by token.
        Streaming = "streaming-agreement",
        /// Bytes between two tokens at the end of a sequence.
        State = "state-bytes",
        /// Numbers that training changes.
        Size = "trained-numbers",
    }
}

rows! {
    /// A number about a training.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// The mechanism.
        mechanism: String,
        /// The seed of the training.
        seed: u64,
        /// What the number is.
        quantity: Quantity,
        /// The training step, where the number has one.
        step: Option<u64>,
        /// How the training ended.
        ending: Ending,
        /// The number.
        number: Measured,
    }
}
