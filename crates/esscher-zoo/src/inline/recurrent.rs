//! The recurrence: add to the three sums; answer with (s/N) Sᵀφ(q) + (1 − s φ(q)·k̄) v̄.

use super::{Inline, KEY, QUERY, VALUE, reference};
use crate::mechanism::{Definition, Evaluated, Given, State};
use crate::number::Number;

impl<N: Number> Definition<N> for Inline {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        let size = self.key_width * self.value_width + self.key_width + self.value_width;
        State { seen: 0, numbers: vec![N::zero(); size] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        state.seen += 1;
        let (key, value) = (self.map(token.tokens[KEY]), token.tokens[VALUE]);
        let (products, key_sums, value_sums) = self.parts(&mut state.numbers);
        for (&k, row) in key.iter().zip(products.chunks_exact_mut(self.value_width)) {
            row.iter_mut().zip(value).for_each(|(entry, &v)| *entry += k * v);
        }
        key_sums.iter_mut().zip(&key).for_each(|(sum, &k)| *sum += k);
        value_sums.iter_mut().zip(value).for_each(|(sum, &v)| *sum += v);
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        let query = self.map(token.tokens[QUERY]);
        let (products, rest) = state.numbers.split_at(self.key_width * self.value_width);
        let (key_sums, value_sums) = rest.split_at(self.key_width);
        let share = N::constant(1.0 / state.seen as f64);
        let factor = N::constant(self.scale() / state.seen as f64);
        let total = query.iter().zip(key_sums).fold(N::zero(), |sum, (&q, &z)| sum + q * z);
        let rest = (N::one() - factor * total) * share;
        output.iter_mut().zip(value_sums).for_each(|(entry, &v)| *entry = rest * v);
        for (&q, row) in query.iter().zip(products.chunks_exact(self.value_width)) {
            output.iter_mut().zip(row).for_each(|(entry, &s)| *entry += factor * q * s);
        }
    }
}
