//! The answer: L(ε) by dimension and ε, the excess there, before and beyond, and what first order predicts.

use crate::measured::Measured;
use esscher_lab::{named, rows};

named! {
    /// How a search for L(ε) ended.
    pub enum Outcome {
        /// At a length that is enough where one token less is not.
        Found = "found",
        /// At one token.
        OneToken = "one token is enough",
        /// No length up to 10¹² is enough.
        Beyond = "beyond 1e12 tokens",
    }
}

named! {
    /// What a number is.
    pub enum Quantity {
        /// L(ε).
        Horizon = "horizon",
        /// The excess risk where training at L(ε) ends.
        ExcessRisk = "excess-risk",
        /// The same with one token less.
        ExcessRiskBefore = "excess-risk-before",
        /// The same at a multiple of L(ε).
        ExcessRiskBeyond = "excess-risk-beyond",
        /// min R₁(b)/ε, the prediction of L(ε).
        FirstOrderHorizon = "first-order-horizon",
        /// The scale of the initial layer below which the theorem is proved.
        ProvedScale = "proved-scale",
        /// The risk that no layer falls below.
        NoiseFloor = "noise-floor",
    }
}

rows! {
    /// A number about one dimension and one ε.
    #[derive(Debug, Clone)]
    pub struct Row {
        /// Dimension of the covariates.
        dimension: i64,
        /// The scale α of the initial layer.
        initial_scale: f64,
        /// ε, the excess over the noise floor that is asked for.
        excess: f64,
        /// How the search ended.
        outcome: Outcome,
        /// The prompt length of this number, if it has one.
        length: Option<i64>,
        /// What the number is.
        quantity: Quantity,
        /// The number.
        number: Measured,
    }
}

/// The row of a quantity for the dimension and ε of another row.
pub fn beside<'a>(rows: &'a [Row], row: &Row, quantity: Quantity) -> Option<&'a Row> {
    rows.iter().find(|other| {
        other.quantity == quantity && (other.dimension, other.excess) == (row.dimension, row.excess)
    })
}
