//! The fast form: a complex scan with constant decays, in blocks of tokens.
//!
//! Only the states at the borders of blocks are kept; the backward pass scans every block again before it goes back through
//! it. A scan costs O(d m) per token whatever the length, and starts from any state.

use super::discretisation::{Complex, Held, hold_all};
use super::{IMAGINARY, INPUT, LOG_REAL, LOG_STEP, READOUT_IMAGINARY, READOUT_REAL, S4, SKIP};
use crate::kernels::diagonal_scan::{block_of, blocks};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State};
use crate::number::Real;
use std::ops::Range;

/// Ā and B̄ of all states, parts side by side so that loops over states vectorise.
struct Constants<T> {
    decay_real: Vec<T>,
    decay_imaginary: Vec<T>,
    input_real: Vec<T>,
    input_imaginary: Vec<T>,
}

impl<T: Real> Constants<T> {
    fn new(held: &[Held<T>]) -> Self {
        let part = |choose: fn(&Held<T>) -> T| held.iter().map(choose).collect();
        Constants {
            decay_real: part(|held| held.decay.real),
            decay_imaginary: part(|held| held.decay.imaginary),
            input_real: part(|held| held.input.real),
            input_imaginary: part(|held| held.input.imaginary),
        }
    }

    /// One token: the state moves on; `inputs` has every channel's input once per state.
    fn step(&self, inputs: &[T], state: &mut [T]) {
        let size = inputs.len();
        let (reals, imaginaries) = state.split_at_mut(size);
        let constants = self.decay_real.iter().zip(&self.decay_imaginary);
        let constants = constants.zip(self.input_real.iter().zip(&self.input_imaginary));
        for (((real, imaginary), &u), ((&a, &b), (&p, &q))) in
            reals.iter_mut().zip(imaginaries).zip(inputs).zip(constants)
        {
            (*real, *imaginary) = (a * *real - b * *imaginary + p * u, a * *imaginary + b * *real + q * u);
        }
    }

    /// One token back: slopes in the state after it become those in the state before it.
    fn step_back(&self, slopes: &mut [T]) {
        let (reals, imaginaries) = slopes.split_at_mut(self.decay_real.len());
        let constants = self.decay_real.iter().zip(&self.decay_imaginary);
        for ((real, imaginary), (&a, &b)) in reals.iter_mut().zip(imaginaries).zip(constants) {
            (*real, *imaginary) = (a * *real + b * *imaginary, a * *imaginary - b * *real);
        }
    }
}

impl S4 {
    /// Every channel's number once per state.
    fn spread<T: Real>(&self, row: &[T], to: &mut [T]) {
        for (to, &u) in to.chunks_exact_mut(self.pairs).zip(row) {
            to.fill(u);
        }
    }

    /// States of a block of tokens, row by row; moves `state` behind them.
    fn scan<T: Real>(
        &self,
        given: &Given<'_, T>,
        constants: &Constants<T>,
        tokens: Range<usize>,
        state: &mut [T],
        states: &mut [T],
    ) {
        let mut inputs = vec![T::zero(); self.size()];
        for (t, row) in tokens.zip(states.chunks_exact_mut(2 * self.size())) {
            self.spread(given.row(INPUT, t), &mut inputs);
            constants.step(&inputs, state);
            row.copy_from_slice(state);
        }
    }
}

