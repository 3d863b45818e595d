//! The recurrence: h ← Ā h + B̄ u in complex numbers; answer with 2 Re(C h) + D u.

use super::discretisation::hold_all;
use super::{INPUT, READOUT_IMAGINARY, READOUT_REAL, S4, SKIP, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for S4 {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); 2 * self.size()] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let (reals, imaginaries) = state.numbers.split_at_mut(self.size());
        for (index, held) in hold_all(self, token).into_iter().enumerate() {
            let u = token.tokens[INPUT][index / self.pairs];
            let (real, imaginary) = (reals[index], imaginaries[index]);
            reals[index] = held.decay.real * real - held.decay.imaginary * imaginary + held.input.real * u;
            imaginaries[index] =
                held.decay.real * imaginary + held.decay.imaginary * real + held.input.imaginary * u;
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        let (reals, imaginaries) = state.numbers.split_at(self.size());
        for (c, y) in output.iter_mut().enumerate() {
            let skipped = token.parameters[SKIP][c] * token.tokens[INPUT][c];
            *y = (c * self.pairs..(c + 1) * self.pairs).fold(skipped, |sum, index| {
                let product = token.parameters[READOUT_REAL][index] * reals[index]
                    - token.parameters[READOUT_IMAGINARY][index] * imaginaries[index];
                sum + N::constant(2.0) * product
            });
        }
    }
}
