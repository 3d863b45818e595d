//! A cache that grows: new tokens of a causal model against all so far.

use super::{Heads, largest_of};
use crate::Error;
use crate::head::{Order, products_fit, sums_fit};
use crate::layer::append_heads;
use crate::model::{LayerAttention, LayerInput, Shape};
use esscher_core::Unwatched;
use esscher_core::numerics::{MultiplyAdd, VectorLoops, exponentials_f32, vectorised};
use faer::MatRef;
use rayon::prelude::*;

/// Cached tokens that one task of a decoding step reads; the same for any number of threads, so that no sum depends on it.
const DECODE_BLOCK: usize = 1024;

/// Lanes of a sum.
const LANES: usize = 8;

/// The attention of new tokens of a causal model to all tokens so far, whose keys and values it keeps in single precision.
#[derive(Debug, Clone)]
pub struct ExactCache {
    heads: Heads,
    layers: Vec<CachedLayer>,
    /// Room for a decoding step: scores, and per task and query head the largest score, the sum and the weighted values.
    scores: Vec<f32>,
    partial: Vec<f32>,
}

/// Per key-value head a row per token.
#[derive(Debug, Clone)]
struct CachedLayer {
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

impl ExactCache {
    /// An empty cache for models of this shape.
    ///
    /// # Errors
    /// A model whose tokens see all: later tokens would change what earlier ones saw.
    pub fn new(shape: &Shape) -> Result<Self, Error> {
        if shape.order == Order::Whole {
            return Err(Error::NeedsCausal { what: "a cache", remedy: "give the whole text in one call" });
        }
        let heads = vec![Vec::new(); shape.key_value_heads];
        let layer = CachedLayer { keys: heads.clone(), values: heads };
        Ok(ExactCache {
            heads: Heads::of(shape),
            layers: vec![layer; shape.layers],
            scores: Vec::new(),
            partial: Vec::new(),
        })
    }

    /// Tokens in the cache: those that the last layer has seen.
    pub fn len(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.len(self.heads.dimension))
    }

    /// Whether no token is in the cache.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the cached keys and values.
    pub fn bytes(&self) -> usize {
        let numbers = |heads: &[Vec<f32>]| heads.iter().map(Vec::len).sum::<usize>();
        4 * self.layers.iter().map(|layer| numbers(&layer.keys) + numbers(&layer.values)).sum::<usize>()
    }

    /// Appends tokens to a layer without attending: `keys` and `values` as in [`LayerInput`].
    ///
    /// # Errors
    /// A layer that the model does not have; keys and values that are no whole number of tokens.
    pub fn extend(&mut self, layer: usize, keys: &[f32], values: &[f32]) -> Result<(), Error> {
        let missing = Error::NoLayer { layer, layers: self.layers.len() };
        let cached = self.layers.get_mut(layer).ok_or(missing)?;
        let width = self.heads.key_value_heads * self.heads.dimension;
        if keys.len() != values.len() || !keys.len().is_multiple_of(width) {
            return Err(Error::WrongSizes {
                what: "keys and values of new tokens".to_string(),
                expected: format!("{width} for each of the same tokens"),
                found: vec![keys.len(), values.len()],
            });
        }
        cached.extend(keys, values, self.heads.dimension);
        Ok(())
    }
}

impl CachedLayer {
    fn len(&self, dimension: usize) -> usize {
        self.keys.first().map_or(0, |keys| keys.len() / dimension)
    }

    fn extend(&mut self, keys: &[f32], values: &[f32], dimension: usize) {
        append_heads(&mut self.keys, keys, dimension);
        append_heads(&mut self.values, values, dimension);
    }
}

impl LayerAttention for ExactCache {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        let heads = self.heads;
        heads.check(input, output)?;
        let missing = Error::NoLayer { layer: input.layer, layers: self.layers.len() };
        let expected = self.layers.get(input.layer).ok_or(missing)?.len(heads.dimension);
        if expected != input.start {
            let remedy = "give the tokens that follow those in the cache";
            return Err(Error::WrongStart { expected, found: input.start, remedy });
        }
        self.extend(input.layer, input.keys, input.values)?;
        let layer = &self.layers[input.layer];
        let tokens = input.start + input.count;
        let context = |head: usize| {
            (
                MatRef::from_row_major_slice(&layer.keys[head], tokens, heads.dimension),
                MatRef::from_row_major_slice(&layer.values[head], tokens, heads.dimension),
            )
        };
        let fits = match input.count {
            1 => heads.attend_token(input.tilts, layer, &mut self.scores, &mut self.partial, output),
            _ => {
                let fits = layer.keys.iter().all(|keys| products_fit(input.tilts, keys))
                    && layer.values.iter().all(|values| sums_fit(values));
                if fits {
                    heads.attend_prompt(input, Order::Causal, output, context, &Unwatched)?;
                }
                fits
            }
        };
        match fits {
            true => Ok(()),
            false => heads.attend_in_double(input, Order::Causal, output, context, &Unwatched),
        }
    }
}

