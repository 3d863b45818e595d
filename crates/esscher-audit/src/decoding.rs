//! Decoding with an assignment: a cache per key-value head, constant in memory where all its readers are replaced.

use crate::Error;
use crate::assignment::Assignment;
use crate::calibration::Calibration;
use crate::candidate::{Candidate, Frame};
use crate::head::Order;
use crate::model::{ExactCache, LayerAttention, LayerInput, Shape};
use crate::replacement::StreamingCache;
use rayon::prelude::*;

/// The caches of all layers: tokens may come in any pieces, in order.
pub struct MixedCache {
    shape: Shape,
    layers: Vec<Vec<GroupCache>>,
    tokens: Vec<usize>,
}

enum GroupCache {
    Exact(Box<ExactCache>),
    Streaming(Box<StreamingCache>),
}

impl MixedCache {
    /// Empty caches. A key-value head streams if all its readers have one and the same measure as candidate; otherwise it is exact.
    ///
    /// # Errors
    /// An encoder, whose tokens see what comes later; a candidate that cannot be streamed token by token.
    pub fn new(
        shape: &Shape,
        assignment: &Assignment,
        frame: &Frame,
        calibration: &Calibration,
    ) -> Result<Self, Error> {
        if shape.order == Order::Whole {
            return Err(Error::Request(
                "an encoder reads whole texts: it has no cache to decode with".to_string(),
            ));
        }
        let readers = (shape.heads / shape.key_value_heads.max(1)).max(1);
        let group = |candidates: &[Candidate], layer: usize, group: usize| match candidates[0] {
            Candidate::Measure { top, middle } if candidates.iter().all(|other| *other == candidates[0]) => {
                let replacement = frame.replacement(top, middle);
                let readers = &calibration.layer(layer)[group];
                let cache = StreamingCache::new(&replacement, readers, shape.head_dimension);
                Ok(GroupCache::Streaming(Box::new(cache)))
            }
            Candidate::Kept { .. } => Err(Error::Request(format!(
                "layer {layer}: `{}` is compared on whole texts only; decode with exact heads and measures",
                candidates[0]
            ))),
            _ => {
                // A model of one layer with one key-value head.
                let alone = Shape { layers: 1, heads: readers, key_value_heads: 1, ..*shape };
                Ok(GroupCache::Exact(Box::new(ExactCache::new(&alone)?)))
            }
        };
        let layers = assignment
            .rows()
            .iter()
            .enumerate()
            .map(|(layer, row)| {
                row.chunks(readers)
                    .enumerate()
                    .map(|(number, candidates)| group(candidates, layer, number))
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(MixedCache { shape: *shape, layers, tokens: vec![0; shape.layers] })
    }

    /// Bytes of keys, values and states held now.
    pub fn bytes(&self) -> usize {
        let of_group = |group: &GroupCache| match group {
            GroupCache::Exact(cache) => cache.bytes(),
            GroupCache::Streaming(cache) => cache.bytes(),
        };
        self.layers.iter().flatten().map(of_group).sum()
    }
}

impl LayerAttention for MixedCache {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        let tokens = &mut self.tokens[input.layer];
        if input.start != *tokens {
            return Err(Error::Request(format!(
                "the cache of layer {} holds {tokens} tokens, the next cannot be at position {}",
                input.layer, input.start
            )));
        }
        *tokens += input.count;
        let (d, heads, groups) = (self.shape.head_dimension, self.shape.heads, self.shape.key_value_heads);
        let readers = heads / groups.max(1);
        let answered: Vec<Result<Vec<f32>, Error>> = self.layers[input.layer]
            .par_iter_mut()
            .enumerate()
            .map(|(group, cache)| {
                let columns = |table: &[f32], heads: usize, first: usize, count: usize| -> Vec<f32> {
                    let tokens = table.chunks_exact(heads * d);
                    tokens.flat_map(|token| &token[first * d..(first + count) * d]).copied().collect()
                };
                let tilts = columns(input.tilts, heads, group * readers, readers);
                let keys = columns(input.keys, groups, group, 1);
                let values = columns(input.values, groups, group, 1);
                let mut outputs = vec![0.0; tilts.len()];
                match cache {
                    GroupCache::Exact(cache) => {
                        let alone =
                            LayerInput { layer: 0, tilts: &tilts, keys: &keys, values: &values, ..*input };
                        cache.attend(&alone, &mut outputs)?;
                    }
                    GroupCache::Streaming(cache) => {
                        let tokens = keys.chunks_exact(d).zip(values.chunks_exact(d));
                        let asked =
                            tilts.chunks_exact(readers * d).zip(outputs.chunks_exact_mut(readers * d));
                        for ((key, value), (tilts, outputs)) in tokens.zip(asked) {
                            cache.absorb(key, value);
                            for (tilt, output) in tilts.chunks_exact(d).zip(outputs.chunks_exact_mut(d)) {
                                cache.read(tilt, output);
                            }
                        }
                    }
                }
                Ok(outputs)
            })
            .collect();
        for (group, outputs) in answered.into_iter().enumerate() {
            let outputs = outputs?;
            for (token, row) in outputs.chunks_exact(readers * d).enumerate() {
                output[(token * heads + group * readers) * d..][..readers * d].copy_from_slice(row);
            }
        }
        Ok(())
    }
}
