//! What one head sees of one text: tilts, keys and values.
//!
//! A query acts only through its tilt θ = q/√d: the score of a token with key k is θ·k. Everything in this crate hands on
//! tilts, so that no formula has a √d.

use crate::names::names;
use esscher_core::numerics::linalg::dot_in_lanes;

/// Who may attend to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A token sees itself and what came before: language models.
    Causal,
    /// Every token sees all: encoders.
    Whole,
}

names!(Order, "an order", { Causal => "causal", Whole => "whole" });

/// Heads of more numbers are refused: what calibration keeps of a head grows with their square.
pub const LARGEST_DIMENSION: usize = 1024;

/// The tokens of one key-value head on one text, and the tilts of one query head that reads them.
///
/// All three have a row of `dimension` numbers per token. Positions are already in the keys and tilts (rotated).
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// Who may attend to whom.
    pub order: Order,
    /// Numbers per key, per value and per tilt.
    pub dimension: usize,
    /// θ = q/√d, a row per token.
    pub tilts: &'a [f32],
    /// The keys, a row per token.
    pub keys: &'a [f32],
    /// The values, a row per token.
    pub values: &'a [f32],
}

impl Head<'_> {
    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.keys.len() / self.dimension.max(1)
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// |x|² of a row, summed in single precision, and in double where that overflows or loses what is small.
pub(crate) fn squared_norm(row: &[f32]) -> f64 {
    unless_lost(dot_in_lanes(row, row), row)
}

/// x·y, summed in single precision, and in double where that overflows.
pub(crate) fn inner_product(x: &[f32], y: &[f32]) -> f64 {
    let single = dot_in_lanes(x, y);
    if single.is_finite() {
        return f64::from(single);
    }
    x.iter().zip(y).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// A sum of squares in single precision, or the sum of the row's squares in double precision where the first is not to be trusted.
///
/// Ordinary sums keep their bits. The bound is far above the steps of the smallest numbers, so that what single precision lost
/// below it is less than its own rounding.
pub(crate) fn unless_lost(single: f32, row: &[f32]) -> f64 {
    if (1e-30..f32::INFINITY).contains(&single) {
        f64::from(single)
    } else {
        row.iter().map(|entry| f64::from(*entry).powi(2)).sum()
    }
}
