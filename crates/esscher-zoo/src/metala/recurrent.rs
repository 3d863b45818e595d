//! The recurrence: every row of S becomes α S + (1 − α) v; answer with s Sᵀ q and the self-augmentation.

use super::{AUGMENTATION, Augmentation, LOG_DECAY, MetaLinearAttention, QUERY, VALUE, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for MetaLinearAttention {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.key_width * self.value_width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let rows = state.numbers.chunks_exact_mut(self.value_width);
        for (log_decay, row) in token.tokens[LOG_DECAY].iter().zip(rows) {
            let (kept, written) = (log_decay.exp(), -log_decay.exp_m1());
            for (entry, &v) in row.iter_mut().zip(token.tokens[VALUE]) {
                *entry = kept * *entry + written * v;
            }
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        output.fill(N::zero());
        for (&q, row) in token.tokens[QUERY].iter().zip(state.numbers.chunks_exact(self.value_width)) {
            let q = q * N::constant(self.scale());
            for (entry, &s) in output.iter_mut().zip(row) {
                *entry += q * s;
            }
        }
        if self.augmentation == Augmentation::SelfAttending {
            let channels = token.tokens[QUERY].iter().zip(token.parameters[AUGMENTATION]);
            let own = channels
                .zip(token.tokens[LOG_DECAY])
                .fold(N::zero(), |sum, ((&q, &w), log_decay)| sum - q * w * log_decay.exp_m1());
            for (entry, &v) in output.iter_mut().zip(token.tokens[VALUE]) {
                *entry += (own * v).sigmoid();
            }
        }
    }
}
