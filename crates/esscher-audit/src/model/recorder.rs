//! Keeps what every head of every layer was given on a text, while something else computes the attention.

use super::{LayerAttention, LayerInput, Shape};
use crate::Error;
use crate::head::Head;
use crate::layer::append_heads;

/// Computes attention with `A` and records tilts, keys, values and the norms of the residual stream.
#[derive(Debug, Clone)]
pub struct Recorder<A> {
    inner: A,
    shape: Shape,
    layers: Vec<Growing>,
}

/// A row per token for each head, and the norms.
#[derive(Debug, Clone)]
struct Growing {
    tilts: Vec<Vec<f32>>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    residual_norms: Vec<f32>,
}

impl<A: LayerAttention> Recorder<A> {
    /// Records what `inner` is given by a model of this shape.
    pub fn new(inner: A, shape: &Shape) -> Self {
        let queries = vec![Vec::new(); shape.heads];
        let keys = vec![Vec::new(); shape.key_value_heads];
        let layer = Growing { tilts: queries, keys: keys.clone(), values: keys, residual_norms: Vec::new() };
        Recorder { inner, shape: *shape, layers: vec![layer; shape.layers] }
    }

    /// What was recorded, and the attention that was wrapped.
    pub fn finish(self) -> (Recording, A) {
        let layers: Vec<_> = self
            .layers
            .into_iter()
            .map(|layer| RecordedLayer {
                tilts: layer.tilts.concat(),
                keys: layer.keys.concat(),
                values: layer.values.concat(),
                residual_norms: layer.residual_norms,
            })
            .collect();
        let tokens = layers.iter().map(|layer| layer.residual_norms.len()).min().unwrap_or(0);
        (Recording { shape: self.shape, tokens, layers }, self.inner)
    }
}

impl<A: LayerAttention> LayerAttention for Recorder<A> {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        self.inner.attend(input, output)?;
        let layers = self.layers.len();
        let missing = Error::NoLayer { layer: input.layer, layers };
        let layer = self.layers.get_mut(input.layer).ok_or(missing)?;
        let dimension = self.shape.head_dimension;
        append_heads(&mut layer.tilts, input.tilts, dimension);
        append_heads(&mut layer.keys, input.keys, dimension);
        append_heads(&mut layer.values, input.values, dimension);
        let rows = input.residual.chunks_exact(self.shape.width);
        layer
            .residual_norms
            .extend(rows.map(|row| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() as f32));
        Ok(())
    }
}

/// What the heads of a model saw of a text.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The sizes of the model that read the text.
    pub shape: Shape,
    /// Tokens that every layer has seen.
    pub tokens: usize,
    /// What each layer saw, the first layer first.
    pub layers: Vec<RecordedLayer>,
}

/// What the heads of one layer saw.
#[derive(Debug, Clone)]
pub struct RecordedLayer {
    /// q/√d with positions applied: heads × tokens × head dimension.
    pub tilts: Vec<f32>,
    /// With positions applied: key-value heads × tokens × head dimension.
    pub keys: Vec<f32>,
    /// Key-value heads × tokens × head dimension.
    pub values: Vec<f32>,
    /// The norm of the stream that the layer's output is added to, per token.
    pub residual_norms: Vec<f32>,
}

impl Recording {
    /// One query head with the keys and values that it reads; nothing if the model has no such head.
    pub fn head(&self, layer: usize, query_head: usize) -> Option<Head<'_>> {
        let recorded = self.layers.get(layer)?;
        let tokens = recorded.residual_norms.len();
        let size = tokens * self.shape.head_dimension;
        let key_value_head = query_head / self.shape.readers().max(1);
        Some(Head {
            order: self.shape.order,
            dimension: self.shape.head_dimension,
            tilts: recorded.tilts.get(query_head * size..(query_head + 1) * size)?,
            keys: recorded.keys.get(key_value_head * size..(key_value_head + 1) * size)?,
            values: recorded.values.get(key_value_head * size..(key_value_head + 1) * size)?,
        })
    }
}