impl<T: Real> Chunked<T> for S4 {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let size = self.size();
        let constants = Constants::new(&hold_all(self, given));
        let block = block_of(2 * size);
        let mut states = vec![T::zero(); block * 2 * size];
        let mut borders = Vec::with_capacity(given.length.div_ceil(block) * 2 * size);
        let two = T::constant(2.0);
        for tokens in blocks(given.length, block) {
            borders.extend_from_slice(&state.numbers);
            self.scan(given, &constants, tokens.clone(), &mut state.numbers, &mut states);
            for (t, states) in tokens.zip(states.chunks_exact(2 * size)) {
                let (reals, imaginaries) = states.split_at(size);
                let outputs = &mut outputs[t * self.width..(t + 1) * self.width];
                for (c, y) in outputs.iter_mut().enumerate() {
                    let range = c * self.pairs..(c + 1) * self.pairs;
                    let sum = |readout: usize, states: &[T]| {
                        let readout = &given.parameters[readout][range.clone()];
                        readout
                            .iter()
                            .zip(&states[range.clone()])
                            .fold(T::zero(), |sum, (&c, &h)| sum + c * h)
                    };
                    *y = given.parameters[SKIP][c] * given.row(INPUT, t)[c]
                        + two * (sum(READOUT_REAL, reals) - sum(READOUT_IMAGINARY, imaginaries));
                }
            }
        }
        Saved(borders)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let size = self.size();
        let held = hold_all(self, given);
        let constants = Constants::new(&held);
        let block = block_of(2 * size);
        let zeros = || vec![T::zero(); size];
        let mut states = vec![T::zero(); block * 2 * size];
        let mut slopes = state_slopes.numbers.clone();
        let (mut inputs, mut spread_slopes) = (zeros(), zeros());
        let mut decay_slopes = vec![Complex::zero(); size];
        let mut input_slopes = vec![Complex::zero(); size];
        let two = T::constant(2.0);
        for tokens in blocks(given.length, block).rev() {
            let border = tokens.start / block * 2 * size;
            let border = &saved[border..border + 2 * size];
            let mut state = border.to_vec();
            self.scan(given, &constants, tokens.clone(), &mut state, &mut states);
            for (i, t) in tokens.enumerate().rev() {
                let here = &states[i * 2 * size..(i + 1) * 2 * size];
                let before = if i == 0 { border } else { &states[(i - 1) * 2 * size..i * 2 * size] };
                let row =
                    output_slopes[t * self.width..(t + 1) * self.width].iter().map(|&slope| two * slope);
                self.spread(&row.collect::<Vec<T>>(), &mut spread_slopes);
                self.spread(given.row(INPUT, t), &mut inputs);
                let (real_slopes, imaginary_slopes) = slopes.split_at_mut(size);
                let (here_real, here_imaginary) = here.split_at(size);
                let (before_real, before_imaginary) = before.split_at(size);
                for (factor, readout, here, to_states) in [
                    (T::one(), READOUT_REAL, here_real, &mut *real_slopes),
                    (-T::one(), READOUT_IMAGINARY, here_imaginary, &mut *imaginary_slopes),
                ] {
                    let to = gradient.parameters[readout].iter_mut().zip(to_states);
                    let from = spread_slopes.iter().zip(here).zip(given.parameters[readout]);
                    for ((to_readout, to_state), ((&slope, &h), &c)) in to.zip(from) {
                        *to_readout += factor * slope * h;
                        *to_state += factor * slope * c;
                    }
                }
                let sums = decay_slopes.iter_mut().zip(&mut input_slopes);
                let states = before_real.iter().zip(before_imaginary);
                let adjoints = real_slopes.iter().zip(&*imaginary_slopes);
                for ((((decay, input), (&x, &y)), (&real, &imaginary)), &u) in
                    sums.zip(states).zip(adjoints).zip(&inputs)
                {
                    decay.real += real * x + imaginary * y;
                    decay.imaginary += imaginary * x - real * y;
                    input.real += real * u;
                    input.imaginary += imaginary * u;
                }
                for c in 0..self.width {
                    let slope = output_slopes[t * self.width + c];
                    gradient.parameters[SKIP][c] += slope * given.row(INPUT, t)[c];
                    let through_states =
                        (c * self.pairs..(c + 1) * self.pairs).fold(T::zero(), |sum, index| {
                            sum + constants.input_real[index] * slopes[index]
                                + constants.input_imaginary[index] * slopes[size + index]
                        });
                    gradient.tokens[INPUT][t * self.width + c] +=
                        through_states + given.parameters[SKIP][c] * slope;
                }
                constants.step_back(&mut slopes);
            }
        }
        for (index, held) in held.iter().enumerate() {
            let part = held.slopes(decay_slopes[index], input_slopes[index]);
            gradient.parameters[LOG_STEP][index / self.pairs] += part.log_step;
            gradient.parameters[LOG_REAL][index] += part.log_real;
            gradient.parameters[IMAGINARY][index] += part.imaginary;
        }
        State { seen: initial.seen, numbers: slopes }
    }
}
