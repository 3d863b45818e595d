//! The fast form: a scan over blocks of tokens that never holds more than one block of d × n states.
//!
//! Only the states at the borders of blocks are kept; the backward pass scans every block again before it goes back through it.

use super::{INPUT, KEY, LOG_RATE, QUERY, RATE, S6, SKIP};
use crate::kernels::diagonal_scan::{self, block_of, blocks};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;
use std::ops::Range;

/// Decays and states of one block, used again for the next.
struct Block<T> {
    decays: Vec<T>,
    states: Vec<T>,
}

impl S6 {
    /// A = −e^{log_rate}.
    fn rates<T: Real>(&self, given: &Given<'_, T>) -> Vec<T> {
        given.parameters[LOG_RATE].iter().map(|log_rate| -log_rate.exp()).collect()
    }

    fn buffer<T: Real>(&self) -> Vec<T> {
        vec![T::zero(); block_of(self.size()) * self.size()]
    }
}

impl<T: Real> Block<T> {
    /// Decays and states of these tokens; moves `state` behind them.
    fn scan(
        &mut self,
        mechanism: &S6,
        given: &Given<'_, T>,
        rates: &[T],
        tokens: Range<usize>,
        state: &mut [T],
    ) {
        let size = mechanism.size();
        let filled = tokens.len() * size;
        let rows = self.decays.chunks_exact_mut(size).zip(self.states.chunks_exact_mut(size));
        for (t, (decays, additions)) in tokens.zip(rows) {
            let (input, steps, key) = (given.row(INPUT, t), given.row(RATE, t), given.row(KEY, t));
            for (c, (decays, additions)) in decays
                .chunks_exact_mut(mechanism.expansion)
                .zip(additions.chunks_exact_mut(mechanism.expansion))
                .enumerate()
            {
                let rates = &rates[c * mechanism.expansion..(c + 1) * mechanism.expansion];
                let (step, written) = (steps[c], steps[c] * input[c]);
                for (((g, b), &rate), &key) in decays.iter_mut().zip(additions).zip(rates).zip(key) {
                    *g = step * rate;
                    *b = written * key;
                }
            }
        }
        T::exponentials(&mut self.decays[..filled]);
        diagonal_scan::forward(&self.decays[..filled], &mut self.states[..filled], state);
    }
}

impl<T: Real> Chunked<T> for S6 {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let (size, rates) = (self.size(), self.rates(given));
        let mut block = Block { decays: self.buffer(), states: self.buffer() };
        let mut borders = Vec::with_capacity(given.length.div_ceil(block_of(size)) * size);
        for tokens in blocks(given.length, block_of(size)) {
            borders.extend_from_slice(&state.numbers);
            block.scan(self, given, &rates, tokens.clone(), &mut state.numbers);
            for (t, states) in tokens.zip(block.states.chunks_exact(size)) {
                let (input, query) = (given.row(INPUT, t), given.row(QUERY, t));
                let outputs = &mut outputs[t * self.width..(t + 1) * self.width];
                for (c, (y, states)) in
                    outputs.iter_mut().zip(states.chunks_exact(self.expansion)).enumerate()
                {
                    *y = states
                        .iter()
                        .zip(query)
                        .fold(given.parameters[SKIP][c] * input[c], |sum, (&h, &query)| sum + query * h);
                }
            }
        }
        Saved(borders)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let (size, rates) = (self.size(), self.rates(given));
        let mut block = Block { decays: self.buffer(), states: self.buffer() };
        let (mut slopes, mut decay_slopes) = (self.buffer::<T>(), self.buffer::<T>());
        let mut state_slopes = state_slopes.numbers.clone();
        let mut state = vec![T::zero(); size];
        let mut rate_slopes = vec![T::zero(); size];
        let [inputs, steps_of_all, keys, queries] = ports(&mut gradient.tokens);
        for tokens in blocks(given.length, block_of(size)).rev() {
            let from = tokens.start / block_of(size) * size;
            let before = &saved[from..from + size];
            state.copy_from_slice(before);
            block.scan(self, given, &rates, tokens.clone(), &mut state);
            let filled = tokens.len() * size;
            for (i, t) in tokens.clone().enumerate() {
                let query = given.row(QUERY, t);
                let query_slopes = &mut queries[t * self.expansion..(t + 1) * self.expansion];
                for c in 0..self.width {
                    let slope = output_slopes[t * self.width + c];
                    let row = i * size + c * self.expansion..i * size + (c + 1) * self.expansion;
                    let parts = slopes[row.clone()].iter_mut().zip(&block.states[row]);
                    for (((to, &h), &query), dq) in parts.zip(query).zip(&mut *query_slopes) {
                        *to = slope * query;
                        *dq += slope * h;
                    }
                }
            }
            diagonal_scan::backward(
                &block.decays[..filled],
                before,
                &block.states[..filled],
                &mut slopes[..filled],
                &mut decay_slopes[..filled],
                &mut state_slopes,
            );
            for (i, t) in tokens.enumerate() {
                let (input, steps, key) = (given.row(INPUT, t), given.row(RATE, t), given.row(KEY, t));
                let key_slopes = &mut keys[t * self.expansion..(t + 1) * self.expansion];
                for c in 0..self.width {
                    let row = i * size + c * self.expansion..i * size + (c + 1) * self.expansion;
                    let channel = c * self.expansion..(c + 1) * self.expansion;
                    // Of Δ u, the factor of the key; and of Δ through the decays.
                    let (mut written_slope, mut elapsed_slope) = (T::zero(), T::zero());
                    let written = steps[c] * input[c];
                    for ((&slope, &key), dk) in slopes[row.clone()].iter().zip(key).zip(&mut *key_slopes) {
                        written_slope += slope * key;
                        *dk += slope * written;
                    }
                    for ((&slope, &rate), to) in
                        decay_slopes[row].iter().zip(&rates[channel.clone()]).zip(&mut rate_slopes[channel])
                    {
                        elapsed_slope += slope * rate;
                        *to += slope * steps[c];
                    }
                    let output_slope = output_slopes[t * self.width + c];
                    inputs[t * self.width + c] +=
                        written_slope * steps[c] + given.parameters[SKIP][c] * output_slope;
                    steps_of_all[t * self.width + c] += written_slope * input[c] + elapsed_slope;
                    gradient.parameters[SKIP][c] += output_slope * input[c];
                }
            }
        }
        // dA / d log_rate = A.
        for ((to, &slope), &rate) in gradient.parameters[LOG_RATE].iter_mut().zip(&rate_slopes).zip(&rates) {
            *to += slope * rate;
        }
        State { seen: initial.seen, numbers: state_slopes }
    }
}
