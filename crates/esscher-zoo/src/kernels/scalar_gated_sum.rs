//! Sums with one decay per token: S_t = e^{g_t} S_{t−1} + k_t v_tᵀ, o_t = s S_tᵀ q_t with g_t ≤ 0, in chunks.
//!
//! Inside of a chunk the weight of token r at time t is A_tr = (q_t·k_r) e^{E_tr} with E_tr = Σ_{r<j≤t} g_j. Row t of E is row
//! t − 1 plus g_t: every exponent is a sum of its own gates and never a difference of cumulative sums, so a gate of −10⁻⁷ is
//! not lost behind one of −60. The derivative in g_j is likewise a sum over the pairs r < j ≤ t only, without cancellation.

use super::gated_sum::{add, add_scaled, dot, multiply};
use super::matrix::{Matrix, add_product, set_product};
use crate::number::Real;

/// Tokens per chunk, as in the sum with one decay per channel.
const CHUNK: usize = 64;

/// The sequence that a sum runs over.
#[derive(Clone, Copy)]
pub(crate) struct ScalarGatedSum<'a, T> {
    pub(crate) key_width: usize,
    pub(crate) value_width: usize,
    /// The factor on every weight.
    pub(crate) scale: T,
    pub(crate) query: &'a [T],
    pub(crate) key: &'a [T],
    pub(crate) value: &'a [T],
    /// One per token.
    pub(crate) log_decay: &'a [T],
}

/// Derivatives in what a sum runs over; `backward` adds to them.
pub(crate) struct ScalarGatedSlopes<'a, T> {
    pub(crate) query: &'a mut [T],
    pub(crate) key: &'a mut [T],
    pub(crate) value: &'a mut [T],
    pub(crate) log_decay: &'a mut [T],
}

impl<'a, T: Real> ScalarGatedSum<'a, T> {
    /// Writes outputs, moves `state` (d_k × d_v) behind the last token; returns for every chunk the state before it and
    /// the weights inside of it, for `backward`.
    pub(crate) fn forward(&self, state: &mut [T], outputs: &mut [T]) -> Vec<T> {
        let (keys, values) = (self.key_width, self.value_width);
        let length = self.log_decay.len();
        let chunks = length.div_ceil(CHUNK);
        let mut saved = Vec::with_capacity(chunks * (keys * values + CHUNK * CHUNK));
        let mut work = Work::new(keys);
        for from in (0..length).step_by(CHUNK) {
            let chunk = self.chunk(from, (from + CHUNK).min(length));
            let size = chunk.size;
            let outputs = &mut outputs[from * values..(from + size) * values];
            saved.extend_from_slice(state);
            work.gates(chunk.log_decay);
            set_product(
                &mut work.weights,
                T::one(),
                Matrix::new(chunk.query, size, keys),
                Matrix::new(chunk.key, size, keys).transposed(),
            );
            multiply(&mut work.weights[..size * size], &work.factors);
            let weights = Matrix::new(&work.weights, size, size);
            set_product(outputs, self.scale, weights, Matrix::new(chunk.value, size, values));
            scale_rows_into(&mut work.decayed, chunk.query, &work.since_start[..size]);
            let decayed = Matrix::new(&work.decayed, size, keys);
            add_product(outputs, self.scale, decayed, Matrix::new(state, keys, values));

            let kept = work.since_start[size - 1];
            state.iter_mut().for_each(|x| *x *= kept);
            scale_rows_into(&mut work.decayed, chunk.key, &work.until_end[..size]);
            let decayed = Matrix::new(&work.decayed, size, keys);
            add_product(state, T::one(), decayed.transposed(), Matrix::new(chunk.value, size, values));
            saved.extend_from_slice(&work.weights[..size * size]);
        }
        saved
    }

    /// Adds derivatives to `slopes`; `state_slopes` enters as the derivative in the final state and leaves as that in the initial one.
    pub(crate) fn backward(
        &self,
        saved: &[T],
        output_slopes: &[T],
        state_slopes: &mut [T],
        slopes: &mut ScalarGatedSlopes<'_, T>,
    ) {
        let (keys, values) = (self.key_width, self.value_width);
        let length = self.log_decay.len();
        let chunks = length.div_ceil(CHUNK);
        let mut work = Work::new(keys);
        for index in (0..chunks).rev() {
            let from = index * CHUNK;
            let chunk = self.chunk(from, (from + CHUNK).min(length));
            let size = chunk.size;
            let (of_keys, of_values) =
                (from * keys..(from + size) * keys, from * values..(from + size) * values);
            // All earlier chunks are full.
            let saved = &saved[index * (keys * values + CHUNK * CHUNK)..];
            let (before, weights) = saved.split_at(keys * values);
            let weights = &weights[..size * size];
            let output_slopes = Matrix::new(&output_slopes[of_values.clone()], size, values);
            let value = Matrix::new(chunk.value, size, values);
            work.gates(chunk.log_decay);

            let value_slopes = &mut slopes.value[of_values];
            add_product(
                value_slopes,
                self.scale,
                Matrix::new(weights, size, size).transposed(),
                output_slopes,
            );
            scale_rows_into(&mut work.decayed, chunk.key, &work.until_end[..size]);
            let after = Matrix::new(state_slopes, keys, values);
            add_product(value_slopes, T::one(), Matrix::new(&work.decayed, size, keys), after);

            // Through the state before the chunk, and into the state after it.
            let query_slopes = &mut work.query_slopes[..size * keys];
            set_product(
                query_slopes,
                self.scale,
                output_slopes,
                Matrix::new(before, keys, values).transposed(),
            );
            scale_rows(query_slopes, &work.since_start[..size]);
            let key_slopes = &mut work.key_slopes[..size * keys];
            set_product(key_slopes, T::one(), value, after.transposed());
            scale_rows(key_slopes, &work.until_end[..size]);

            let weight_slopes = &mut work.weights[..size * size];
            set_product(weight_slopes, self.scale, output_slopes, value.transposed());
            let decay_slopes = &mut slopes.log_decay[from..from + size];
            self.decay_slopes(&chunk, weights, weight_slopes, query_slopes, key_slopes, decay_slopes);
            let kept = work.since_start[size - 1];
            let through = kept * dot(before, state_slopes);
            decay_slopes.iter_mut().for_each(|slope| *slope += through);

            multiply(weight_slopes, &work.factors);
            let weight_slopes = Matrix::new(weight_slopes, size, size);
            add_product(query_slopes, T::one(), weight_slopes, Matrix::new(chunk.key, size, keys));
            add_product(
                key_slopes,
                T::one(),
                weight_slopes.transposed(),
                Matrix::new(chunk.query, size, keys),
            );
            add(&mut slopes.query[of_keys.clone()], query_slopes);
            add(&mut slopes.key[of_keys], key_slopes);

            state_slopes.iter_mut().for_each(|x| *x *= kept);
            scale_rows_into(&mut work.decayed, chunk.query, &work.since_start[..size]);
            let decayed = Matrix::new(&work.decayed, size, keys);
            add_product(state_slopes, self.scale, decayed.transposed(), output_slopes);
        }
    }

