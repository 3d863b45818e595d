//! The recurrence: add the token's angles to Φ, turn the key, let the inner mechanism absorb it; turn the query, let it answer.

use super::angle::{frequencies, turn};
use super::{Places, Rotated, Rotation, reference};
use crate::mechanism::{Definition, Evaluated, Given, Mechanism, State};
use crate::number::Number;

impl<M: Mechanism> Rotated<M> {
    /// Query and key of a token, turned by the angles of the token that was absorbed last.
    fn turned<N: Number>(
        &self,
        places: Places,
        token: &Given<'_, N>,
        seen: usize,
        phases: &[N],
    ) -> (Vec<N>, Vec<N>) {
        let (mut query, mut key) = (token.tokens[places.query].to_vec(), token.tokens[places.key].to_vec());
        let pairs = places.width / 2;
        let angles: Vec<N> = match self.rotation {
            Rotation::None => return (query, key),
            Rotation::Fixed { base } => {
                let position = seen.saturating_sub(1) as f64;
                frequencies(base, pairs).iter().map(|f| N::constant(position * f)).collect()
            }
            Rotation::Selective { temperatures } => {
                let temperatures = temperatures.values(pairs);
                temperatures.iter().zip(phases).map(|(&c, &phase)| N::constant(c) * phase).collect()
            }
        };
        let cosines: Vec<N> = angles.iter().map(|angle| angle.cos()).collect();
        let sines: Vec<N> = angles.iter().map(|angle| angle.sin()).collect();
        turn(&mut query, &cosines, &sines);
        turn(&mut key, &cosines, &sines);
        (query, key)
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
        let (query, key) = self.turned(places, token, state.seen, &state.numbers);
        places.with_rotated(token, &query, &key, |token| {
            self.inner.absorb(token, &mut inner);
        });
        state.numbers.append(&mut inner.numbers);
    }

    fn read(&self, token: &Given<'_, N>, state: &State<N>, output: &mut [N]) {
        let places = self.places();
        let (phases, inner) = state.numbers.split_at(self.phases());
        let inner = State { seen: state.seen, numbers: inner.to_vec() };
        let (query, key) = self.turned(places, token, state.seen, phases);
        places.with_rotated(token, &query, &key, |token| {
            self.inner.read(token, &inner, output);
        });
    }
}
