//! The fast form: the gated sum of `kernels::gated_sum` and nothing else.

use super::{GatedLinearAttention, KEY, LOG_DECAY, QUERY, VALUE};
use crate::kernels::gated_sum::{GatedSlopes, GatedSum};
use crate::mechanism::{Chunked, Given, Gradient, Saved, State};
use crate::number::Real;

impl GatedLinearAttention {
    fn sum<'a, T: Real>(&self, given: &Given<'a, T>) -> GatedSum<'a, T> {
        GatedSum {
            key_width: self.key_width,
            value_width: self.value_width,
            scale: T::constant(self.scale()),
            query: given.tokens[QUERY],
            key: given.tokens[KEY],
            value: given.tokens[VALUE],
            log_decay: given.tokens[LOG_DECAY],
        }
    }
}

impl<T: Real> Chunked<T> for GatedLinearAttention {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        Saved(self.sum(given).forward(&mut state.numbers, outputs))
    }

    fn backward(
        &self,
        given: &Given<'_, T>,
        initial: &State<T>,
        _outputs: &[T],
        saved: &Saved<T>,
        output_slopes: &[T],
        state_slopes: &State<T>,
        gradient: &mut Gradient<T>,
    ) -> State<T> {
        let mut numbers = state_slopes.numbers.clone();
        let [query, key, value, log_decay] = &mut gradient.tokens[..] else {
            unreachable!("a gradient has the ports of the signature")
        };
        self.sum(given).backward(
            &saved.0,
            output_slopes,
            &mut numbers,
            &mut GatedSlopes { query, key, value, log_decay },
        );
        State { seen: initial.seen, numbers }
    }
}
