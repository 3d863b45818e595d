//! The recurrence: add k vᵀ to H; answer with Hᵀ q / η.

use super::{KEY, LOG_NORMALISER, NormalizedAttention, QUERY, VALUE, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for NormalizedAttention {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.key_width * self.value_width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        for (&key, row) in token.tokens[KEY].iter().zip(state.numbers.chunks_exact_mut(self.value_width)) {
            for (entry, &v) in row.iter_mut().zip(token.tokens[VALUE]) {
                *entry += key * v;
            }
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        output.fill(N::zero());
        let inverse = self.normaliser.inverse(token.tokens[LOG_NORMALISER][0]);
        for (&q, row) in token.tokens[QUERY].iter().zip(state.numbers.chunks_exact(self.value_width)) {
            for (entry, &s) in output.iter_mut().zip(row) {
                *entry += q * s;
            }
        }
        output.iter_mut().for_each(|entry| *entry *= inverse);
    }
}
