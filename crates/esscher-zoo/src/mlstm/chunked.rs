//! The fast form: C̄ and n̄ by `kernels::chunked_sum` with keys e^ĩ k, values [v | 1] and log-decays ln σ(f̃); m beside them.

use super::{CAP, EPSILON, FORGET_GATE, INPUT_GATE, KEY, MatrixLstm, QUERY, VALUE, capped};
use crate::kernels::chunked_sum::{ChunkedSum, Rows, Slopes};
use crate::kernels::decay_per_token::PerToken;
use crate::kernels::slices::{add, add_scaled, dot, scale_rows_into};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

/// What the sum runs over.
struct Gated<T> {
    input: Vec<T>,
    written: Vec<T>,
    log_decay: Vec<T>,
    key: Vec<T>,
    value: Vec<T>,
}

impl MatrixLstm {
    fn gated<T: Real>(&self, given: &Given<'_, T>) -> Gated<T> {
        let input: Vec<T> = given.tokens[INPUT_GATE].iter().map(|&logit| capped(logit)).collect();
        let written: Vec<T> = input.iter().map(|gate| gate.exp()).collect();
        let mut key = vec![T::zero(); given.tokens[KEY].len()];
        scale_rows_into(&mut key, given.tokens[KEY], &written);
        let mut value = Vec::with_capacity(given.length * (self.value_width + 1));
        for row in given.tokens[VALUE].chunks_exact(self.value_width) {
            value.extend_from_slice(row);
            value.push(T::one());
        }
        let log_decay = given.tokens[FORGET_GATE].iter().map(|&logit| capped(logit).log_sigmoid()).collect();
        Gated { input, written, log_decay, key, value }
    }

    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, gated: &'a Gated<T>) -> ChunkedSum<'a, T> {
        let rows = Rows {
            key_width: self.key_width,
            value_width: self.value_width + 1,
            query: given.tokens[QUERY],
            key: &gated.key,
            value: &gated.value,
            gates: &gated.log_decay,
        };
        ChunkedSum { rows, scale: T::constant(self.scale()) }
    }

    /// max(|n̄·q|, 1) + ε e^m.
    fn divisor<T: Real>(total: T, stabiliser: T) -> T {
        total.magnitude().larger(T::one()) + T::constant(EPSILON) * stabiliser.exp()
    }
}

/// The derivative of the cap, 1 − tanh²(z/15).
fn cap_slope<T: Real>(logit: T) -> T {
    let tanh = (logit / T::constant(CAP)).tanh();
    T::one() - tanh * tanh
}

