//! The forward pass of decoders like Llama.

use super::layers::{Angles, add, gated, root_mean_square_norm};
use super::{LayerAttention, LayerInput, Shape};
use crate::Error;
use crate::checkpoint::LlamaWeights;
use crate::error::unless_stopped;
use esscher_core::Monitor;

/// Final hidden states after the final norm, or none if the monitor asked to stop.
pub(super) fn forward(
    weights: &LlamaWeights,
    shape: &Shape,
    tokens: &[u32],
    start: usize,
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<f32>>, Error> {
    let (count, width, dimension) = (tokens.len(), shape.width, shape.head_dimension);
    let (query_width, key_width) = (shape.heads * dimension, shape.key_value_heads * dimension);
    let hidden_width = weights.layers.iter().map(|layer| layer.gate.rows()).max().unwrap_or(0);

    let mut stream = vec![0.0; count * width];
    for (row, token) in stream.chunks_exact_mut(width).zip(tokens) {
        weights.embedding.write_row(*token as usize, row);
    }
    let angles = Angles::new(weights.rotation, dimension, start, count);
    let mut normed = vec![0.0; count * width];
    let mut tilts = vec![0.0; count * query_width];
    let mut keys = vec![0.0; count * key_width];
    let mut values = vec![0.0; count * key_width];
    let mut attended = vec![0.0; count * query_width];
    let mut gate = vec![0.0; count * hidden_width];
    let mut up = vec![0.0; count * hidden_width];

    for (number, layer) in weights.layers.iter().enumerate() {
        if monitor.should_stop() {
            return Ok(None);
        }
        root_mean_square_norm(&stream, &layer.attention_norm, weights.norm_epsilon, &mut normed);
        layer.query.multiply(&normed, &mut tilts);
        layer.key.multiply(&normed, &mut keys);
        layer.value.multiply(&normed, &mut values);
        angles.turn(&mut tilts, query_width, 1.0 / (dimension as f32).sqrt());
        angles.turn(&mut keys, key_width, 1.0);
        let input = LayerInput {
            layer: number,
            start,
            count,
            tilts: &tilts,
            keys: &keys,
            values: &values,
            residual: &stream,
        };
        if unless_stopped(attention.attend(&input, &mut attended))?.is_none() {
            return Ok(None);
        }
        layer.output.multiply(&attended, &mut normed);
        add(&mut stream, &normed);

        root_mean_square_norm(&stream, &layer.feed_forward_norm, weights.norm_epsilon, &mut normed);
        let hidden = count * layer.gate.rows();
        let (gate, up) = (&mut gate[..hidden], &mut up[..hidden]);
        layer.gate.multiply(&normed, gate);
        layer.up.multiply(&normed, up);
        gated(gate, up);
        layer.down.multiply(gate, &mut normed);
        add(&mut stream, &normed);
        monitor.progress(number + 1, weights.layers.len());
    }
    root_mean_square_norm(&stream, &weights.final_norm, weights.norm_epsilon, &mut normed);
    Ok(Some(normed))
}
