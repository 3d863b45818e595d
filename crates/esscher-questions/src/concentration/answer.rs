//! The answer: errors at every length, slopes between lengths, and fitted rates.

use esscher_core::{Accuracy, Quantity};
use esscher_lab::{named, rows};

named! {
    /// How an error was computed.
    pub enum Engine {
        /// By one-dimensional integrals.
        Exact = "exact",
        /// By simulation.
        Sampled = "sampled",
    }
}

named! {
    /// What a row holds.
    pub enum Statistic {
        /// A mean squared error at a length.
        Error = "error",
        /// κ between two neighbouring lengths.
        Slope = "slope",
        /// κ fitted to all lengths from `from_length` on.
        Rate = "rate",
    }
}

rows! {
    /// An error, a slope or a rate.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Row {
        /// The law, by its name.
        law: String,
        /// The factor on its tokens.
        sigma: f64,
        /// H, the deviation of the scores along the worst direction of the queries.
        operator_norm: f64,
        /// The proved sub-Gaussian parameter of the scaled tokens.
        sub_gaussian: Option<f64>,
        /// How it was computed.
        engine: Engine,
        /// Whose error it is.
        quantity: Quantity,
        /// What the number is.
        statistic: Statistic,
        /// The shortest length behind a slope or a rate.
        from_length: Option<u64>,
        /// L, or the longest length behind a slope or a rate.
        length: u64,
        /// The number; none where there is no logarithm or too few lengths.
        value: Option<f64>,
        /// One standard error, or the bound on the error of an exact value.
        error: Option<f64>,
        /// The lower end of the confidence interval of a rate.
        lower: Option<f64>,
        /// Its upper end.
        upper: Option<f64>,
        /// The class of the value.
        accuracy: Accuracy,
        /// κ(H) beside slopes and rates of Gaussian tokens.
        theory: Option<f64>,
        /// Warnings, and where the interval of a rate comes from.
        note: Option<String>,
    }
}

impl Row {
    /// Whether two rows are of the same law at the same scale.
    pub fn same_tokens(&self, other: &Row) -> bool {
        self.law == other.law && self.sigma == other.sigma
    }

    /// The law with its scale, for legends.
    pub fn tokens(&self) -> String {
        format!("{}, σ = {}", self.law, self.sigma)
    }
}

/// The rows about one quantity.
pub fn rows_of(rows: &[Row], quantity: Quantity) -> Vec<&Row> {
    rows.iter().filter(|row| row.quantity == quantity).collect()
}

/// The first row of each law and scale, in their order.
pub fn tokens_of<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let mut tokens: Vec<&Row> = Vec::new();
    for &row in rows {
        if !tokens.iter().any(|known| known.same_tokens(row)) {
            tokens.push(row);
        }
    }
    tokens
}

/// What one engine says of a statistic of these tokens.
pub fn select<'a>(rows: &[&'a Row], tokens: &Row, engine: Engine, statistic: Statistic) -> Vec<&'a Row> {
    let is_one = |row: &&&Row| row.same_tokens(tokens) && row.engine == engine && row.statistic == statistic;
    rows.iter().filter(is_one).copied().collect()
}
