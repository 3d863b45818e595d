//! What one head sees of one text: tilts, keys and values.
//!
//! A query acts only through its tilt θ = q/√d: the score of a token with key k is θ·k. Everything in this crate hands on
//! tilts, so that no formula has a √d.

use crate::names::names;

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
