//! The fast form: blocks of queries against blocks of keys with a running maximum; p = e^{s − ℓ} anew in the backward pass.
//!
//! Between the passes it keeps ℓ_t = ln Σ_r e^{s_tr} as m_t = max_r s_tr and ℓ_t − m_t, two numbers per token, so that memory is
//! linear in the length (key `dao2022`); of a large m_t the sum of the two would lose the second. Blocks that no query of a
//! block sees are skipped: a window of w costs O(L w).

use super::{KEY, QUERY, Reach, Softmax, VALUE, all_finite, score};
use crate::kernels::matrix::{Matrix, add_product, set_product};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;
use std::ops::Range;

/// Queries per block.
const QUERIES: usize = 64;

/// Keys per block: with [`QUERIES`], a block of scores fits the second-level cache.
const KEYS: usize = 256;

/// The sequence with the cached tokens before it.
struct Sequence<'a, T> {
    mechanism: Softmax,
    scale: T,
    length: usize,
    /// How many of the keys and values come from the cache.
    past: usize,
    query: &'a [T],
    key: &'a [T],
    value: &'a [T],
    /// Whether numbers are so large that a score may overflow: scores are then added in order and looked at one by one.
    may_overflow: bool,
}

impl Softmax {
    /// Hands the sequence, with the cache of `initial` before it, to `visit`.
    fn with_past<T: Real, R>(
        &self,
        given: &Given<'_, T>,
        initial: &State<T>,
        visit: impl FnOnce(&Sequence<'_, T>) -> R,
    ) -> R {
        let past = self.cached(initial.seen);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        if past > 0 {
            key.reserve_exact((past + given.length) * self.key_width);
            value.reserve_exact((past + given.length) * self.value_width);
            for token in initial.seen - past..initial.seen {
                let (cached_key, cached_value) = initial.numbers[self.slot(token)].split_at(self.key_width);
                key.extend_from_slice(cached_key);
                value.extend_from_slice(cached_value);
            }
            key.extend_from_slice(given.tokens[KEY]);
            value.extend_from_slice(given.tokens[VALUE]);
        }
        let query = given.tokens[QUERY];
        let key = if past > 0 { &key } else { given.tokens[KEY] };
        // |q·k| ≤ |q||k|, however it is added, with a factor for rounding. Of numbers that are not finite no norm is.
        let norm = |numbers: &[T]| sum_of(numbers, |x| x * x).value().sqrt();
        let bound = 2.0 * norm(query) * norm(key);
        visit(&Sequence {
            mechanism: *self,
            scale: T::constant(self.scale()),
            length: given.length,
            past,
            query,
            key,
            value: if past > 0 { &value } else { given.tokens[VALUE] },
            may_overflow: bound.is_nan() || bound > T::LARGEST.value(),
        })
    }
}

impl<T: Real> Chunked<T> for Softmax {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        let saved = self.with_past(given, state, |sequence| sequence.forward(outputs));
        let end = state.seen + given.length;
        // Of a ring only the last tokens remain.
        for token in end - self.cached(end).min(given.length)..end {
            let row = token - state.seen;
            let slot = self.slot(token);
            if state.numbers.len() < slot.end {
                state.numbers.resize(end * self.slot_width(), T::zero());
            }
            let (key, value) = state.numbers[slot].split_at_mut(self.key_width);
            key.copy_from_slice(given.row(KEY, row));
            value.copy_from_slice(given.row(VALUE, row));
        }
        state.seen = end;
        Saved(saved)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, outputs, saved, output_slopes, state_slopes } = *pass;
        let (keys, values) = (self.key_width, self.value_width);
        let past = self.cached(initial.seen);
        let [query_slopes, key_slopes, value_slopes] = ports(&mut gradient.tokens);
        let mut numbers = state_slopes.numbers.clone();
        let end = initial.seen + given.length;
        for token in end - self.cached(end).min(given.length)..end {
            let row = token - initial.seen;
            let (key, value) = numbers[self.slot(token)].split_at_mut(keys);
            add(&mut key_slopes[row * keys..(row + 1) * keys], key);
            add(&mut value_slopes[row * values..(row + 1) * values], value);
            // What stood in this slot before is lost.
            key.fill(T::zero());
            value.fill(T::zero());
        }
        numbers.truncate(initial.numbers.len());
        self.with_past(given, initial, |sequence| {
            if past == 0 {
                sequence.backward(outputs, saved, output_slopes, query_slopes, key_slopes, value_slopes);
                return;
            }
            let mut all_keys = vec![T::zero(); sequence.key.len()];
            let mut all_values = vec![T::zero(); sequence.value.len()];
            sequence.backward(outputs, saved, output_slopes, query_slopes, &mut all_keys, &mut all_values);
            add(key_slopes, &all_keys[past * keys..]);
            add(value_slopes, &all_values[past * values..]);
            for (row, token) in (initial.seen - past..initial.seen).enumerate() {
                let (key, value) = numbers[self.slot(token)].split_at_mut(keys);
                add(key, &all_keys[row * keys..(row + 1) * keys]);
                add(value, &all_values[row * values..(row + 1) * values]);
            }
        });
        State { seen: initial.seen, numbers }
    }
}

