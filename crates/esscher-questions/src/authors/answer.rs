//! The answer: errors of trained layers, of the best ones and of Bayes, by length.

use crate::measured::Measured;
use esscher_core::Ending;
use esscher_lab::{named, rows};

named! {
    /// Who predicts.
    pub enum Model {
        /// Softmax attention.
        Softmax = "softmax",
        /// Linear attention.
        Linear = "linear",
        /// The posterior mean.
        Bayes = "bayes",
    }
}

named! {
    /// What a number is: a mean squared error, but for the count of lost starts.
    pub enum Quantity {
        /// Of the trained layer on test prompts.
        TestError = "test-error",
        /// Of the trained layer, exactly in the tokens.
        TrainedError = "trained-error",
        /// The same from every start that gave a layer, where there are several starts.
        StartError = "start-error",
        /// How many starts gave none, where some did: their numbers left the doubles.
        LostStarts = "lost-starts",
        /// Of the best layer, or of Bayes.
        Optimum = "optimum",
    }
}

rows! {
    /// An error at a length.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// Tokens of a prompt.
        length: i64,
        /// Who predicts.
        model: Model,
        /// Which error it is.
        quantity: Quantity,
        /// How the training or the flow that led there ended; nothing where there was none.
        ending: Option<Ending>,
        /// The error.
        number: Measured,
    }
}

/// The row of a model at a length.
pub fn find(rows: &[Row], length: i64, model: Model, quantity: Quantity) -> Option<&Row> {
    rows.iter().find(|row| (row.length, row.model, row.quantity) == (length, model, quantity))
}
