//! The recurrence: decay all of S by e^{−Δa}, add Δ B xᵀ; answer with Sᵀ C + D ⊙ x.

use super::{KEY, LOG_RATE, QUERY, RATE, SKIP, StateSpaceDuality, VALUE, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for StateSpaceDuality {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.key_width * self.value_width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let rate = token.tokens[RATE][0];
        let kept = (-(rate * token.parameters[LOG_RATE][0].exp())).exp();
        for (&key, row) in token.tokens[KEY].iter().zip(state.numbers.chunks_exact_mut(self.value_width)) {
            let key = rate * key;
            for (entry, &v) in row.iter_mut().zip(token.tokens[VALUE]) {
                *entry = kept * *entry + key * v;
            }
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        for ((entry, &skip), &v) in output.iter_mut().zip(token.parameters[SKIP]).zip(token.tokens[VALUE]) {
            *entry = skip * v;
        }
        for (&q, row) in token.tokens[QUERY].iter().zip(state.numbers.chunks_exact(self.value_width)) {
            for (entry, &s) in output.iter_mut().zip(row) {
                *entry += q * s;
            }
        }
    }
}
