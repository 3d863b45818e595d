//! The fast form: the sum of `kernels::scalar_gated_sum` without decay, every output over its η.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE};
use crate::kernels::gated_sum::{add_scaled, dot};
use crate::kernels::scalar_gated_sum::{ScalarGatedSlopes, ScalarGatedSum, scale_rows_into};
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

/// Keeps the sums before the division, then what the sum itself keeps.
impl<T: Real> Chunked<T> for NormalizedAttention {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        let no_decay = vec![T::zero(); given.length];
        let mut sums = vec![T::zero(); outputs.len()];
        let mut saved = self.sum(given, &no_decay).forward(&mut state.numbers, &mut sums);
        let logits = given.tokens[LOG_NORMALISER];
        let inverses: Vec<T> = logits.iter().map(|&logit| self.normaliser.inverse(logit).0).collect();
        scale_rows_into(outputs, &sums, &inverses);
        sums.append(&mut saved);
        Saved(sums)
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
        let (sums, saved) = saved.0.split_at(outputs.len());
        let mut sum_slopes = vec![T::zero(); outputs.len()];
        let logits = given.tokens[LOG_NORMALISER].iter();
        for (t, (&logit, slope)) in logits.zip(log_normaliser).enumerate() {
            let row = t * values..(t + 1) * values;
            let (inverse, derivative) = self.normaliser.inverse(logit);
            *slope += derivative * dot(&output_slopes[row.clone()], &sums[row.clone()]);
            add_scaled(&mut sum_slopes[row.clone()], inverse, &output_slopes[row]);
        }
        let no_decay = vec![T::zero(); given.length];
        self.sum(given, &no_decay).backward(
            saved,
            &sum_slopes,
            &mut numbers,
            &mut ScalarGatedSlopes { query, key, value, log_decay: &mut vec![T::zero(); given.length] },
        );
        State { seen: initial.seen, numbers }
    }
}
