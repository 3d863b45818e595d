//! The recurrence: h ← λ ⊙ h + σ(i) ⊙ x; answer with σ(o) ⊙ h.

use super::{EXPONENT, FORGET, Forget, INPUT, INPUT_GATE, OUTPUT_GATE, QuasiLstm, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for QuasiLstm {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        for (c, h) in state.numbers.iter_mut().enumerate() {
            let forget = token.tokens[FORGET][c];
            let kept = match self.forget {
                Forget::Sigmoid => forget.sigmoid(),
                Forget::Reversed => (-(token.parameters[EXPONENT][0].relu() * forget.softplus())).exp(),
            };
            *h = kept * *h + token.tokens[INPUT_GATE][c].sigmoid() * token.tokens[INPUT][c];
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        for ((y, &h), o) in output.iter_mut().zip(&state.numbers).zip(token.tokens[OUTPUT_GATE]) {
            *y = o.sigmoid() * h;
        }
    }
}
