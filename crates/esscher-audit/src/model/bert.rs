//! The forward pass of encoders like BERT.

use super::layers::{add, add_bias, gelu, layer_norm};
use super::{LayerAttention, LayerInput, Shape};
use crate::Error;
use crate::checkpoint::{Affine, BertWeights};
use crate::error::unless_stopped;
use esscher_core::Monitor;

/// Final hidden states, or none if the monitor asked to stop.
pub(super) fn forward(
    weights: &BertWeights,
    shape: &Shape,
    tokens: &[u32],
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<f32>>, Error> {
    let (count, width) = (tokens.len(), shape.width);
    let epsilon = weights.norm_epsilon;
    let hidden_width = weights.layers.iter().map(|layer| layer.up.matrix.rows()).max().unwrap_or(0);

    let mut stream = vec![0.0; count * width];
    let mut projected = vec![0.0; count * width];
    let embedded = stream.chunks_exact_mut(width).zip(projected.chunks_exact_mut(width));
    for (position, ((row, other), token)) in embedded.zip(tokens).enumerate() {
        weights.words.write_row(*token as usize, row);
        weights.positions.write_row(position, other);
        add(row, other);
    }
    add_bias(&mut stream, &weights.segment);
    layer_norm(&mut stream, &weights.embedding_norm, epsilon);

    let (mut tilts, mut keys, mut values, mut attended) =
        (projected.clone(), projected.clone(), projected.clone(), projected.clone());
    let mut hidden = vec![0.0; count * hidden_width];
    let factor = 1.0 / (shape.head_dimension as f32).sqrt();
    for (number, layer) in weights.layers.iter().enumerate() {
        if monitor.should_stop() {
            return Ok(None);
        }
        apply(&layer.query, &stream, &mut tilts);
        apply(&layer.key, &stream, &mut keys);
        apply(&layer.value, &stream, &mut values);
        tilts.iter_mut().for_each(|tilt| *tilt *= factor);
        let input = LayerInput {
            layer: number,
            start: 0,
            count,
            tilts: &tilts,
            keys: &keys,
            values: &values,
            residual: &stream,
        };
        if unless_stopped(attention.attend(&input, &mut attended))?.is_none() {
            return Ok(None);
        }
        apply(&layer.output, &attended, &mut projected);
        add(&mut stream, &projected);
        layer_norm(&mut stream, &layer.attention_norm, epsilon);

        let hidden = &mut hidden[..count * layer.up.matrix.rows()];
        apply(&layer.up, &stream, hidden);
        gelu(hidden);
        apply(&layer.down, hidden, &mut projected);
        add(&mut stream, &projected);
        layer_norm(&mut stream, &layer.feed_forward_norm, epsilon);
        monitor.progress(number + 1, weights.layers.len());
    }
    Ok(Some(stream))
}

fn apply(affine: &Affine, inputs: &[f32], outputs: &mut [f32]) {
    affine.matrix.multiply(inputs, outputs);
    add_bias(outputs, &affine.bias);
}
