//! The answer: a row for each text or prompt that the model was given with an assignment.

use esscher_lab::{named, rows};

named! {
    /// What a number is.
    pub enum Quantity {
        /// The mean of −ln p(next token).
        LogLoss = "log-loss",
        /// The share of the hidden codes that are found whole.
        Retrieval = "retrieval",
        /// 1 − cosine to the embedding with exact attention.
        EmbeddingDistance = "embedding-distance",
        /// The number of a token in the vocabulary: what the model wrote after the beginning of the first text, at `position`.
        WrittenToken = "written-token",
    }
}

rows! {
    /// What the model made of a text with an assignment.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// The assignment's name.
        assignment: String,
        /// How it runs.
        running: String,
        /// The number of the text, or of the prompt with needles.
        text: usize,
        /// What the number is.
        quantity: Quantity,
        /// The position of the token in its text, for written tokens.
        position: Option<usize>,
        /// The number; missing if it is not finite.
        value: Option<f64>,
    }
}
