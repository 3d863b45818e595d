//! What one head sees of one text: tilts, keys and values.
//!
//! A query acts only through its tilt θ = q/√d: the score of a token with key k is θ·k. Everything in this crate hands on
//! tilts, so that no formula has a √d.

use crate::names::names;
use esscher_core::numerics::exponentials_f32;
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
    product_in_double(x, y)
}

/// x·y in double precision, where no product of single numbers overflows.
pub(crate) fn product_in_double<'a>(
    x: impl IntoIterator<Item = &'a f32>,
    y: impl IntoIterator<Item = &'a f32>,
) -> f64 {
    x.into_iter().zip(y).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Whether all products of two rows, one of each table, and all their partial sums are finite in single precision.
pub(crate) fn products_fit(x: &[f32], y: &[f32]) -> bool {
    // |x·y| ≤ |x||y|, and no row is longer than its table. The bound leaves room for the rounding of the sums of squares.
    f64::from(dot_in_lanes(x, x)) * f64::from(dot_in_lanes(y, y)) < 1e76
}

/// Whether all sums of a table's numbers with weights up to 1 are finite in single precision.
pub(crate) fn sums_fit(table: &[f32]) -> bool {
    // A sum of squares that does not overflow keeps every number below 2e19.
    dot_in_lanes(table, table).is_finite()
}

/// Larger values are refused where heads are replaced. Far above those of trained models, and small enough that sums of 10⁸ squares are
/// finite in single precision.
pub(crate) const LARGEST_VALUE: f32 = 1e15;

/// Replaces differences to the largest score of a row by weights. What is hidden, or too low for single precision, has none: the
/// fast exponential is never zero, and a value that is large enough would show through.
pub(crate) fn weigh(differences: &mut [f32]) {
    exponentials_f32(differences);
    for weight in differences {
        if *weight < 2.0 * f32::MIN_POSITIVE {
            *weight = 0.0;
        }
    }
}

/// Σ e^s v / Σ e^s over parts of a score s and a value v each, in double precision: for scores and sums that single precision does not
/// hold. Not a number if a score is not finite, or if there is no part.
pub(crate) fn mean_in_double<'a, V: IntoIterator<Item = &'a f32>>(
    parts: impl Iterator<Item = (f64, V)> + Clone,
    mean: &mut [f32],
) {
    let mut largest = f64::NEG_INFINITY;
    for (score, _) in parts.clone() {
        // `max` would pass over what is not a number.
        if !score.is_finite() {
            return mean.fill(f32::NAN);
        }
        largest = largest.max(score);
    }
    let (mut total, mut sums) = (0.0, vec![0.0; mean.len()]);
    for (score, value) in parts {
        let weight = (score - largest).exp();
        total += weight;
        sums.iter_mut().zip(value).for_each(|(sum, entry)| *sum += weight * f64::from(*entry));
    }
    mean.iter_mut().zip(&sums).for_each(|(mean, sum)| *mean = (sum / total) as f32);
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
