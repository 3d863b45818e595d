//! The fast form: the sum of `kernels::chunked_sum` with one decay per channel and nothing else.

use super::{GatedLinearAttention, KEY, LOG_DECAY, QUERY, VALUE};
use crate::kernels::chunked_sum::{ChunkedSum, Rows, Slopes};
use crate::kernels::decay_per_channel::PerChannel;
use crate::mechanism::{Chunked, Given, Gradient, Pass, Saved, State, ports};
use crate::number::Real;

impl GatedLinearAttention {
    fn sum<'a, T: Real>(&self, given: &Given<'a, T>) -> ChunkedSum<'a, T> {
        let rows = Rows {
            key_width: self.key_width,
            value_width: self.value_width,
            query: given.tokens[QUERY],
            key: given.tokens[KEY],
            value: given.tokens[VALUE],
            gates: given.tokens[LOG_DECAY],
        };
        ChunkedSum { rows, scale: T::constant(self.scale()) }
    }
}

impl<T: Real> Chunked<T> for GatedLinearAttention {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        state.seen += given.length;
        Saved(self.sum(given).forward::<PerChannel<T>>(&mut state.numbers, outputs))
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, saved, output_slopes, state_slopes, .. } = *pass;
        let mut numbers = state_slopes.numbers.clone();
        let [query, key, value, log_decay] = ports(&mut gradient.tokens);
        self.sum(given).backward::<PerChannel<T>>(
            saved,
            output_slopes,
            &mut numbers,
            &mut Slopes { query, key, value, gates: log_decay },
        );
        State { seen: initial.seen, numbers }
    }
}