    /// Adds the derivatives in g_j: Σ_{r<j≤t} dA_tr A_tr, plus what tokens t ≥ j read of the state before the chunk and what
    /// tokens r < j hand on to the state after it (`query_slopes` and `key_slopes` are of these two ways only).
    fn decay_slopes(
        &self,
        chunk: &Chunk<'_, T>,
        weights: &[T],
        weight_slopes: &[T],
        query_slopes: &[T],
        key_slopes: &[T],
        decay_slopes: &mut [T],
    ) {
        let (keys, size) = (self.key_width, chunk.size);
        let mut handed_on = T::zero();
        for t in 0..size {
            let mut below = T::zero();
            let row = t * size..t * size + t;
            let pairs = weights[row.clone()].iter().zip(&weight_slopes[row]);
            for (slope, (&weight, &weight_slope)) in decay_slopes[1..].iter_mut().zip(pairs) {
                below += weight * weight_slope;
                *slope += below;
            }
            decay_slopes[t] += handed_on;
            let row = t * keys..(t + 1) * keys;
            handed_on += dot(&chunk.key[row.clone()], &key_slopes[row]);
        }
        let mut read = T::zero();
        for t in (0..size).rev() {
            let row = t * keys..(t + 1) * keys;
            read += dot(&chunk.query[row.clone()], &query_slopes[row]);
            decay_slopes[t] += read;
        }
    }

    fn chunk(&self, from: usize, to: usize) -> Chunk<'a, T> {
        let (keys, values) = (self.key_width, self.value_width);
        Chunk {
            size: to - from,
            query: &self.query[from * keys..to * keys],
            key: &self.key[from * keys..to * keys],
            value: &self.value[from * values..to * values],
            log_decay: &self.log_decay[from..to],
        }
    }
}

struct Chunk<'a, T> {
    size: usize,
    query: &'a [T],
    key: &'a [T],
    value: &'a [T],
    log_decay: &'a [T],
}

/// Buffers of one chunk, used again for the next.
struct Work<T> {
    /// Σ of gates since the chunk began and until it ends, as exponentials.
    since_start: Vec<T>,
    until_end: Vec<T>,
    /// A row of E, and e^E with zeros above the diagonal.
    exponents: Vec<T>,
    factors: Vec<T>,
    decayed: Vec<T>,
    weights: Vec<T>,
    query_slopes: Vec<T>,
    key_slopes: Vec<T>,
}

impl<T: Real> Work<T> {
    fn new(keys: usize) -> Self {
        let zeros = |size: usize| vec![T::zero(); size];
        Work {
            since_start: zeros(CHUNK),
            until_end: zeros(CHUNK),
            exponents: zeros(CHUNK),
            factors: zeros(CHUNK * CHUNK),
            decayed: zeros(CHUNK * keys),
            weights: zeros(CHUNK * CHUNK),
            query_slopes: zeros(CHUNK * keys),
            key_slopes: zeros(CHUNK * keys),
        }
    }

    fn gates(&mut self, log_decay: &[T]) {
        let size = log_decay.len();
        let mut sum = T::zero();
        self.exponents.fill(T::zero());
        for (t, &gate) in log_decay.iter().enumerate() {
            sum += gate;
            self.since_start[t] = sum;
            self.exponents[..t].iter_mut().for_each(|exponent| *exponent += gate);
            let (upto, above) = self.factors[t * size..(t + 1) * size].split_at_mut(t + 1);
            upto.copy_from_slice(&self.exponents[..=t]);
            T::exponentials(upto);
            above.fill(T::zero());
        }
        T::exponentials(&mut self.since_start[..size]);
        self.until_end[..size].copy_from_slice(&self.factors[(size - 1) * size..size * size]);
    }
}

/// Rows times one factor each, in place.
pub(crate) fn scale_rows<T: Real>(rows: &mut [T], factors: &[T]) {
    let width = rows.len() / factors.len();
    for (row, &factor) in rows.chunks_exact_mut(width).zip(factors) {
        row.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Rows times one factor each.
pub(crate) fn scale_rows_into<T: Real>(to: &mut [T], rows: &[T], factors: &[T]) {
    to[..rows.len()].fill(T::zero());
    let width = rows.len() / factors.len();
    for ((to, row), &factor) in to.chunks_exact_mut(width).zip(rows.chunks_exact(width)).zip(factors) {
        add_scaled(to, factor, row);
    }
}
