//! Forward passes of real checkpoints, whose layers let anything compute their attention.

mod bert;
mod check;
mod exact;
mod layers;
mod likelihood;
mod llama;
mod projection;
mod recorder;

pub use exact::{ExactAttention, ExactCache};
pub(crate) use likelihood::ROWS as ROWS_TOGETHER;
pub use projection::OutputProjection;
pub use recorder::{RecordedLayer, Recorder, Recording};

use crate::Error;
use crate::checkpoint::Weights;
use crate::head::{LARGEST_VALUE, Order};
use crate::weights::Matrix;
use esscher_core::Monitor;

/// The sizes of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of layers.
    pub layers: usize,
    /// Query heads of a layer.
    pub heads: usize,
    /// Key-value heads of a layer; query head h reads key-value head h / (heads / key_value_heads).
    pub key_value_heads: usize,
    /// Numbers of a query, a key or a value of one head.
    pub head_dimension: usize,
    /// Numbers per token in the residual stream.
    pub width: usize,
    /// Rows of the embedding: the tokens of the vocabulary and what pads it. Probabilities are over all rows, as those of
    /// llama.cpp and transformers are.
    pub vocabulary: usize,
    /// The longest prompt that the model takes, in tokens.
    pub context: usize,
    /// Who may attend to whom.
    pub order: Order,
}

impl Shape {
    /// Query heads that read one key-value head.
    pub fn readers(&self) -> usize {
        self.heads / self.key_value_heads.max(1)
    }

    /// Layer and number of every query head, layer by layer.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let heads = self.heads;
        (0..self.layers).flat_map(move |layer| (0..heads).map(move |head| (layer, head)))
    }
}

/// What the heads of a layer are given for some consecutive tokens.
#[derive(Debug, Clone, Copy)]
pub struct LayerInput<'a> {
    /// The number of the layer, from 0.
    pub layer: usize,
    /// The position of the first token.
    pub start: usize,
    /// Number of tokens.
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

impl LayerInput<'_> {
    /// Refuses what a layer of this model cannot be given.
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Error> {
        if self.layer >= shape.layers {
            return Err(Error::NoLayer { layer: self.layer, layers: shape.layers });
        }
        let numbers = |heads: usize| self.count.saturating_mul(heads).saturating_mul(shape.head_dimension);
        let expected = [numbers(shape.heads), numbers(shape.key_value_heads), numbers(shape.key_value_heads)];
        let found = [self.tilts.len(), self.keys.len(), self.values.len()];
        let shared = shape.key_value_heads > 0 && shape.heads.is_multiple_of(shape.key_value_heads);
        if found != expected || shape.head_dimension == 0 || !shared {
            return Err(Error::WrongSizes {
                what: format!(
                    "tilts, keys and values of {} tokens in layer {} with {} query heads, {} key-value heads and {} numbers per \
                     head",
                    self.count, self.layer, shape.heads, shape.key_value_heads, shape.head_dimension
                ),
                expected: format!("{expected:?}"),
                found: found.to_vec(),
            });
        }
        self.check_scores(shape.head_dimension)
    }

    /// Refuses layers whose scores single precision may not hold, and values that are too large beside others. Attention itself is computed in double precision there, but what
    /// replaces a head is fitted in single precision: its errors would be numbers without a meaning.
    fn check_scores(&self, dimension: usize) -> Result<(), Error> {
        let sound = |table: &[f32]| table.iter().all(|entry| entry.is_finite());
        let largest = |table: &[f32]| table.iter().fold(0.0_f32, |largest, entry| largest.max(entry.abs()));
        let reach = if sound(self.tilts) && sound(self.keys) && sound(self.values) {
            f64::from(largest(self.tilts)) * f64::from(largest(self.keys)) * dimension as f64
        } else {
            f64::INFINITY
        };
        if reach > f64::from(f32::MAX) {
            return Err(Error::ScoresOverflow { layer: self.layer, reach });
        }
        match largest(self.values) {
            reach if reach > LARGEST_VALUE => {
                Err(Error::ValuesTooLarge { what: format!("layer {}", self.layer), reach })
            }
            _ => Ok(()),
        }
    }
}

