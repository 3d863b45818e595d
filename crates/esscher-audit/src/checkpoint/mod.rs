//! Checkpoints: bytes of a file in one of the field's formats -> the weights of an architecture.

use crate::weights::Matrix;

/// The weights of a model, by architecture.
#[derive(Debug, Clone)]
pub enum Weights {
    /// Decoders like Llama: llama2.c, GGUF, safetensors.
    Llama(LlamaWeights),
    /// Encoders like BERT: safetensors.
    Bert(BertWeights),
}

/// How positions turn keys and queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation {
    /// Angle of pair j at position t: t · base^{−2j/d}.
    pub base: f32,
    /// Which numbers form a pair.
    pub pairs: Pairs,
}

/// Which numbers of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// (0, 1), (2, 3), …: llama2.c and GGUF.
    Neighbours,
    /// (0, d/2), (1, d/2 + 1), …: safetensors of transformers.
    Halves,
}

/// A decoder: RMS norms before attention and before the gated feed-forward layer.
#[derive(Debug, Clone)]
pub struct LlamaWeights {
    /// Query heads.
    pub heads: usize,
    /// Key-value heads.
    pub key_value_heads: usize,
    /// Numbers per head.
    pub head_dimension: usize,
    /// Longest prompt.
    pub context: usize,
    /// Positions.
    pub rotation: Rotation,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// Vocabulary × width.
    pub embedding: Matrix,
    /// In order.
    pub layers: Vec<LlamaLayer>,
    /// Width.
    pub final_norm: Vec<f32>,
    /// Vocabulary × width; the embedding if there is none.
    pub unembedding: Option<Matrix>,
}

/// A layer of a decoder.
#[derive(Debug, Clone)]
pub struct LlamaLayer {
    /// Width.
    pub attention_norm: Vec<f32>,
    /// Heads · head dimension × width.
    pub query: Matrix,
    /// Key-value heads · head dimension × width.
    pub key: Matrix,
    /// Key-value heads · head dimension × width.
    pub value: Matrix,
    /// Width × heads · head dimension.
    pub output: Matrix,
    /// Width.
    pub feed_forward_norm: Vec<f32>,
    /// Hidden × width.
    pub gate: Matrix,
    /// Hidden × width.
    pub up: Matrix,
    /// Width × hidden.
    pub down: Matrix,
}

/// An encoder: layer norms after attention and after the feed-forward layer, learned positions.
#[derive(Debug, Clone)]
pub struct BertWeights {
    /// Heads.
    pub heads: usize,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// Vocabulary × width.
    pub words: Matrix,
    /// Longest text × width.
    pub positions: Matrix,
    /// Width: what is added to every word of a first sentence.
    pub segment: Vec<f32>,
    /// Of the sum of the three.
    pub embedding_norm: LayerNorm,
    /// In order.
    pub layers: Vec<BertLayer>,
}

/// A layer of an encoder.
#[derive(Debug, Clone)]
pub struct BertLayer {
    /// Queries of all heads.
    pub query: Affine,
    /// Keys of all heads.
    pub key: Affine,
    /// Values of all heads.
    pub value: Affine,
    /// From the heads' outputs to the stream.
    pub output: Affine,
    /// After attention.
    pub attention_norm: LayerNorm,
    /// To the hidden numbers, then the exact GELU.
    pub up: Affine,
    /// Back.
    pub down: Affine,
    /// After the feed-forward layer.
    pub feed_forward_norm: LayerNorm,
}

/// x -> W x + b.
#[derive(Debug, Clone)]
pub struct Affine {
    /// W.
    pub matrix: Matrix,
    /// b.
    pub bias: Vec<f32>,
}

/// x -> gain · (x − mean) / sd + bias.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    /// Per number.
    pub gain: Vec<f32>,
    /// Per number.
    pub bias: Vec<f32>,
}
