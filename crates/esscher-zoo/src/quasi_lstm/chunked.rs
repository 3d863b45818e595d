//! The fast form: the scan of `kernels::diagonal_scan` in blocks of tokens; all states h are kept for the backward pass.

use super::{EXPONENT, FORGET, Forget, INPUT, INPUT_GATE, OUTPUT_GATE, QuasiLstm};
use crate::kernels::diagonal_scan::{self, block_of, blocks};
use crate::kernels::logistic::logistic;
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State};
use crate::number::Real;

/// Gates of one block, used again for the next.
struct Gates<T> {
    decays: Vec<T>,
    /// σ(f) in the reversed variant, σ(−f) otherwise: the derivative of the log-decay in f, up to its factor.
    forget_slopes: Vec<T>,
    /// softplus(f) in the reversed variant.
    softened: Vec<T>,
    opened: Vec<T>,
    closed: Vec<T>,
}

impl<T: Real> Gates<T> {
    fn new(size: usize) -> Self {
        let zeros = || vec![T::zero(); size];
        Gates { decays: zeros(), forget_slopes: zeros(), softened: zeros(), opened: zeros(), closed: zeros() }
    }

    fn forget(&mut self, kind: Forget, exponent: T, arguments: &[T]) {
        match kind {
            Forget::Sigmoid => logistic(arguments, &mut self.decays, &mut self.forget_slopes),
            Forget::Reversed => {
                logistic(arguments, &mut self.forget_slopes, &mut self.decays);
                for ((decay, softened), argument) in
                    self.decays.iter_mut().zip(&mut self.softened).zip(arguments)
                {
                    *softened = argument.softplus();
                    *decay = -exponent * *softened;
                }
                T::exponentials(&mut self.decays[..arguments.len()]);
            }
        }
    }
}

impl QuasiLstm {
    /// max(α, 0), or 1 where there is no α.
    fn exponent<T: Real>(&self, given: &Given<'_, T>) -> T {
        match self.forget {
            Forget::Sigmoid => T::one(),
            Forget::Reversed => given.parameters[EXPONENT][0].relu(),
        }
    }
}

impl<T: Real> Chunked<T> for QuasiLstm {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let block = block_of(self.width);
        let mut gates = Gates::new(block * self.width);
        let exponent = self.exponent(given);
        let mut states = vec![T::zero(); given.length * self.width];
        for tokens in blocks(given.length, block) {
            let range = tokens.start * self.width..tokens.end * self.width;
            let rows = |port: usize| &given.tokens[port][range.clone()];
            let states = &mut states[range.clone()];
            logistic(rows(INPUT_GATE), &mut gates.opened, &mut gates.closed);
            for ((b, &opened), &x) in states.iter_mut().zip(&gates.opened).zip(rows(INPUT)) {
                *b = opened * x;
            }
            gates.forget(self.forget, exponent, rows(FORGET));
            diagonal_scan::forward(&gates.decays, states, &mut state.numbers);
            logistic(rows(OUTPUT_GATE), &mut gates.opened, &mut gates.closed);
            for ((y, &opened), &h) in outputs[range.clone()].iter_mut().zip(&gates.opened).zip(&*states) {
                *y = opened * h;
            }
        }
        Saved(states)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let block = block_of(self.width);
        let mut gates = Gates::new(block * self.width);
        let exponent = self.exponent(given);
        let mut state_slopes = state_slopes.numbers.clone();
        let mut slopes = vec![T::zero(); block * self.width];
        let mut decay_slopes = slopes.clone();
        let mut exponent_slope = T::zero();
        for tokens in blocks(given.length, block).rev() {
            let range = tokens.start * self.width..tokens.end * self.width;
            let size = range.len();
            let rows = |port: usize| &given.tokens[port][range.clone()];
            let states = &saved[range.clone()];
            let before = match tokens.start {
                0 => &initial.numbers[..],
                _ => &saved[range.start - self.width..range.start],
            };
            logistic(rows(OUTPUT_GATE), &mut gates.opened, &mut gates.closed);
            let gate_slopes = &mut gradient.tokens[OUTPUT_GATE][range.clone()];
            for index in 0..size {
                let slope = output_slopes[range.start + index];
                slopes[index] = slope * gates.opened[index];
                gate_slopes[index] += slopes[index] * gates.closed[index] * states[index];
            }
            gates.forget(self.forget, exponent, rows(FORGET));
            diagonal_scan::backward(
                &gates.decays[..size],
                before,
                states,
                &mut slopes[..size],
                &mut decay_slopes[..size],
                &mut state_slopes,
            );
            // ln λ is ln σ(f), or −max(α, 0) softplus(f).
            let factor = match self.forget {
                Forget::Sigmoid => T::one(),
                Forget::Reversed => {
                    for (&slope, &softened) in decay_slopes[..size].iter().zip(&gates.softened) {
                        exponent_slope -= slope * softened;
                    }
                    -exponent
                }
            };
            let forget_slopes = &mut gradient.tokens[FORGET][range.clone()];
            for ((to, &slope), &gate) in forget_slopes.iter_mut().zip(&decay_slopes).zip(&gates.forget_slopes)
            {
                *to += factor * slope * gate;
            }
            logistic(rows(INPUT_GATE), &mut gates.opened, &mut gates.closed);
            let input = rows(INPUT);
            let input_slopes = &mut gradient.tokens[INPUT][range.clone()];
            for index in 0..size {
                slopes[index] *= gates.opened[index];
                input_slopes[index] += slopes[index];
            }
            let gate_slopes = &mut gradient.tokens[INPUT_GATE][range.clone()];
            for index in 0..size {
                gate_slopes[index] += slopes[index] * gates.closed[index] * input[index];
            }
        }
        // Below zero, α is cut off.
        if self.forget == Forget::Reversed && exponent > T::zero() {
            gradient.parameters[EXPONENT][0] += exponent_slope;
        }
        State { seen: initial.seen, numbers: state_slopes }
    }
}
