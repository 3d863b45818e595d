//! The fast form: the scan of `kernels::diagonal_scan` in blocks of tokens; the outputs are the states the backward pass needs.

use super::{INPUT, INPUT_GATE, LAMBDA, RECURRENCE_GATE, RgLru, SHARPNESS};
use crate::kernels::diagonal_scan::{self, block_of, blocks};
use crate::kernels::logistic::logistic;
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

/// Gates of one block, used again for the next.
struct Gates<T> {
    /// −8 softplus(λ).
    rates: Vec<T>,
    /// σ(r) and σ(−r).
    recurrence: Vec<T>,
    recurrence_closed: Vec<T>,
    /// a, and √(1 − a²).
    decays: Vec<T>,
    lost: Vec<T>,
    /// σ(i) and σ(−i).
    opened: Vec<T>,
    closed: Vec<T>,
}

impl<T: Real> Gates<T> {
    fn new(size: usize, lambda: &[T]) -> Self {
        let zeros = || vec![T::zero(); size];
        Gates {
            rates: lambda.iter().map(|x| T::constant(-SHARPNESS) * x.softplus()).collect(),
            recurrence: zeros(),
            recurrence_closed: zeros(),
            decays: zeros(),
            lost: zeros(),
            opened: zeros(),
            closed: zeros(),
        }
    }

    fn fill(&mut self, recurrence: &[T], input: &[T]) {
        logistic(recurrence, &mut self.recurrence, &mut self.recurrence_closed);
        logistic(input, &mut self.opened, &mut self.closed);
        let size = recurrence.len();
        let channels = self.rates.len();
        for (to, from) in
            self.decays[..size].chunks_exact_mut(channels).zip(self.recurrence.chunks_exact(channels))
        {
            for ((to, &gate), &rate) in to.iter_mut().zip(from).zip(&self.rates) {
                *to = rate * gate;
            }
        }
        for (lost, &log_decay) in self.lost.iter_mut().zip(&self.decays[..size]) {
            *lost = (-(log_decay + log_decay).exp_m1()).sqrt();
        }
        T::exponentials(&mut self.decays[..size]);
    }
}

impl<T: Real> Chunked<T> for RgLru {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let block = block_of(self.width);
        let mut gates = Gates::new(block * self.width, given.parameters[LAMBDA]);
        for tokens in blocks(given.length, block) {
            let range = tokens.start * self.width..tokens.end * self.width;
            let rows = |port: usize| &given.tokens[port][range.clone()];
            gates.fill(rows(RECURRENCE_GATE), rows(INPUT_GATE));
            let outputs = &mut outputs[range.clone()];
            for (((b, &lost), &opened), &x) in
                outputs.iter_mut().zip(&gates.lost).zip(&gates.opened).zip(rows(INPUT))
            {
                *b = lost * opened * x;
            }
            diagonal_scan::forward(&gates.decays, outputs, &mut state.numbers);
        }
        Saved(Vec::new())
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, outputs, output_slopes, state_slopes, .. } = *pass;
        let block = block_of(self.width);
        let mut gates = Gates::new(block * self.width, given.parameters[LAMBDA]);
        let mut state_slopes = state_slopes.numbers.clone();
        let mut decay_slopes = vec![T::zero(); block * self.width];
        let mut slopes = decay_slopes.clone();
        let mut rate_slopes = vec![T::zero(); self.width];
        let [inputs, recurrence_gates, input_gates] = ports(&mut gradient.tokens);
        for tokens in blocks(given.length, block).rev() {
            let range = tokens.start * self.width..tokens.end * self.width;
            let rows = |port: usize| &given.tokens[port][range.clone()];
            gates.fill(rows(RECURRENCE_GATE), rows(INPUT_GATE));
            let size = range.len();
            let before = match tokens.start {
                0 => &initial.numbers[..],
                _ => &outputs[range.start - self.width..range.start],
            };
            slopes[..size].copy_from_slice(&output_slopes[range.clone()]);
            diagonal_scan::backward(
                &gates.decays[..size],
                before,
                &outputs[range.clone()],
                &mut slopes[..size],
                &mut decay_slopes[..size],
                &mut state_slopes,
            );
            let input = rows(INPUT);
            for index in 0..size {
                let (lost, opened, x) = (gates.lost[index], gates.opened[index], input[index]);
                let slope = slopes[index] * opened;
                inputs[range.start + index] += slope * lost;
                input_gates[range.start + index] += slope * lost * gates.closed[index] * x;
                // d√(1 − a²) / d ln a = −a² / √(1 − a²), which is never needed where a is 1: there nothing is lost.
                if lost > T::zero() {
                    let decay = gates.decays[index];
                    decay_slopes[index] -= slope * x * decay * decay / lost;
                }
            }
            for (i, slopes) in decay_slopes[..size].chunks_exact(self.width).enumerate() {
                for (c, &slope) in slopes.iter().enumerate() {
                    let index = i * self.width + c;
                    let gate_slope = slope * gates.recurrence[index];
                    rate_slopes[c] += gate_slope;
                    recurrence_gates[range.start + index] +=
                        gate_slope * gates.recurrence_closed[index] * gates.rates[c];
                }
            }
        }
        let to = gradient.parameters[LAMBDA].iter_mut();
        for ((to, &slope), lambda) in to.zip(&rate_slopes).zip(given.parameters[LAMBDA]) {
            *to += T::constant(-SHARPNESS) * slope * lambda.sigmoid();
        }
        State { seen: initial.seen, numbers: state_slopes }
    }
}
