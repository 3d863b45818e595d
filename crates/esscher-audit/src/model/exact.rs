//! Exact attention in blocks: of a whole prompt, or of new tokens after a cache that grows.
//!
//! Softmax is accumulated block after block of keys: a row keeps the largest score m so far, Σ e^{s − m} and Σ e^{s − m} v, all
//! multiplied by e^{m − m'} when a larger m' arrives. The table of all scores never exists.

use super::{LayerAttention, LayerInput, Shape};
use crate::Error;
use crate::head::Order;
use esscher_core::numerics::{MultiplyAdd, VectorLoops, exponentials_f32, vectorised};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Query tokens of a task.
const QUERY_BLOCK: usize = 64;

/// Keys that are scored together: a multiple of the 24 rows of the kernels of AVX2.
const KEY_BLOCK: usize = 96;

/// Cached tokens that one task of a decoding step reads; the same for any number of threads, so that no sum depends on it.
const DECODE_BLOCK: usize = 1024;

/// Lanes of a sum.
const LANES: usize = 8;

/// The attention of whole prompts, given in one call per layer.
#[derive(Debug, Clone, Copy)]
pub struct ExactAttention {
    heads: Heads,
    order: Order,
}

impl ExactAttention {
    /// For models of this shape.
    pub fn new(shape: &Shape) -> Self {
        ExactAttention { heads: Heads::of(shape), order: shape.order }
    }
}

impl LayerAttention for ExactAttention {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        if input.start != 0 {
            return Err(Error::Request(format!(
                "attention without a cache needs the whole prompt in one call, but the call starts at token {}; use a cache",
                input.start
            )));
        }
        self.heads.check(input, output)?;
        let width = self.heads.key_value_heads * self.heads.dimension;
        let keys = MatRef::from_row_major_slice(input.keys, input.count, width);
        let values = MatRef::from_row_major_slice(input.values, input.count, width);
        self.heads.attend_prompt(input, self.order, output, |head| {
            let first = head * self.heads.dimension;
            (keys.subcols(first, self.heads.dimension), values.subcols(first, self.heads.dimension))
        });
        Ok(())
    }
}

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
            return Err(Error::Request(
                "a cache needs a causal model, and every token of this one sees all; give the whole text in one call"
                    .to_string(),
            ));
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
        let count = self.layers.len();
        let Some(cached) = self.layers.get_mut(layer) else {
            return Err(Error::Request(format!(
                "the cache has {count} layers, counted from 0: no layer {layer}"
            )));
        };
        let width = self.heads.key_value_heads * self.heads.dimension;
        if keys.len() != values.len() || !keys.len().is_multiple_of(width) {
            return Err(Error::Request(format!(
                "keys and values need {width} numbers for each of the same tokens, but have {} and {}",
                keys.len(),
                values.len()
            )));
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
        for (cached, new) in [(&mut self.keys, keys), (&mut self.values, values)] {
            let width = cached.len() * dimension;
            for (head, cached) in cached.iter_mut().enumerate() {
                let tokens = new.chunks_exact(width);
                cached.extend(tokens.flat_map(|token| &token[head * dimension..(head + 1) * dimension]));
            }
        }
    }
}

impl LayerAttention for ExactCache {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        let heads = self.heads;
        heads.check(input, output)?;
        let found = self.layers.get(input.layer).map(|layer| layer.len(heads.dimension));
        if found != Some(input.start) {
            return Err(Error::Request(format!(
                "tokens must follow those in the cache: layer {} has {} of them, but the call starts at token {}",
                input.layer,
                found.unwrap_or(0),
                input.start
            )));
        }
        self.extend(input.layer, input.keys, input.values)?;
        let layer = &self.layers[input.layer];
        if input.count == 1 {
            heads.attend_token(input.tilts, layer, &mut self.scores, &mut self.partial, output);
        } else {
            let tokens = input.start + input.count;
            heads.attend_prompt(input, Order::Causal, output, |head| {
                (
                    MatRef::from_row_major_slice(&layer.keys[head], tokens, heads.dimension),
                    MatRef::from_row_major_slice(&layer.values[head], tokens, heads.dimension),
                )
            });
        }
        Ok(())
    }
}

/// The numbers of heads and of their entries.
#[derive(Debug, Clone, Copy)]
struct Heads {
    heads: usize,
    key_value_heads: usize,
    dimension: usize,
}

