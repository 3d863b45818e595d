//! The recurrence: put (k, v) into the cache; answer with the softmax average of the cached values.

use super::{KEY, QUERY, Softmax, VALUE, all_finite, reference, score};
use crate::mechanism::{Definition, Evaluated, Given, State, StateView};
use crate::number::Number;

impl<N: Number> Definition<N> for Softmax {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        State { seen: 0, numbers: vec![N::zero(); self.ring().unwrap_or(0) * self.slot_width()] }
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        let (key, value) = (token.tokens[KEY], token.tokens[VALUE]);
        let slot = self.slot(state.seen);
        if state.numbers.len() < slot.end {
            state.numbers.resize(slot.end, N::zero());
        }
        let (key_place, value_place) = state.numbers[slot].split_at_mut(self.key_width);
        key_place.copy_from_slice(key);
        value_place.copy_from_slice(value);
        state.seen += 1;
    }

    fn read(&self, token: &Given<'_, N>, state: StateView<'_, N>, output: &mut [N]) {
        let scale = N::constant(self.scale());
        let slots = || state.numbers.chunks_exact(self.slot_width()).take(self.cached(state.seen));
        let mut weights: Vec<N> =
            slots().map(|slot| score(token.tokens[QUERY], &slot[..self.key_width], scale)).collect();
        // A shift changes nothing, so its derivative may be left out.
        let shift = weights.iter().fold(f64::NEG_INFINITY, |largest, score| largest.max(score.value()));
        let mut total = if all_finite(&weights) { N::zero() } else { N::constant(f64::NAN) };
        for weight in &mut weights {
            *weight = (*weight - N::constant(shift)).exp();
            total += *weight;
        }
        output.fill(N::zero());
        for (slot, &weight) in slots().zip(&weights) {
            let share = weight / total;
            for (entry, &v) in output.iter_mut().zip(&slot[self.key_width..]) {
                *entry += share * v;
            }
        }
    }
}
