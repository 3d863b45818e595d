//! The fast form: the sum of `kernels::chunked_sum` with keys Δ B and log-decays −Δa, plus the skip.

use super::{KEY, LOG_RATE, QUERY, RATE, SKIP, StateSpaceDuality, VALUE};
use crate::kernels::chunked_sum::{ChunkedSum, Rows, Slopes};
use crate::kernels::decay_per_token::PerToken;
use crate::kernels::slices::{add_scaled, dot, scale_rows_into};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

/// Keys times step sizes, and log-decays.
struct Steps<T> {
    rate: T,
    key: Vec<T>,
    log_decay: Vec<T>,
}

impl StateSpaceDuality {
    fn steps<T: Real>(given: &Given<'_, T>) -> Steps<T> {
        let rate = given.parameters[LOG_RATE][0].exp();
        let mut key = vec![T::zero(); given.tokens[KEY].len()];
        scale_rows_into(&mut key, given.tokens[KEY], given.tokens[RATE]);
        let log_decay = given.tokens[RATE].iter().map(|&step| -(step * rate)).collect();
        Steps { rate, key, log_decay }
    }

    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, steps: &'a Steps<T>) -> ChunkedSum<'a, T> {
        let rows = Rows {
            key_width: self.key_width,
            value_width: self.value_width,
            query: given.tokens[QUERY],
            key: &steps.key,
            value: given.tokens[VALUE],
            gates: &steps.log_decay,
        };
        ChunkedSum { rows, scale: T::one() }
    }
}

impl<T: Real> Chunked<T> for StateSpaceDuality {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let steps = Self::steps(given);
        let saved = self.sum(given, &steps).forward::<PerToken<T>>(&mut state.numbers, outputs);
        let skip = given.parameters[SKIP];
        for (output, value) in
            outputs.chunks_exact_mut(skip.len()).zip(given.tokens[VALUE].chunks_exact(skip.len()))
        {
            for ((y, &x), &d) in output.iter_mut().zip(value).zip(skip) {
                *y += d * x;
            }
        }
        Saved(saved)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let mut numbers = state_slopes.numbers.clone();
        let [query, key, value, rate] = ports(&mut gradient.tokens);
        let steps = Self::steps(given);
        let mut written = vec![T::zero(); key.len()];
        let mut log_decay = vec![T::zero(); given.length];
        self.sum(given, &steps).backward::<PerToken<T>>(
            saved,
            output_slopes,
            &mut numbers,
            &mut Slopes { query, key: &mut written, value, gates: &mut log_decay },
        );
        for t in 0..given.length {
            let row = t * self.key_width..(t + 1) * self.key_width;
            add_scaled(&mut key[row.clone()], given.tokens[RATE][t], &written[row.clone()]);
            rate[t] += dot(given.row(KEY, t), &written[row]) - steps.rate * log_decay[t];
        }
        gradient.parameters[LOG_RATE][0] += dot(&steps.log_decay, &log_decay);
        let skip = given.parameters[SKIP];
        let rows = value.chunks_exact_mut(skip.len()).zip(given.tokens[VALUE].chunks_exact(skip.len()));
        for ((slopes, value), output_slopes) in rows.zip(output_slopes.chunks_exact(skip.len())) {
            for c in 0..skip.len() {
                slopes[c] += skip[c] * output_slopes[c];
                gradient.parameters[SKIP][c] += value[c] * output_slopes[c];
            }
        }
        State { seen: initial.seen, numbers }
    }
}