/// Computes the attention of every layer: exactly, with replaced heads, from a cache; or records what it is given.
pub trait LayerAttention {
    /// Writes the heads' outputs, `count` × heads × head dimension (before the output projection).
    ///
    /// # Errors
    /// What the implementation refuses.
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error>;
}

/// A checkpoint that can be run; its weights stay as they were stored.
#[derive(Debug, Clone)]
pub struct Model {
    weights: Weights,
    shape: Shape,
}

impl Model {
    /// A model of these weights.
    ///
    /// # Errors
    /// Sizes that do not fit together.
    pub fn new(weights: Weights) -> Result<Self, Error> {
        let shape = match &weights {
            Weights::Llama(weights) => check::llama(weights)?,
            Weights::Bert(weights) => check::bert(weights)?,
        };
        Ok(Model { weights, shape })
    }

    /// The sizes of the model.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The weights as they were stored.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The hidden states of some consecutive tokens, the first at position `start`, after the last layer and the final norm:
    /// tokens × width. None if the monitor, asked before every layer, wanted to stop, or the attention was stopped by its own.
    ///
    /// # Errors
    /// No token, a token that is not in the vocabulary, a text longer than the context, an encoder's text that does not start
    /// at 0; what `attention` refuses.
    pub fn forward(
        &self,
        tokens: &[u32],
        start: usize,
        attention: &mut dyn LayerAttention,
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<f32>>, Error> {
        check::tokens(&self.shape, tokens, start)?;
        match &self.weights {
            Weights::Llama(weights) => {
                llama::forward(weights, &self.shape, tokens, start, attention, monitor)
            }
            Weights::Bert(weights) => bert::forward(weights, &self.shape, tokens, attention, monitor),
        }
    }

    /// The logits of rows of hidden states: rows × vocabulary. For encoders: the products with the word embeddings.
    ///
    /// # Errors
    /// Hidden states that are no whole number of rows.
    pub fn logits(&self, hidden: &[f32]) -> Result<Vec<f32>, Error> {
        let rows = check::rows(&self.shape, hidden)?;
        let mut logits = vec![0.0; rows * self.shape.vocabulary];
        self.unembedding().multiply(hidden, &mut logits);
        Ok(logits)
    }

    /// ln p(next token) for each row of hidden states. The table rows × vocabulary is never whole in memory.
    ///
    /// # Errors
    /// Another number of rows than of next tokens, a token that is not in the vocabulary.
    pub fn log_likelihoods(&self, hidden: &[f32], next: &[u32]) -> Result<Vec<f64>, Error> {
        let rows = check::rows(&self.shape, hidden)?;
        if rows != next.len() {
            return Err(Error::WrongSizes {
                what: "next tokens of rows of hidden states".to_string(),
                expected: format!("{rows}, one for each row"),
                found: vec![next.len()],
            });
        }
        check::in_vocabulary(&self.shape, next)?;
        Ok(likelihood::log_likelihoods(self.unembedding(), hidden, next))
    }

    /// The output projection of a layer; nothing if there is no such layer.
    pub fn output_projection(&self, layer: usize) -> Option<OutputProjection> {
        let output = match &self.weights {
            Weights::Llama(weights) => &weights.layers.get(layer)?.output,
            Weights::Bert(weights) => &weights.layers.get(layer)?.output.matrix,
        };
        Some(OutputProjection::new(output, self.shape.heads))
    }

    fn unembedding(&self) -> &Matrix {
        match &self.weights {
            Weights::Llama(weights) => weights.unembedding.as_ref().unwrap_or(&weights.embedding),
            Weights::Bert(weights) => &weights.words,
        }
    }
}
