//! The recurrence: every state decays by e^{Δ A} and takes Δ B u; answer with C h + D u.

use super::{INPUT, KEY, LOG_RATE, QUERY, RATE, S6, SKIP, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for S6 {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.size()] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let rows = state.numbers.chunks_exact_mut(self.expansion);
        let log_rates = token.parameters[LOG_RATE].chunks_exact(self.expansion);
        for (c, (row, log_rates)) in rows.zip(log_rates).enumerate() {
            let step = token.tokens[RATE][c];
            let written = step * token.tokens[INPUT][c];
            for ((h, log_rate), &key) in row.iter_mut().zip(log_rates).zip(token.tokens[KEY]) {
                *h = (-(step * log_rate.exp())).exp() * *h + written * key;
            }
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        for (c, (y, row)) in output.iter_mut().zip(state.numbers.chunks_exact(self.expansion)).enumerate() {
            *y = row
                .iter()
                .zip(token.tokens[QUERY])
                .fold(token.parameters[SKIP][c] * token.tokens[INPUT][c], |sum, (&h, &query)| {
                    sum + query * h
                });
        }
    }
}
