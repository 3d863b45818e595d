//! The recurrence: recall Sᵀ k̂, write β k̂ times what is missing to the value; answer with Sᵀ q̂.

use super::{BETA, DeltaRule, EPSILON, KEY, QUERY, VALUE, reference};
use crate::mechanism::{Definition, Evaluated, Given, State, StateView};
use crate::number::Number;

/// 1/√(|x|² + ε).
pub(super) fn inverse_length<N: Number>(row: &[N]) -> N {
    let square = row.iter().fold(N::constant(EPSILON), |sum, &x| sum + x * x);
    N::one() / square.sqrt()
}

/// Sᵀ x, times a factor.
fn recall<N: Number>(to: &mut [N], state: &[N], row: &[N], factor: N) {
    to.fill(N::zero());
    for (&x, entries) in row.iter().zip(state.chunks_exact(to.len())) {
        let x = x * factor;
        to.iter_mut().zip(entries).for_each(|(sum, &entry)| *sum += x * entry);
    }
}

impl<N: Number> Definition<N> for DeltaRule {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.key_width * self.value_width] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let (key, beta) = (token.tokens[KEY], token.tokens[BETA][0]);
        let inverse = inverse_length(key);
        let mut correction = vec![N::zero(); self.value_width];
        recall(&mut correction, &state.numbers, key, inverse);
        for (entry, &v) in correction.iter_mut().zip(token.tokens[VALUE]) {
            *entry = beta * (v - *entry);
        }
        for (&k, row) in key.iter().zip(state.numbers.chunks_exact_mut(self.value_width)) {
            let k = k * inverse;
            row.iter_mut().zip(&correction).for_each(|(entry, &u)| *entry += k * u);
        }
    }

    fn read(&self, token: &Given<'_, N>, state: StateView<'_, N>, output: &mut [N]) {
        let query = token.tokens[QUERY];
        recall(output, state.numbers, query, inverse_length(query));
    }
}