/// Buffers of a task.
#[derive(Default)]
struct Room {
    queries: Vec<f32>,
    scores: Vec<f32>,
    largest: Vec<f32>,
    sums: Vec<f32>,
    factors: Vec<f32>,
    weighted: Vec<f32>,
}

impl Heads {
    fn of(shape: &Shape) -> Self {
        Heads {
            heads: shape.heads,
            key_value_heads: shape.key_value_heads.max(1),
            dimension: shape.head_dimension.max(1),
        }
    }

    fn check(self, input: &LayerInput<'_>, output: &[f32]) -> Result<(), Error> {
        let queries = input.count * self.heads * self.dimension;
        let keys = input.count * self.key_value_heads * self.dimension;
        let found = [input.tilts.len(), input.keys.len(), input.values.len(), output.len()];
        if found != [queries, keys, keys, queries] {
            return Err(Error::Request(format!(
                "attention of {} tokens with {} query heads, {} key-value heads and {} numbers per head needs {queries}, \
                 {keys}, {keys} and {queries} tilts, keys, values and outputs, but was given {found:?}",
                input.count, self.heads, self.key_value_heads, self.dimension
            )));
        }
        Ok(())
    }

    /// Blocks of query tokens, each against all that it sees; `context` gives the keys and values of a key-value head.
    fn attend_prompt<'a>(
        self,
        input: &LayerInput<'_>,
        order: Order,
        output: &mut [f32],
        context: impl Fn(usize) -> (MatRef<'a, f32>, MatRef<'a, f32>) + Sync,
    ) {
        let width = self.heads * self.dimension;
        let start = input.start;
        output
            .par_chunks_mut(QUERY_BLOCK * width)
            .zip(input.tilts.par_chunks(QUERY_BLOCK * width))
            .enumerate()
            .with_max_len(1)
            .for_each_init(Room::default, |room, (block, (output, tilts))| {
                let first = start + block * QUERY_BLOCK;
                for head in 0..self.key_value_heads {
                    let (keys, values) = context(head);
                    self.attend_block(order, first, head, tilts, keys, values, output, room);
                }
            });
    }

    /// The query heads of one key-value head on a block of tokens, the first of which is token `first`.
    #[allow(clippy::too_many_arguments, reason = "one call; a struct would name them twice")]
    fn attend_block(
        self,
        order: Order,
        first: usize,
        head: usize,
        tilts: &[f32],
        keys: MatRef<'_, f32>,
        values: MatRef<'_, f32>,
        output: &mut [f32],
        room: &mut Room,
    ) {
        let (dimension, width) = (self.dimension, self.heads * self.dimension);
        let group = self.heads / self.key_value_heads;
        let columns = head * group * dimension..(head + 1) * group * dimension;
        // A row of queries per token and query head, tokens first.
        room.queries.clear();
        for token in tilts.chunks_exact(width) {
            room.queries.extend_from_slice(&token[columns.clone()]);
        }
        let rows = room.queries.len() / dimension;
        let seen = match order {
            Order::Causal => (first + rows / group).min(keys.nrows()),
            Order::Whole => keys.nrows(),
        };
        refill(&mut room.largest, rows, f32::NEG_INFINITY);
        refill(&mut room.sums, rows, 0.0);
        refill(&mut room.factors, rows, 0.0);
        refill(&mut room.weighted, rows * dimension, 0.0);
        room.scores.resize(rows * KEY_BLOCK, 0.0);
        let queries = MatRef::from_row_major_slice(&room.queries, rows, dimension);
        for begin in (0..seen).step_by(KEY_BLOCK) {
            let count = KEY_BLOCK.min(seen - begin);
            let scores = &mut room.scores[..rows * count];
            matmul(
                MatMut::from_row_major_slice_mut(scores, rows, count),
                Accum::Replace,
                queries,
                keys.subrows(begin, count).transpose(),
                1.0,
                Par::Seq,
            );
            let visible = Visible { order, group, first, begin, count };
            let (largest, factors) = (&mut room.largest, &mut room.factors);
            vectorised(Shift { visible, scores, largest, factors });
            exponentials_f32(scores);
            exponentials_f32(factors);
            let (sums, weighted) = (&mut room.sums, &mut room.weighted);
            vectorised(Rescale { visible, scores, factors: &room.factors, sums, weighted, dimension });
            matmul(
                MatMut::from_row_major_slice_mut(weighted, rows, dimension),
                Accum::Add,
                MatRef::from_row_major_slice(scores, rows, count),
                values.subrows(begin, count),
                1.0,
                Par::Seq,
            );
        }
        let results = room.weighted.chunks_exact(group * dimension).zip(room.sums.chunks_exact(group));
        for (token, (weighted, sums)) in output.chunks_exact_mut(width).zip(results) {
            let heads = token[columns.clone()].chunks_exact_mut(dimension);
            for ((output, weighted), sum) in heads.zip(weighted.chunks_exact(dimension)).zip(sums) {
                let factor = 1.0 / sum;
                output.iter_mut().zip(weighted).for_each(|(output, weighted)| *output = weighted * factor);
            }
        }
    }

    /// One token against the cache: blocks of cached tokens side by side, then added up in order.
    fn attend_token(
        self,
        tilts: &[f32],
        layer: &CachedLayer,
        scores: &mut Vec<f32>,
        partial: &mut Vec<f32>,
        output: &mut [f32],
    ) {
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
    }
}

