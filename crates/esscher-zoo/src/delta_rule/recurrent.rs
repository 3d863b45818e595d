//! The recurrence: recall Sᵀ k̂, write β k̂ times what is missing to the value; answer with Sᵀ q̂.

use super::{BETA, DeltaRule, EPSILON, KEY, QUERY, VALUE, downscaling, reference};
use crate::mechanism::{Definition, Evaluated, Given, State, StateView};
use crate::number::Number;

/// Writes x̂ = x/√(|x|² + ε) and returns 1/√(|x|² + ε).
pub(super) fn normalise<N: Number>(unit: &mut [N], row: &[N]) -> N {
    let inverse = |row: &[N], epsilon: N| N::one() / row.iter().fold(epsilon, |sum, &x| sum + x * x).sqrt();
    let times = |to: &mut [N], row: &[N], factor: N| {
        to.iter_mut().zip(row).for_each(|(to, &x)| *to = x * factor);
    };
    let inverse_length = inverse(row, N::constant(EPSILON));
    if inverse_length.value() > 0.0 {
        times(unit, row, inverse_length);
        return inverse_length;
    }
    // The squares overflow.
    let factor = downscaling(row);
    let scaled: Vec<N> = row.iter().map(|&x| x * factor).collect();
    let inverse_length = inverse(&scaled, N::constant(EPSILON) * factor * factor);
    times(unit, &scaled, inverse_length);
    inverse_length * factor
}

pub(super) fn unit<N: Number>(row: &[N]) -> Vec<N> {
    let mut unit = vec![N::zero(); row.len()];
    normalise(&mut unit, row);
    unit
}

/// Sᵀ x.
fn recall<N: Number>(to: &mut [N], state: &[N], row: &[N]) {
    to.fill(N::zero());
    for (&x, entries) in row.iter().zip(state.chunks_exact(to.len())) {
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
        let (key, beta) = (unit(token.tokens[KEY]), token.tokens[BETA][0]);
        let mut correction = vec![N::zero(); self.value_width];
        recall(&mut correction, &state.numbers, &key);
        for (entry, &v) in correction.iter_mut().zip(token.tokens[VALUE]) {
            *entry = beta * (v - *entry);
        }
        for (&k, row) in key.iter().zip(state.numbers.chunks_exact_mut(self.value_width)) {
            row.iter_mut().zip(&correction).for_each(|(entry, &u)| *entry += k * u);
        }
    }

    fn read(&self, token: &Given<'_, N>, state: StateView<'_, N>, output: &mut [N]) {
        recall(output, state.numbers, &unit(token.tokens[QUERY]));
    }
}
