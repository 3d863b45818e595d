//! The fast form: the sum of `kernels::scalar_gated_sum` without decay, every output over its η.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE};
use crate::kernels::gated_sum::{add_scaled, dot};
use crate::kernels::scalar_gated_sum::{ScalarGatedSlopes, ScalarGatedSum, scale_rows};
use crate::mechanism::{Chunked, Given, Gradient, Saved, State};
use crate::number::Real;

impl NormalizedAttention {
    fn sum<'a, T: Real>(&self, given: &Given<'a, T>, no_decay: &'a [T]) -> ScalarGatedSum<'a, T> {
        ScalarGatedSum {
            key_width: self.key_width,
            value_width: self.value_width,
            scale: T::one(),
            query: given.tokens[QUERY],
            key: given.tokens[KEY],
            value: given.tokens[VALUE],
            log_decay: no_decay,
        }
    }
}

impl<T: Real> Chunked<T> for NormalizedAttention {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let no_decay = vec![T::zero(); given.length];
        let saved = self.sum(given, &no_decay).forward(&mut state.numbers, outputs);
        let logits = given.tokens[LOG_NORMALISER];
        let inverses: Vec<T> = logits.iter().map(|&logit| self.normaliser.inverse(logit)).collect();
        scale_rows(outputs, &inverses);
        Saved(saved)
    }

    fn backward(
        &self,
        given: &Given<'_, T>,
        initial: &State<T>,
        outputs: &[T],
        saved: &Saved<T>,
        output_slopes: &[T],
        state_slopes: &State<T>,
        gradient: &mut Gradient<T>,
    ) -> State<T> {
        let mut numbers = state_slopes.numbers.clone();
        let [query, key, value, log_normaliser] = &mut gradient.tokens[..] else {
            unreachable!("a gradient has the ports of the signature")
        };
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
        self.sum(given, &no_decay).backward(
            &saved.0,
            &sum_slopes,
            &mut numbers,
            &mut ScalarGatedSlopes { query, key, value, log_decay: &mut vec![T::zero(); given.length] },
        );
        State { seen: initial.seen, numbers }
    }
}
