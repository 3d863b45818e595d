//! Sums that write only what is missing: S_t = S_{t−1} + k_t u_tᵀ, u_t = β_t (v_t − S_{t−1}ᵀ k_t), o_t = S_tᵀ q_t, in chunks.
//!
//! With S the state before a chunk, its corrections solve u_t + β_t Σ_{r<t} (k_t·k_r) u_r = β_t (v_t − Sᵀ k_t): one unit lower
//! triangular system for all value channels (the UT transform of key `yang2024delta`), after which the chunk is an ordinary
//! sum of k uᵀ. Norms of keys up to 1 and β up to 1 keep every factor of the recurrence a contraction.

use super::matrix::{Matrix, add_product, set_product, solve_unit_triangle};
use super::scalar_gated_sum::scale_rows;
use crate::kernels::gated_sum::{add, dot};
use crate::number::Real;

/// Tokens per chunk, as in the gated sums.
const CHUNK: usize = 64;

/// The sequence that a sum runs over.
#[derive(Clone, Copy)]
pub(crate) struct CorrectedSum<'a, T> {
    pub(crate) key_width: usize,
    pub(crate) value_width: usize,
    pub(crate) query: &'a [T],
    pub(crate) key: &'a [T],
    pub(crate) value: &'a [T],
    /// β, one per token.
    pub(crate) beta: &'a [T],
}

/// Derivatives in what a sum runs over; `backward` adds to them.
pub(crate) struct CorrectedSlopes<'a, T> {
    pub(crate) query: &'a mut [T],
    pub(crate) key: &'a mut [T],
    pub(crate) value: &'a mut [T],
    pub(crate) beta: &'a mut [T],
}

impl<'a, T: Real> CorrectedSum<'a, T> {
    /// Writes outputs, moves `state` (d_k × d_v) behind the last token; returns the states before all chunks and all corrections,
    /// for `backward`.
    pub(crate) fn forward(&self, state: &mut [T], outputs: &mut [T]) -> Vec<T> {
        let (keys, values) = (self.key_width, self.value_width);
        let length = self.beta.len();
        let mut saved = Vec::with_capacity(length.div_ceil(CHUNK) * keys * values + length * values);
        let mut corrections_of_all = vec![T::zero(); length * values];
        let mut work = Work::new();
        for from in (0..length).step_by(CHUNK) {
            let chunk = self.chunk(from, (from + CHUNK).min(length));
            let size = chunk.size;
            let of_values = from * values..(from + size) * values;
            saved.extend_from_slice(state);
            let corrections = &mut corrections_of_all[of_values.clone()];
            chunk.missing(corrections, state);
            scale_rows(corrections, chunk.beta);
            work.lower(&chunk);
            solve_unit_triangle(corrections, Matrix::new(&work.lower, size, size));

            let (query, corrections) = (chunk.queries(), Matrix::new(corrections, size, values));
            let outputs = &mut outputs[of_values];
            set_product(outputs, T::one(), query, Matrix::new(state, keys, values));
            work.weights(&chunk);
            add_product(outputs, T::one(), Matrix::new(&work.weights, size, size), corrections);
            add_product(state, T::one(), chunk.keys().transposed(), corrections);
        }
        saved.append(&mut corrections_of_all);
        saved
    }

