//! The answer: a row for each number about a head on a text.

use esscher_lab::{named, rows};

named! {
    /// What a number is.
    pub enum Quantity {
        /// The variance of the scores.
        ScoreVariance = "score-variance",
        /// How many tokens the weights amount to.
        EffectiveTokens = "effective-tokens",
        /// How far the output is from that of half the tokens.
        HalfTokenNoise = "half-token-noise",
        /// The weight of the first token.
        FirstTokenWeight = "first-token-weight",
        /// Where the sink is.
        SinkPosition = "sink-position",
        /// Its weight.
        SinkWeight = "sink-weight",
        /// The weight of one query of the text on the token at `position`, one of its heaviest.
        TokenWeight = "token-weight",
        /// The error of a candidate relative to the head's output.
        OutputError = "output-error",
        /// The error of a candidate relative to the residual stream.
        ResidualError = "residual-error",
    }
}

rows! {
    /// A number about a head on a text.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// Tokens of the text.
        length: usize,
        /// The text's number.
        text: usize,
        /// The layer's number.
        layer: usize,
        /// The head's number in its layer.
        head: usize,
        /// What the number is.
        quantity: Quantity,
        /// The candidate that it is about, for errors.
        candidate: Option<String>,
        /// How the candidate runs.
        running: Option<String>,
        /// The position of the token that it is about, for weights of tokens.
        position: Option<usize>,
        /// The number; missing if it is not finite.
        value: Option<f64>,
    }
}