impl Heads {
    /// One token against the cache: blocks of cached tokens side by side, then added up in order. Whether single precision held it.
    fn attend_token(
        self,
        tilts: &[f32],
        layer: &CachedLayer,
        scores: &mut Vec<f32>,
        partial: &mut Vec<f32>,
        output: &mut [f32],
    ) -> bool {
        let group = self.heads / self.key_value_heads;
        let tokens = layer.len(self.dimension);
        let blocks = tokens.div_ceil(DECODE_BLOCK);
        // Per query head: the weighted values, the largest score, the sum.
        let record = self.dimension + 2;
        scores.resize(self.key_value_heads * blocks * group * DECODE_BLOCK, 0.0);
        partial.resize(self.key_value_heads * blocks * group * record, 0.0);
        let task = |(task, (scores, partial)): (usize, (&mut [f32], &mut [f32]))| {
            let (head, block) = (task / blocks, task % blocks);
            let range = block * DECODE_BLOCK * self.dimension
                ..((block + 1) * DECODE_BLOCK).min(tokens) * self.dimension;
            attend_cached(
                &tilts[head * group * self.dimension..(head + 1) * group * self.dimension],
                &layer.keys[head][range.clone()],
                &layer.values[head][range],
                self.dimension,
                scores,
                partial,
            );
        };
        let (scores_of_task, partial_of_task) = (group * DECODE_BLOCK, group * record);
        if tokens * self.heads * self.dimension < 1 << 16 {
            let tasks =
                scores.chunks_exact_mut(scores_of_task).zip(partial.chunks_exact_mut(partial_of_task));
            tasks.enumerate().for_each(task);
        } else {
            let tasks = scores
                .par_chunks_exact_mut(scores_of_task)
                .zip(partial.par_chunks_exact_mut(partial_of_task));
            tasks.enumerate().for_each(task);
        }
        for (head, output) in output.chunks_exact_mut(self.dimension).enumerate() {
            let (key_value_head, member) = (head / group, head % group);
            let records = || {
                (0..blocks).map(|block| {
                    let record_number = (key_value_head * blocks + block) * group + member;
                    partial[record_number * record..(record_number + 1) * record].split_at(self.dimension)
                })
            };
            let largest = records().map(|(_, rest)| rest[0]).fold(f32::NEG_INFINITY, f32::max);
            let total: f32 = records().map(|(_, rest)| (rest[0] - largest).exp() * rest[1]).sum();
            output.fill(0.0);
            for (weighted, rest) in records() {
                let factor = (rest[0] - largest).exp() / total;
                output.iter_mut().zip(weighted).for_each(|(output, weighted)| *output += factor * weighted);
            }
        }
        partial.iter().chain(&*output).all(|number| number.is_finite())
    }
}

/// The query heads of a key-value head against a block of cached tokens; `partial` has per query head the weighted values,
/// the largest score, which is no number if single precision does not hold them all, and the sum.
fn attend_cached(
    tilts: &[f32],
    keys: &[f32],
    values: &[f32],
    dimension: usize,
    scores: &mut [f32],
    partial: &mut [f32],
) {
    let count = keys.len() / dimension;
    vectorised(CachedScores { tilts, keys, dimension, scores });
    for (scores, record) in scores.chunks_exact_mut(DECODE_BLOCK).zip(partial.chunks_exact_mut(dimension + 2))
    {
        let scores = &mut scores[..count];
        // A score that is not finite would be passed over.
        let sound = scores.iter().all(|score| score.is_finite());
        let largest = if sound { vectorised(Lowered(scores)) } else { f32::NAN };
        exponentials_f32(scores);
        record.fill(0.0);
        record[dimension] = largest;
    }
    vectorised(CachedValues { scores, values, dimension, partial });
}

/// The scores of cached tokens, a row of [`DECODE_BLOCK`] per query head.
struct CachedScores<'a> {
    tilts: &'a [f32],
    keys: &'a [f32],
    dimension: usize,
    scores: &'a mut [f32],
}

impl VectorLoops for CachedScores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        for (token, key) in self.keys.chunks_exact(self.dimension).enumerate() {
            for (head, tilt) in self.tilts.chunks_exact(self.dimension).enumerate() {
                self.scores[head * DECODE_BLOCK + token] = dot::<M>(tilt, key);
            }
        }
    }
}

/// Of its own because it rounds as the instruction set does, and adds its lanes pairwise.
#[inline(always)]
fn dot<M: MultiplyAdd>(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] = M::multiply_add(a[lane], b[lane], lanes[lane]);
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[lane] = M::multiply_add(*a, *b, lanes[lane]);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Subtracts the largest, and gives it.
struct Lowered<'a>(&'a mut [f32]);

impl VectorLoops for Lowered<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) -> f32 {
        let largest = largest_of(self.0, f32::NEG_INFINITY);
        self.0.iter_mut().for_each(|score| *score -= largest);
        largest
    }
}

/// Adds the values of cached tokens with their weights, and the weights.
struct CachedValues<'a> {
    scores: &'a [f32],
    values: &'a [f32],
    dimension: usize,
    partial: &'a mut [f32],
}

impl VectorLoops for CachedValues<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        for (token, value) in self.values.chunks_exact(self.dimension).enumerate() {
            for (head, record) in self.partial.chunks_exact_mut(self.dimension + 2).enumerate() {
                let weight = self.scores[head * DECODE_BLOCK + token];
                let (weighted, rest) = record.split_at_mut(self.dimension);
                for (weighted, value) in weighted.iter_mut().zip(value) {
                    *weighted = M::multiply_add(weight, *value, *weighted);
                }
                rest[1] += weight;
            }
        }
    }
}
