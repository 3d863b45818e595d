//! Sums that write only what is missing: S_t = S_{t−1} + k_t u_tᵀ, u_t = β_t (v_t − S_{t−1}ᵀ k_t), o_t = S_tᵀ q_t, in chunks.
//!
//! With S the state before a chunk, its corrections solve u_t + β_t Σ_{r<t} (k_t·k_r) u_r = β_t (v_t − Sᵀ k_t): one unit lower
//! triangular system for all value channels (the UT transform of key `yang2024delta`), after which the chunk is an ordinary
//! sum of k uᵀ. Norms of keys up to 1 and β up to 1 keep every factor of the recurrence a contraction.

use super::chunked_sum::{CHUNK, Rows, Slopes, chunks};
use super::matrix::{Matrix, add_product, set_product, solve_unit_triangle};
use super::slices::{add, dot, scale_rows};
use crate::number::Real;

/// A sum whose gates are β, one per token.
#[derive(Clone, Copy)]
pub(crate) struct CorrectedSum<'a, T>(pub(crate) Rows<'a, T>);

impl<T: Real> CorrectedSum<'_, T> {
    /// Writes outputs, moves `state` (d_k × d_v) behind the last token; returns the states before all chunks and all corrections,
    /// for `backward`.
    pub(crate) fn forward(&self, state: &mut [T], outputs: &mut [T]) -> Vec<T> {
        let (keys, values, length) = (self.0.key_width, self.0.value_width, self.0.length());
        let mut saved = Vec::with_capacity(length.div_ceil(CHUNK) * keys * values + length * values);
        let mut corrections_of_all = vec![T::zero(); length * values];
        let mut work = Work::new();
        for tokens in chunks(length) {
            let (chunk, size) = (self.0.of(&tokens), tokens.len());
            let of_values = tokens.start * values..tokens.end * values;
            saved.extend_from_slice(state);
            let corrections = &mut corrections_of_all[of_values.clone()];
            missing(corrections, &chunk, state);
            scale_rows(corrections, chunk.gates);
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
        slopes: &mut Slopes<'_, T>,
    ) {
        let (keys, values) = (self.0.key_width, self.0.value_width);
        let chunks = chunks(self.0.length());
        let (states, corrections) = saved.split_at(chunks.len() * keys * values);
        let mut work = Work::new();
        let mut missed = vec![T::zero(); CHUNK * values];
        // Derivatives in the corrections, then in β (v − Sᵀ k), then in v − Sᵀ k.
        let mut through = vec![T::zero(); CHUNK * values];
        for (index, tokens) in chunks.enumerate().rev() {
            let (chunk, size) = (self.0.of(&tokens), tokens.len());
            let of_values = tokens.start * values..tokens.end * values;
            let (query, key) = (chunk.queries(), chunk.keys());
            let before = &states[index * keys * values..(index + 1) * keys * values];
            let corrections = Matrix::new(&corrections[of_values.clone()], size, values);
            let output_slopes = Matrix::new(&output_slopes[of_values], size, values);
            let slopes = slopes.of(&self.0, &tokens);

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
            add_product(slopes.key, T::one(), corrections, after.transposed());
            let state = Matrix::new(before, keys, values);
            add_product(slopes.query, T::one(), output_slopes, state.transposed());
            set_product(&mut work.weights, T::one(), output_slopes, corrections.transposed());
            clear_above(&mut work.weights, size, 1);
            let weight_slopes = Matrix::new(&work.weights, size, size);
            add_product(slopes.query, T::one(), weight_slopes, key);
            add_product(slopes.key, T::one(), weight_slopes.transposed(), query);
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
            missing(&mut missed, &chunk, before);
            for (t, slope) in slopes.gates.iter_mut().enumerate() {
                let (of_row, of_values) = (t * size..t * size + t, t * values..(t + 1) * values);
                *slope += dot(&through[of_values.clone()], &missed[of_values])
                    + dot(&work.weights[of_row.clone()], &work.overlaps[of_row]);
            }
            scale_rows(&mut work.weights[..size * size], chunk.gates);
            let lower_slopes = Matrix::new(&work.weights, size, size);
            add_product(slopes.key, T::one(), lower_slopes, key);
            add_product(slopes.key, T::one(), lower_slopes.transposed(), key);
            scale_rows(through, chunk.gates);
            add(slopes.value, through);
            let through = Matrix::new(through, size, values);
            add_product(slopes.key, -T::one(), through, state.transposed());
            add_product(state_slopes, -T::one(), key.transposed(), through);
        }
    }
}

/// V − K S.
fn missing<T: Real>(to: &mut [T], chunk: &Rows<'_, T>, state: &[T]) {
    to[..chunk.value.len()].copy_from_slice(chunk.value);
    add_product(to, -T::one(), chunk.keys(), Matrix::new(state, chunk.key_width, chunk.value_width));
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

    fn lower(&mut self, chunk: &Rows<'_, T>) {
        let all = chunk.length() * chunk.length();
        set_product(&mut self.overlaps, T::one(), chunk.keys(), chunk.keys().transposed());
        self.lower[..all].copy_from_slice(&self.overlaps[..all]);
        scale_rows(&mut self.lower[..all], chunk.gates);
    }

    fn weights(&mut self, chunk: &Rows<'_, T>) {
        set_product(&mut self.weights, T::one(), chunk.queries(), chunk.keys().transposed());
        clear_above(&mut self.weights, chunk.length(), 1);
    }
}

/// Zeros right of the diagonal, and on it unless `diagonals` is 1.
fn clear_above<T: Real>(matrix: &mut [T], size: usize, diagonals: usize) {
    for (t, row) in matrix[..size * size].chunks_exact_mut(size).enumerate() {
        row[t + diagonals..].fill(T::zero());
    }
}
