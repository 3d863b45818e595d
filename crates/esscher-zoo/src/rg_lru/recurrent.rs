//! The recurrence: h ← a ⊙ h + √(1 − a²) ⊙ σ(i) ⊙ x; answer with h.

use super::{INPUT, INPUT_GATE, LAMBDA, RECURRENCE_GATE, RgLru, SHARPNESS, reference};
use crate::mechanism::{Definition, Evaluated, Given, State, StateView};
use crate::number::Number;

impl<N: Number> Definition<N> for RgLru {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        for (c, h) in state.numbers.iter_mut().enumerate() {
            let rate = token.parameters[LAMBDA][c].softplus() * N::constant(-SHARPNESS);
            let log_decay = rate * token.tokens[RECURRENCE_GATE][c].sigmoid();
            let lost = -(log_decay + log_decay).exp_m1();
            let input = token.tokens[INPUT_GATE][c].sigmoid() * token.tokens[INPUT][c];
            *h = log_decay.exp() * *h + lost.sqrt() * input;
        }
    }

    fn read(&self, _token: &Given<'_, N>, state: StateView<'_, N>, output: &mut [N]) {
        output.copy_from_slice(state.numbers);
    }
}
