//! The recurrence: decay every row of S, add k vᵀ; answer with s Sᵀ q.

use super::{GatedLinearAttention, KEY, LOG_DECAY, QUERY, VALUE, reference};
use crate::mechanism::{Definition, Evaluated, Given, State, StateView};
use crate::number::Number;

impl<N: Number> Definition<N> for GatedLinearAttention {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.key_width * self.value_width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let (key, value, log_decay) = (token.tokens[KEY], token.tokens[VALUE], token.tokens[LOG_DECAY]);
        for (a, row) in state.numbers.chunks_exact_mut(self.value_width).enumerate() {
            let kept = log_decay[a].exp();
            for (entry, &v) in row.iter_mut().zip(value) {
                *entry = kept * *entry + key[a] * v;
            }
        }
    }

    fn read(&self, token: &Given<'_, N>, state: StateView<'_, N>, output: &mut [N]) {
        output.fill(N::zero());
        for (&q, row) in token.tokens[QUERY].iter().zip(state.numbers.chunks_exact(self.value_width)) {
            let q = q * N::constant(self.scale());
            for (entry, &s) in output.iter_mut().zip(row) {
                *entry += q * s;
            }
        }
    }
}