    /// Adds derivatives to `slopes`; `state_slopes` enters as the derivative in the final state and leaves as that in the initial one.
    pub(crate) fn backward(
        &self,
        saved: &[T],
        output_slopes: &[T],
        state_slopes: &mut [T],
        slopes: &mut CorrectedSlopes<'_, T>,
    ) {
        let (keys, values) = (self.key_width, self.value_width);
        let length = self.beta.len();
        let chunks = length.div_ceil(CHUNK);
        let (states, corrections) = saved.split_at(chunks * keys * values);
        let mut work = Work::new();
        let mut missing = vec![T::zero(); CHUNK * values];
        // Derivatives in the corrections, then in β (v − Sᵀ k), then in v − Sᵀ k.
        let mut through = vec![T::zero(); CHUNK * values];
        for index in (0..chunks).rev() {
            let from = index * CHUNK;
            let chunk = self.chunk(from, (from + CHUNK).min(length));
            let size = chunk.size;
            let (of_keys, of_values) =
                (from * keys..(from + size) * keys, from * values..(from + size) * values);
            let (query, key) = (chunk.queries(), chunk.keys());
            let before = &states[index * keys * values..(index + 1) * keys * values];
            let corrections = Matrix::new(&corrections[of_values.clone()], size, values);
            let output_slopes = Matrix::new(&output_slopes[of_values.clone()], size, values);
            let query_slopes = &mut slopes.query[of_keys.clone()];
            let key_slopes = &mut slopes.key[of_keys];

            // O = Q S + tril(Q Kᵀ) U and S' = S + Kᵀ U.
            work.lower(&chunk);
            work.weights(&chunk);
            let through = &mut through[..size * values];
            let after = Matrix::new(state_slopes, keys, values);
            set_product(
                through,
                T::one(),
                Matrix::new(&work.weights, size, size).transposed(),
                output_slopes,
            );
            add_product(through, T::one(), key, after);
            add_product(key_slopes, T::one(), corrections, after.transposed());
            add_product(
                query_slopes,
                T::one(),
                output_slopes,
                Matrix::new(before, keys, values).transposed(),
            );
            set_product(&mut work.weights, T::one(), output_slopes, corrections.transposed());
            clear_above(&mut work.weights, size, 1);
            let weight_slopes = Matrix::new(&work.weights, size, size);
            add_product(query_slopes, T::one(), weight_slopes, key);
            add_product(key_slopes, T::one(), weight_slopes.transposed(), query);
            add_product(state_slopes, T::one(), query.transposed(), output_slopes);

            // (I + L) U = β (V − K S) with L_tr = β_t k_t·k_r for r < t.
            solve_unit_triangle(through, Matrix::new(&work.lower, size, size).transposed());
            set_product(
                &mut work.weights,
                -T::one(),
                Matrix::new(through, size, values),
                corrections.transposed(),
            );
            clear_above(&mut work.weights, size, 0);
            chunk.missing(&mut missing, before);
            let beta_slopes = &mut slopes.beta[from..from + size];
            for (t, slope) in beta_slopes.iter_mut().enumerate() {
                let (of_row, of_values) = (t * size..t * size + t, t * values..(t + 1) * values);
                *slope += dot(&through[of_values.clone()], &missing[of_values])
                    + dot(&work.weights[of_row.clone()], &work.overlaps[of_row]);
            }
            scale_rows(&mut work.weights[..size * size], chunk.beta);
            let lower_slopes = Matrix::new(&work.weights, size, size);
            add_product(key_slopes, T::one(), lower_slopes, key);
            add_product(key_slopes, T::one(), lower_slopes.transposed(), key);
            scale_rows(through, chunk.beta);
            add(&mut slopes.value[of_values], through);
            let through = Matrix::new(through, size, values);
            add_product(key_slopes, -T::one(), through, Matrix::new(before, keys, values).transposed());
            add_product(state_slopes, -T::one(), key.transposed(), through);
        }
    }

    fn chunk(&self, from: usize, to: usize) -> Chunk<'a, T> {
        let (keys, values) = (self.key_width, self.value_width);
        Chunk {
            size: to - from,
            key_width: keys,
            query: &self.query[from * keys..to * keys],
            key: &self.key[from * keys..to * keys],
            value: &self.value[from * values..to * values],
            beta: &self.beta[from..to],
        }
    }
}

struct Chunk<'a, T> {
    size: usize,
    key_width: usize,
    query: &'a [T],
    key: &'a [T],
    value: &'a [T],
    beta: &'a [T],
}

impl<'a, T: Real> Chunk<'a, T> {
    fn queries(&self) -> Matrix<'a, T> {
        Matrix::new(self.query, self.size, self.key_width)
    }

    fn keys(&self) -> Matrix<'a, T> {
        Matrix::new(self.key, self.size, self.key_width)
    }

    /// V − K S.
    fn missing(&self, to: &mut [T], state: &[T]) {
        to[..self.value.len()].copy_from_slice(self.value);
        let values = self.value.len() / self.size;
        add_product(to, -T::one(), self.keys(), Matrix::new(state, self.key_width, values));
    }
}

/// Buffers of one chunk, used again for the next.
struct Work<T> {
    /// k_t·k_r, and β_t times that.
    overlaps: Vec<T>,
    lower: Vec<T>,
    /// q_t·k_r for r ≤ t; in the backward pass also derivatives of that size.
    weights: Vec<T>,
}

impl<T: Real> Work<T> {
    fn new() -> Self {
        let zeros = || vec![T::zero(); CHUNK * CHUNK];
        Work { overlaps: zeros(), lower: zeros(), weights: zeros() }
    }

    fn lower(&mut self, chunk: &Chunk<'_, T>) {
        let all = chunk.size * chunk.size;
        set_product(&mut self.overlaps, T::one(), chunk.keys(), chunk.keys().transposed());
        self.lower[..all].copy_from_slice(&self.overlaps[..all]);
        scale_rows(&mut self.lower[..all], chunk.beta);
    }

    fn weights(&mut self, chunk: &Chunk<'_, T>) {
        set_product(&mut self.weights, T::one(), chunk.queries(), chunk.keys().transposed());
        clear_above(&mut self.weights, chunk.size, 1);
    }
}

/// Zeros right of the diagonal, and on it unless `diagonals` is 1.
fn clear_above<T: Real>(matrix: &mut [T], size: usize, diagonals: usize) {
    for (t, row) in matrix[..size * size].chunks_exact_mut(size).enumerate() {
        row[t + diagonals..].fill(T::zero());
    }
}