/// Empties and fills anew, keeping the room.
fn refill(numbers: &mut Vec<f32>, count: usize, value: f32) {
    numbers.clear();
    numbers.resize(count, value);
}

/// Which scores of a block count: rows are tokens from `first` on, `group` rows each; columns are keys from `begin` on.
#[derive(Clone, Copy)]
struct Visible {
    order: Order,
    group: usize,
    first: usize,
    begin: usize,
    count: usize,
}

impl Visible {
    #[inline(always)]
    fn of_row(self, row: usize) -> usize {
        match self.order {
            Order::Causal => (self.first + row / self.group + 1).saturating_sub(self.begin).min(self.count),
            Order::Whole => self.count,
        }
    }
}

/// Subtracts the largest score so far from every row; `factors` becomes old minus new largest.
struct Shift<'a> {
    visible: Visible,
    scores: &'a mut [f32],
    largest: &'a mut [f32],
    factors: &'a mut [f32],
}

impl VectorLoops for Shift<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        let rows = self.scores.chunks_exact_mut(self.visible.count);
        for (row, ((scores, largest), factor)) in rows.zip(self.largest).zip(self.factors).enumerate() {
            let seen = self.visible.of_row(row);
            let new = largest_of(&scores[..seen], *largest);
            // Nothing seen yet: the sums are zero, and any finite factor will do.
            *factor = if *largest == f32::NEG_INFINITY { 0.0 } else { *largest - new };
            *largest = new;
            for score in &mut scores[..seen] {
                *score -= new;
            }
            scores[seen..].fill(0.0);
        }
    }
}

#[inline(always)]
fn largest_of(numbers: &[f32], start: f32) -> f32 {
    let (blocks, rest) = numbers.as_chunks::<16>();
    let mut lanes = [start; 16];
    for block in blocks {
        for lane in 0..16 {
            lanes[lane] = if block[lane] > lanes[lane] { block[lane] } else { lanes[lane] };
        }
    }
    lanes.iter().chain(rest).fold(start, |a, b| if *b > a { *b } else { a })
}

#[inline(always)]
fn sum_of(numbers: &[f32]) -> f32 {
    let (blocks, rest) = numbers.as_chunks::<16>();
    let mut lanes = [0.0; 16];
    for block in blocks {
        for lane in 0..16 {
            lanes[lane] += block[lane];
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// Multiplies what was summed by the factors, adds the new exponentials, and clears those that do not count.
struct Rescale<'a> {
    visible: Visible,
    scores: &'a mut [f32],
    factors: &'a [f32],
    sums: &'a mut [f32],
    weighted: &'a mut [f32],
    dimension: usize,
}

impl VectorLoops for Rescale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        let rows = self.scores.chunks_exact_mut(self.visible.count);
        let sums = self.sums.iter_mut().zip(self.weighted.chunks_exact_mut(self.dimension));
        for (row, ((scores, factor), (sum, weighted))) in rows.zip(self.factors).zip(sums).enumerate() {
            let seen = self.visible.of_row(row);
            scores[seen..].fill(0.0);
            *sum = *sum * factor + sum_of(&scores[..seen]);
            for weighted in weighted {
                *weighted *= factor;
            }
        }
    }
}

/// The query heads of a key-value head against a block of cached tokens; `partial` has per query head the weighted values,
/// the largest score and the sum.
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
        let largest = vectorised(Lowered(scores));
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