/// Keeps what the sum itself keeps, then [C | n] after the last token, n̄·q and m of every token.
impl<T: Real> Chunked<T> for MatrixLstm {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let (values, wide) = (self.value_width, self.value_width + 1);
        let gated = self.gated(given);
        let (memory, stabiliser) = state.numbers.split_at_mut(self.key_width * wide);
        let stabiliser = &mut stabiliser[0];
        let unit = stabiliser.exp();
        memory.iter_mut().for_each(|x| *x *= unit);
        let mut sums = vec![T::zero(); given.length * wide];
        let mut saved = self.sum(given, &gated).forward::<PerToken<T>>(memory, &mut sums);
        let mut stabilisers = Vec::with_capacity(given.length);
        for (t, (output, sums)) in outputs.chunks_exact_mut(values).zip(sums.chunks_exact(wide)).enumerate() {
            *stabiliser = (gated.log_decay[t] + *stabiliser).larger(gated.input[t]);
            stabilisers.push(*stabiliser);
            let inverse = T::one() / Self::divisor(sums[values], *stabiliser);
            output.iter_mut().zip(sums).for_each(|(h, &sum)| *h = sum * inverse);
        }
        let unit = (-*stabiliser).exp();
        memory.iter_mut().for_each(|x| *x *= unit);
        saved.extend_from_slice(memory);
        saved.extend(sums.chunks_exact(wide).map(|sums| sums[values]));
        saved.append(&mut stabilisers);
        Saved(saved)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, outputs, saved, output_slopes, state_slopes } = *pass;
        let (values, wide, length) = (self.value_width, self.value_width + 1, given.length);
        let size = self.key_width * wide;
        let (saved, stabilisers) = saved.split_at(saved.len() - length);
        let (saved, totals) = saved.split_at(saved.len() - length);
        let (of_sum, memory) = saved.split_at(saved.len() - size);
        let gated = self.gated(given);

        // Through the division.
        let mut sum_slopes = vec![T::zero(); length * wide];
        let mut stabiliser_slopes = vec![T::zero(); length];
        for t in 0..length {
            let row = t * values..(t + 1) * values;
            let (total, stabiliser) = (totals[t], stabilisers[t]);
            let inverse = T::one() / Self::divisor(total, stabiliser);
            let divisor_slope = -(dot(&output_slopes[row.clone()], &outputs[row.clone()]) * inverse);
            let (of_values, of_total) = sum_slopes[t * wide..(t + 1) * wide].split_at_mut(values);
            add_scaled(of_values, inverse, &output_slopes[row]);
            if total.magnitude() >= T::one() {
                of_total[0] = if total < T::zero() { -divisor_slope } else { divisor_slope };
            }
            stabiliser_slopes[t] = divisor_slope * T::constant(EPSILON) * stabiliser.exp();
        }

        // C = e^{−m} C̄ after the last token.
        let unit = (-stabilisers[length - 1]).exp();
        let of_memory = &state_slopes.numbers[..size];
        let mut numbers: Vec<T> = of_memory.iter().map(|&slope| slope * unit).collect();
        stabiliser_slopes[length - 1] += state_slopes.numbers[size] - dot(of_memory, memory);

        let [query, key, value, input_gate, forget_gate] = ports(&mut gradient.tokens);
        let mut key_slopes = vec![T::zero(); key.len()];
        let mut value_slopes = vec![T::zero(); length * wide];
        let mut decay_slopes = vec![T::zero(); length];
        self.sum(given, &gated).backward::<PerToken<T>>(
            of_sum,
            &sum_slopes,
            &mut numbers,
            &mut Slopes { query, key: &mut key_slopes, value: &mut value_slopes, gates: &mut decay_slopes },
        );

        // Through the gates, and through m, whose derivative goes to the larger side of its maximum.
        let first = initial.numbers[size];
        let mut handed_back = T::zero();
        for t in (0..length).rev() {
            let row = t * self.key_width..(t + 1) * self.key_width;
            add_scaled(&mut key[row.clone()], gated.written[t], &key_slopes[row.clone()]);
            add(&mut value[t * values..(t + 1) * values], &value_slopes[t * wide..t * wide + values]);
            let mut input_slope = dot(&gated.key[row.clone()], &key_slopes[row]);
            let mut decay_slope = decay_slopes[t];
            let slope = stabiliser_slopes[t] + handed_back;
            let before = if t == 0 { first } else { stabilisers[t - 1] };
            if gated.log_decay[t] + before < gated.input[t] {
                input_slope += slope;
                handed_back = T::zero();
            } else {
                decay_slope += slope;
                handed_back = slope;
            }
            let (input, forget) = (given.tokens[INPUT_GATE][t], given.tokens[FORGET_GATE][t]);
            input_gate[t] += input_slope * cap_slope(input);
            forget_gate[t] += decay_slope * (-capped(forget)).sigmoid() * cap_slope(forget);
        }

        // C̄ = e^m C before the first token.
        let unit = first.exp();
        numbers.iter_mut().for_each(|slope| *slope *= unit);
        handed_back += dot(&numbers, &initial.numbers[..size]);
        numbers.push(handed_back);
        State { seen: initial.seen, numbers }
    }
}
