//! The recurrence: m by its maximum, [C | n] decayed and written to in units of e^m; answer with Cᵀq over the divisor.

use super::{EPSILON, FORGET_GATE, INPUT_GATE, KEY, MatrixLstm, QUERY, VALUE, capped, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for MatrixLstm {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.key_width * (self.value_width + 1) + 1] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let (memory, stabiliser) = state.numbers.split_at_mut(self.key_width * (self.value_width + 1));
        let input = capped(token.tokens[INPUT_GATE][0]);
        let decayed = capped(token.tokens[FORGET_GATE][0]).log_sigmoid() + stabiliser[0];
        stabiliser[0] = decayed.larger(input);
        let (kept, written) = ((decayed - stabiliser[0]).exp(), (input - stabiliser[0]).exp());
        for (&key, row) in token.tokens[KEY].iter().zip(memory.chunks_exact_mut(self.value_width + 1)) {
            let key = written * key;
            for (entry, &v) in row.iter_mut().zip(token.tokens[VALUE].iter().chain([&N::one()])) {
                *entry = kept * *entry + key * v;
            }
        }
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        output.fill(N::zero());
        let (memory, stabiliser) = state.numbers.split_at(self.key_width * (self.value_width + 1));
        let mut total = N::zero();
        for (&q, row) in token.tokens[QUERY].iter().zip(memory.chunks_exact(self.value_width + 1)) {
            let q = q * N::constant(self.scale());
            for (entry, &s) in output.iter_mut().zip(row) {
                *entry += q * s;
            }
            total += q * row[self.value_width];
        }
        let divisor = total.magnitude().larger((-stabiliser[0]).exp()) + N::constant(EPSILON);
        output.iter_mut().for_each(|entry| *entry = *entry / divisor);
    }
}
