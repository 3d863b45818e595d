//! One decay per token: what token t keeps of token r is e^{E_tr} with E_tr = Σ_{r<j≤t} g_j.
//!
//! Inside of a chunk A_tr = (q_t·k_r) e^{E_tr}. Row t of E is row t − 1 plus g_t: every exponent is a sum of its own gates and
//! never a difference of cumulative sums, so a gate of −10⁻⁷ is not lost behind one of −60. The derivative in g_j is likewise
//! a sum over the pairs r < j ≤ t only, without cancellation.

use super::chunked_sum::{Around, CHUNK, Decay, Inside, Rows};
use super::matrix::{Matrix, add_product, set_product};
use super::slices::{dot, multiply, scale_rows_into};
use crate::number::Real;

/// Factors of one chunk, used again for the next.
pub(crate) struct PerToken<T> {
    /// Tokens of the chunk.
    size: usize,
    /// Σ of gates since the chunk began and until it ends, as exponentials.
    since_start: Vec<T>,
    until_end: Vec<T>,
    /// A row of E, and e^E with zeros above the diagonal.
    exponents: Vec<T>,
    factors: Vec<T>,
}

impl<T: Real> Decay<T> for PerToken<T> {
    fn new(_key_width: usize) -> Self {
        let zeros = |size: usize| vec![T::zero(); size];
        PerToken {
            size: 0,
            since_start: zeros(CHUNK),
            until_end: zeros(CHUNK),
            exponents: zeros(CHUNK),
            factors: zeros(CHUNK * CHUNK),
        }
    }

    fn read(&mut self, chunk: &Rows<'_, T>) {
        let size = chunk.gates.len();
        self.size = size;
        let mut sum = T::zero();
        self.exponents.fill(T::zero());
        for (t, &gate) in chunk.gates.iter().enumerate() {
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

    fn weights(&mut self, chunk: &Rows<'_, T>, weights: &mut [T]) {
        set_product(weights, T::one(), chunk.queries(), chunk.keys().transposed());
        multiply(&mut weights[..self.size * self.size], &self.factors);
    }

    fn since_start(&self, to: &mut [T], rows: &[T]) {
        scale_rows_into(to, rows, &self.since_start[..self.size]);
    }

    fn until_end(&self, to: &mut [T], rows: &[T]) {
        scale_rows_into(to, rows, &self.until_end[..self.size]);
    }

    fn over_chunk(&self, state: &mut [T]) {
        let kept = self.since_start[self.size - 1];
        state.iter_mut().for_each(|x| *x *= kept);
    }

    /// In g_j: Σ_{r<j≤t} dA_tr A_tr, plus what tokens t ≥ j read of the state before the chunk, what tokens r < j hand on to the
    /// state after it, and what goes from the one state to the other.
    fn backward(&mut self, chunk: &Rows<'_, T>, around: &Around<'_, T>, slopes: &mut Inside<'_, T>) {
        let (keys, size) = (chunk.key_width, self.size);
        let gates = &mut *slopes.gates;
        let mut handed_on = T::zero();
        for t in 0..size {
            let mut below = T::zero();
            let row = t * size..t * size + t;
            let pairs = around.weights[row.clone()].iter().zip(&slopes.weights[row]);
            for (slope, (&weight, &weight_slope)) in gates[1..].iter_mut().zip(pairs) {
                below += weight * weight_slope;
                *slope += below;
            }
            gates[t] += handed_on;
            let row = t * keys..(t + 1) * keys;
            handed_on += dot(&chunk.key[row.clone()], &slopes.key[row]);
        }
        let mut read = T::zero();
        for t in (0..size).rev() {
            let row = t * keys..(t + 1) * keys;
            read += dot(&chunk.query[row.clone()], &slopes.query[row]);
            gates[t] += read;
        }
        let through = self.since_start[size - 1] * dot(around.before, around.after_slopes);
        gates.iter_mut().for_each(|slope| *slope += through);

        multiply(slopes.weights, &self.factors);
        let weight_slopes = Matrix::new(slopes.weights, size, size);
        add_product(slopes.query, T::one(), weight_slopes, chunk.keys());
        add_product(slopes.key, T::one(), weight_slopes.transposed(), chunk.queries());
    }
}
