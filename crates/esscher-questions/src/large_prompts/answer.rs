//! The answer: a row for each number about a mechanism.

use crate::measured::Measured;
use esscher_lab::{named, rows};

named! {
    /// What a number is.
    pub enum Quantity {
        /// |limit − softmax's limit|.
        Distance = "distance-to-softmax",
        /// |limit|, of the output, its mean, or the output per token.
        Limit = "limit-norm",
        /// E |output − limit|² at a length.
        Error = "mean-squared-error",
        /// κ of its law c L^{−κ}.
        Rate = "rate",
    }
}

rows! {
    /// A number about a mechanism.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// Its name.
        mechanism: String,
        /// What becomes of its output on long prompts.
        fate: String,
        /// What the number is.
        quantity: Quantity,
        /// The prompt length.
        length: Option<u64>,
        /// The number.
        number: Measured,
    }
}
