//! The fast form: the sum of `kernels::chunked_sum` without decay, every output over its η.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE};
use crate::kernels::chunked_sum::{ChunkedSum, Rows, Slopes};
use crate::kernels::decay_per_token::PerToken;
use crate::kernels::slices::{add_scaled, dot, scale_rows};
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

impl NormalizedAttention {
    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, no_decay: &'a [T]) -> ChunkedSum<'a, T> {
        let rows = Rows {
            key_width: self.key_width,
            value_width: self.value_width,
            query: given.tokens[QUERY],
            key: given.tokens[KEY],
            value: given.tokens[VALUE],
            gates: no_decay,
        };
        ChunkedSum { rows, scale: T::one() }
    }
}

impl<T: Real> Chunked<T> for NormalizedAttention {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let no_decay = vec![T::zero(); given.length];
        let saved = self.sum(given, &no_decay).forward::<PerToken<T>>(&mut state.numbers, outputs);
        let logits = given.tokens[LOG_NORMALISER];
        let inverses: Vec<T> = logits.iter().map(|&logit| self.normaliser.inverse(logit)).collect();
        scale_rows(outputs, &inverses);
        Saved(saved)
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, outputs, saved, output_slopes, state_slopes } = *pass;
        let mut numbers = state_slopes.numbers.clone();
        let [query, key, value, log_normaliser] = ports(&mut gradient.tokens);
        let values = self.value_width;
        let mut sum_slopes = vec![T::zero(); outputs.len()];
        let logits = given.tokens[LOG_NORMALISER].iter();
        for (t, (&logit, slope)) in logits.zip(log_normaliser).enumerate() {
            let row = t * values..(t + 1) * values;
            // o = (1/η) Hᵀq, so do/dz = −o d ln η/dz.
            *slope -=
                self.normaliser.log_slope(logit) * dot(&output_slopes[row.clone()], &outputs[row.clone()]);
            add_scaled(&mut sum_slopes[row.clone()], self.normaliser.inverse(logit), &output_slopes[row]);
        }
        let no_decay = vec![T::zero(); given.length];
        self.sum(given, &no_decay).backward::<PerToken<T>>(
            saved,
            &sum_slopes,
            &mut numbers,
            &mut Slopes { query, key, value, gates: &mut vec![T::zero(); given.length] },
        );
        State { seen: initial.seen, numbers }
    }
}