impl<'a, T: Real> Sequence<'a, T> {
    /// The keys that a query sees.
    fn visible(&self, t: usize) -> Range<usize> {
        let end = self.past + t + 1;
        match self.mechanism.reach {
            Reach::Whole => 0..self.past + self.length,
            Reach::Causal => 0..end,
            Reach::Window(tokens) => end.saturating_sub(tokens.max(1))..end,
        }
    }

    /// The columns of a block of keys that a query sees.
    fn columns(&self, t: usize, block: &Range<usize>) -> Range<usize> {
        let visible = self.visible(t);
        let from = visible.start.clamp(block.start, block.end) - block.start;
        from..(visible.end.clamp(block.start, block.end) - block.start).max(from)
    }

    /// All pairs of a block of queries and the blocks of keys that it sees.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, impl Iterator<Item = Range<usize>>)> {
        (0..self.length).step_by(QUERIES).map(move |from| {
            let to = (from + QUERIES).min(self.length);
            let visible = self.visible(from).start..self.visible(to - 1).end;
            let end = visible.end;
            (from..to, visible.step_by(KEYS).map(move |key| key..(key + KEYS).min(end)))
        })
    }

    /// The scores of a block: s q kᵀ.
    fn scores(&self, scores: &mut [T], rows: &Range<usize>, columns: &Range<usize>) {
        let width = self.mechanism.key_width;
        if self.may_overflow {
            let row = |numbers: &'a [T], index: usize| &numbers[index * width..(index + 1) * width];
            for (to, t) in scores.chunks_exact_mut(columns.len()).zip(rows.clone()) {
                for (to, r) in to.iter_mut().zip(columns.clone()) {
                    *to = score(row(self.query, t), row(self.key, r), self.scale);
                }
            }
            return;
        }
        set_product(
            scores,
            self.scale,
            Matrix::new(&self.query[rows.start * width..], rows.len(), width),
            Matrix::new(&self.key[columns.start * width..], columns.len(), width).transposed(),
        );
    }

    fn values(&self, columns: &Range<usize>) -> Matrix<'_, T> {
        let width = self.mechanism.value_width;
        Matrix::new(&self.value[columns.start * width..], columns.len(), width)
    }

    /// Writes the outputs; returns m and ℓ − m of every query, the second NaN where a score is not finite.
    fn forward(&self, outputs: &mut [T]) -> Vec<T> {
        let width = self.mechanism.value_width;
        let mut logarithms = Vec::with_capacity(2 * self.length);
        let mut weights = vec![T::zero(); QUERIES * KEYS.min(self.past + self.length)];
        for (rows, blocks) in self.blocks() {
            let outputs = &mut outputs[rows.start * width..rows.end * width];
            outputs.fill(T::zero());
            let mut largest = [T::constant(f64::NEG_INFINITY); QUERIES];
            let mut total = [T::zero(); QUERIES];
            for block in blocks {
                let weights = &mut weights[..rows.len() * block.len()];
                self.scores(weights, &rows, &block);
                for (row, t) in rows.clone().enumerate() {
                    let seen = self.columns(t, &block);
                    let scores = &mut weights[row * block.len()..(row + 1) * block.len()];
                    // Unseen columns get a harmless argument now and weight zero after the exponentials.
                    scores[..seen.start].fill(T::zero());
                    scores[seen.end..].fill(T::zero());
                    if seen.is_empty() {
                        continue;
                    }
                    let scores = &mut scores[seen];
                    if self.may_overflow && !all_finite(scores) {
                        // The total stays NaN, whatever is added to it, and takes the outputs with it.
                        total[row] = T::constant(f64::NAN);
                        scores.fill(T::zero());
                        continue;
                    }
                    let new = largest[row].larger(maximum(scores));
                    scores.iter_mut().for_each(|score| *score -= new);
                    if largest[row] < new {
                        let kept = (largest[row] - new).exp();
                        largest[row] = new;
                        total[row] *= kept;
                        outputs[row * width..(row + 1) * width].iter_mut().for_each(|x| *x *= kept);
                    }
                }
                T::exponentials(weights);
                for (row, t) in rows.clone().enumerate() {
                    let seen = self.columns(t, &block);
                    let weights = &mut weights[row * block.len()..(row + 1) * block.len()];
                    weights[..seen.start].fill(T::zero());
                    weights[seen.end..].fill(T::zero());
                    total[row] += sum_of(weights, |x| x);
                }
                add_product(
                    outputs,
                    T::one(),
                    Matrix::new(weights, rows.len(), block.len()),
                    self.values(&block),
                );
            }
            for (row, output) in outputs.chunks_exact_mut(width).enumerate() {
                let share = T::one() / total[row];
                output.iter_mut().for_each(|x| *x *= share);
                logarithms.extend([largest[row], total[row].ln()]);
            }
        }
        logarithms
    }

    /// Adds derivatives: dv = pᵀ do, ds = p ⊙ (do vᵀ − (do·o) 1ᵀ), dq = s ds k, dk = s dsᵀ q.
    fn backward(
        &self,
        outputs: &[T],
        logarithms: &[T],
        output_slopes: &[T],
        query_slopes: &mut [T],
        key_slopes: &mut [T],
        value_slopes: &mut [T],
    ) {
        let (keys, values) = (self.mechanism.key_width, self.mechanism.value_width);
        let size = QUERIES * KEYS.min(self.past + self.length);
        let (mut weights, mut score_slopes) = (vec![T::zero(); size], vec![T::zero(); size]);
        for (rows, blocks) in self.blocks() {
            let range = rows.start * values..rows.end * values;
            let (outputs, output_slopes) = (&outputs[range.clone()], &output_slopes[range]);
            let means: Vec<T> = outputs
                .chunks_exact(values)
                .zip(output_slopes.chunks_exact(values))
                .map(|(o, slope)| o.iter().zip(slope).fold(T::zero(), |sum, (&x, &y)| sum + x * y))
                .collect();
            let slopes_out = Matrix::new(output_slopes, rows.len(), values);
            let query = Matrix::new(&self.query[rows.start * keys..], rows.len(), keys);
            for block in blocks {
                let count = rows.len() * block.len();
                let (weights, score_slopes) = (&mut weights[..count], &mut score_slopes[..count]);
                self.scores(weights, &rows, &block);
                for (row, t) in rows.clone().enumerate() {
                    // At most zero but for rounding and for scores that are not seen.
                    let (largest, rest) = (logarithms[2 * t], logarithms[2 * t + 1]);
                    let scores = &mut weights[row * block.len()..(row + 1) * block.len()];
                    for score in scores {
                        let excess = (*score - largest) - rest;
                        *score = if excess < T::zero() { excess } else { T::zero() };
                    }
                }
                T::exponentials(weights);
                set_product(score_slopes, T::one(), slopes_out, self.values(&block).transposed());
                for (row, t) in rows.clone().enumerate() {
                    let seen = self.columns(t, &block);
                    let range = row * block.len()..(row + 1) * block.len();
                    let weights = &mut weights[range.clone()];
                    weights[..seen.start].fill(T::zero());
                    weights[seen.end..].fill(T::zero());
                    let slopes = &mut score_slopes[range];
                    if self.may_overflow && logarithms[2 * t + 1].value().is_nan() {
                        // A loss that does not look at the query has no derivative through it.
                        let mut of_outputs = output_slopes[row * values..(row + 1) * values].iter();
                        let unread = of_outputs.all(|&slope| slope == T::zero());
                        let none = if unread { T::zero() } else { T::constant(f64::NAN) };
                        slopes.fill(T::zero());
                        weights[seen.clone()].fill(none);
                        slopes[seen].fill(none);
                        continue;
                    }
                    for (slope, &weight) in slopes.iter_mut().zip(&*weights) {
                        *slope = weight * (*slope - means[row]);
                    }
                }
                let weights = Matrix::new(weights, rows.len(), block.len());
                let score_slopes = Matrix::new(score_slopes, rows.len(), block.len());
                add_product(
                    &mut value_slopes[block.start * values..],
                    T::one(),
                    weights.transposed(),
                    slopes_out,
                );
                add_product(
                    &mut query_slopes[rows.start * keys..],
                    self.scale,
                    score_slopes,
                    Matrix::new(&self.key[block.start * keys..], block.len(), keys),
                );
                add_product(
                    &mut key_slopes[block.start * keys..],
                    self.scale,
                    score_slopes.transposed(),
                    query,
                );
            }
        }
    }
}

/// Numbers that the compiler keeps in vector registers at once.
const LANES: usize = 16;

fn maximum<T: Real>(numbers: &[T]) -> T {
    let mut lanes = [numbers[0]; LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(numbers[0], |largest, &x| largest.larger(x));
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = lane.larger(x);
        }
    }
    lanes.into_iter().fold(rest, |largest, x| largest.larger(x))
}

fn sum_of<T: Real>(numbers: &[T], term: impl Fn(T) -> T) -> T {
    let mut lanes = [T::zero(); LANES];
    let chunks = numbers.chunks_exact(LANES);
    let rest = chunks.remainder().iter().fold(T::zero(), |sum, &x| sum + term(x));
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += term(x);
        }
    }
    lanes.into_iter().fold(rest, |sum, x| sum + x)
}

fn add<T: Real>(to: &mut [T], from: &[T]) {
    to.iter_mut().zip(from).for_each(|(x, &y)| *x += y);
}
