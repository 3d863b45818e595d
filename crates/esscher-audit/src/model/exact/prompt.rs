//! The attention of whole prompts: blocks of queries against blocks of keys.

use super::{Heads, largest_of};
use crate::Error;
use crate::error::go_on;
use crate::head::{Order, mean_in_double, product_in_double, products_fit, sums_fit};
use crate::model::{LayerAttention, LayerInput, Shape};
use esscher_core::numerics::{MultiplyAdd, VectorLoops, exponentials_f32, vectorised};
use esscher_core::{Monitor, Unwatched};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Query tokens of a task.
const QUERY_BLOCK: usize = 64;

/// Keys that are scored together: a multiple of the 24 rows of the kernels of AVX2.
const KEY_BLOCK: usize = 96;

/// The attention of whole prompts, given in one call per layer.
#[derive(Clone, Copy)]
pub struct ExactAttention<'a> {
    heads: Heads,
    order: Order,
    monitor: &'a dyn Monitor,
}

impl ExactAttention<'static> {
    /// For models of this shape.
    pub fn new(shape: &Shape) -> Self {
        Self::watched(shape, &Unwatched)
    }
}

impl<'a> ExactAttention<'a> {
    /// For models of this shape; a call ends with [`Error::Stopped`] soon after the monitor asks for it.
    pub fn watched(shape: &Shape, monitor: &'a dyn Monitor) -> ExactAttention<'a> {
        ExactAttention { heads: Heads::of(shape), order: shape.order, monitor }
    }
}

impl LayerAttention for ExactAttention<'_> {
    fn attend(&mut self, input: &LayerInput<'_>, output: &mut [f32]) -> Result<(), Error> {
        if input.start != 0 {
            let remedy = "give the whole prompt in one call, or use a cache";
            return Err(Error::WrongStart { expected: 0, found: input.start, remedy });
        }
        self.heads.check(input, output)?;
        let width = self.heads.key_value_heads * self.heads.dimension;
        let keys = MatRef::from_row_major_slice(input.keys, input.count, width);
        let values = MatRef::from_row_major_slice(input.values, input.count, width);
        let context = |head: usize| {
            let first = head * self.heads.dimension;
            (keys.subcols(first, self.heads.dimension), values.subcols(first, self.heads.dimension))
        };
        match products_fit(input.tilts, input.keys) && sums_fit(input.values) {
            true => self.heads.attend_prompt(input, self.order, output, context, self.monitor),
            false => self.heads.attend_in_double(input, self.order, output, context, self.monitor),
        }
    }
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
    /// Blocks of query tokens, each against all that it sees; `context` gives the keys and values of a key-value head. Scores and sums
    /// must fit single precision: what overflows would look like an answer.
    pub(super) fn attend_prompt<'a>(
        self,
        input: &LayerInput<'_>,
        order: Order,
        output: &mut [f32],
        context: impl Fn(usize) -> (MatRef<'a, f32>, MatRef<'a, f32>) + Sync,
        monitor: &dyn Monitor,
    ) -> Result<(), Error> {
        let width = self.heads * self.dimension;
        let start = input.start;
        output
            .par_chunks_mut(QUERY_BLOCK * width)
            .zip(input.tilts.par_chunks(QUERY_BLOCK * width))
            .enumerate()
            .with_max_len(1)
            .try_for_each_init(Room::default, |room, (block, (output, tilts))| {
                let first = start + block * QUERY_BLOCK;
                for head in 0..self.key_value_heads {
                    go_on(monitor)?;
                    let (keys, values) = context(head);
                    self.attend_block(order, first, head, tilts, keys, values, output, room);
                }
                Ok(())
            })
    }

    /// The same in double precision, token by token: far slower, and asked for only by scores and values that no sane model has.
    pub(super) fn attend_in_double<'a>(
        self,
        input: &LayerInput<'_>,
        order: Order,
        output: &mut [f32],
        context: impl Fn(usize) -> (MatRef<'a, f32>, MatRef<'a, f32>) + Sync,
        monitor: &dyn Monitor,
    ) -> Result<(), Error> {
        let (dimension, group) = (self.dimension, self.heads / self.key_value_heads);
        let heads = output.par_chunks_mut(dimension).zip(input.tilts.par_chunks(dimension)).enumerate();
        heads.try_for_each(|(place, (output, tilt))| {
            go_on(monitor)?;
            let (token, head) = (place / self.heads, place % self.heads);
            let (keys, values) = context(head / group);
            let seen = match order {
                Order::Causal => (input.start + token + 1).min(keys.nrows()),
                Order::Whole => keys.nrows(),
            };
            let scores: Vec<f64> =
                (0..seen).map(|key| product_in_double(tilt, keys.row(key).iter())).collect();
            let parts = scores.iter().enumerate().map(|(token, score)| (*score, values.row(token).iter()));
            mean_in_double(parts, output);
            Ok(())
        })
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
