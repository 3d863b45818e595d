//! The recurrence: add the token's angles to Φ, turn the key, let the inner mechanism absorb it; turn the query, let it answer.

use super::angle::{frequencies, turn};
use super::{Rotated, Rotation, reference};
use crate::mechanism::{Definition, Evaluated, Given, Mechanism, State};
use crate::number::Number;

impl<M: Mechanism> Rotated<M> {
    /// A row of queries or keys, turned by the angles of the token that was absorbed last.
    fn turned<N: Number>(&self, row: &[N], seen: usize, phases: &[N]) -> Vec<N> {
        let pairs = row.len() / 2;
        let angles: Vec<N> = match self.rotation {
            Rotation::None => return row.to_vec(),
            Rotation::Fixed { base } => {
                let position = seen.saturating_sub(1) as f64;
                frequencies(base, pairs).iter().map(|f| N::constant(position * f)).collect()
            }
            Rotation::Selective { temperatures } => temperatures
                .values(pairs)
                .iter()
                .zip(phases)
                .map(|(&c, &phase)| N::constant(c) * phase)
                .collect(),
        };
        let cosines: Vec<N> = angles.iter().map(|angle| angle.cos()).collect();
        let sines: Vec<N> = angles.iter().map(|angle| angle.sin()).collect();
        let mut row = row.to_vec();
        turn(&mut row, &cosines, &sines);
        row
    }
}

impl<N: Number, M: Mechanism + Definition<N>> Definition<N> for Rotated<M> {
    fn reference(&self, given: &Given<'_, N>) -> Evaluated<N> {
        reference::evaluate(self, given)
    }

    fn init(&self) -> State<N> {
        let mut state = Definition::<N>::init(&self.inner);
        state.numbers.splice(0..0, vec![N::zero(); self.phases()]);
        state
    }

    fn absorb(&self, token: &Given<'_, N>, state: &mut State<N>) {
        let places = self.places();
        let inner = state.numbers.split_off(self.phases());
        let mut inner = State { seen: state.seen, numbers: inner };
        if let Rotation::Selective { .. } = self.rotation {
            for (phase, &angle) in state.numbers.iter_mut().zip(token.tokens[places.angle]) {
                *phase += angle;
            }
        }
        state.seen += 1;
        let turned = |port: usize| self.turned(token.tokens[port], state.seen, &state.numbers);
        places.with_rotated(token, &turned(places.query), &turned(places.key), |token| {
            self.inner.absorb(token, &mut inner);
        });
        state.numbers.append(&mut inner.numbers);
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        let places = self.places();
        let (phases, inner) = state.numbers.split_at(self.phases());
        let inner = State { seen: state.seen, numbers: inner.to_vec() };
        let turned = |port: usize| self.turned(token.tokens[port], state.seen, phases);
        places.with_rotated(token, &turned(places.query), &turned(places.key), |token| {
            self.inner.read(token, &inner, output);
        });
    }
}
