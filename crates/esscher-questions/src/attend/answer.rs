//! The answer: a row for each number.

use crate::measured::Measured;
use esscher_lab::{named, rows};

named! {
    /// What a number is.
    pub enum Quantity {
        /// A coordinate of the output.
        Output = "output",
        /// A coordinate of the output for the Gaussian with the same mean and covariance: linear in the query.
        GaussianLimit = "gaussian-limit",
        /// How many tokens share the weight, 1 / Σ p².
        EffectiveTokens = "effective-tokens",
        /// The root-mean-square error of a prompt of that length.
        Error = "root-mean-square-error",
    }
}

rows! {
    /// A number about a query.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// Which query, from 0.
        query: u64,
        /// What the number is.
        quantity: Quantity,
        /// Which coordinate of the output, from 0.
        coordinate: Option<u64>,
        /// The length of the prompt.
        length: Option<u64>,
        /// The number.
        number: Measured,
        /// A warning about the number: heavy tails make its standard error too small.
        note: Option<String>,
    }
}
