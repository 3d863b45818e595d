//! Forward passes of real checkpoints, whose layers let anything compute their attention.

use crate::Error;
use crate::head::Order;

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Layers.
    pub layers: usize,
    /// Query heads of a layer.
    pub heads: usize,
    /// Key-value heads of a layer; query head h reads key-value head h / (heads / key_value_heads).
    pub key_value_heads: usize,
    /// Numbers per head.
    pub head_dimension: usize,
    /// Numbers per token in the residual stream.
    pub width: usize,
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Longest prompt.
    pub context: usize,
    /// Who may attend to whom.
    pub order: Order,
}

/// What the heads of a layer are given for some consecutive tokens.
#[derive(Debug, Clone, Copy)]
pub struct LayerInput<'a> {
    /// From 0.
    pub layer: usize,
    /// The position of the first token.
    pub start: usize,
    /// Tokens.
    pub count: usize,
    /// q/√d with positions applied: `count` × heads × head dimension.
    pub tilts: &'a [f32],
    /// With positions applied: `count` × key-value heads × head dimension.
    pub keys: &'a [f32],
    /// `count` × key-value heads × head dimension.
    pub values: &'a [f32],
    /// The stream that the layer's output is added to: `count` × width.
    pub residual: &'a [f32],
}

/// Computes the attention of every layer: exactly, with replaced heads, from a cache; or records what it is given.
pub trait LayerAttention {
    /// Writes the heads' outputs, `count` × heads × head dimension (before the output projection).
    ///
    /// # Errors
    /// What the implementation refuses.
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error>;
}
