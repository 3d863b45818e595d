//! The recurrence of linear attention: S ← S + φ(k) vᵀ, z ← z + φ(k); answer with Sᵀ φ(q) / φ(q)·z.

use super::{Luna, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for Luna {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        self.linear_attention().init()
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        self.linear_attention().absorb(token, state);
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        self.linear_attention().read(token, state, output);
    }
}
