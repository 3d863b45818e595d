//! The answer: a single row.

use crate::measured::Measured;
use esscher_core::concentration::Quantity;
use esscher_lab::{named, rows};

named! {
    /// What came of the search.
    pub enum Outcome {
        /// There is such a length.
        Found = "found",
        /// The longest length is not enough.
        Beyond = "beyond",
    }
}

rows! {
    /// How long a prompt must be.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// Whether a length was found.
        outcome: Outcome,
        /// The horizon, if it was.
        length: Option<u64>,
        /// What the error is of.
        quantity: Quantity,
        /// The root-mean-square error that was asked for.
        tolerance: f64,
        /// The root-mean-square error at the horizon, or at the longest length.
        number: Measured,
        /// The longest length that is known to be too short.
        too_short: Option<u64>,
        /// What the tokens were taken for, where they came as an array.
        tokens: Option<String>,
    }
}
