//! The fast form: turn all queries and keys, run the inner chunked form; backwards, turn slopes the other way.
//!
//! With (x, y) turned by θ, the derivative in θ is x dy − y dx of the turned pair; slopes in Φ are summed from the end to give
//! those in the angles. Turned queries and keys are made again in the backward pass: what is saved is the inner mechanism's.

use super::angle::{frequencies, turn};
use super::{Places, Rotated, Rotation};
use crate::kernels::circular::cosines_and_sines;
use crate::mechanism::{Chunked, Given, Gradient, In, Mechanism, Saved, State};
use crate::number::Real;

/// Cosines and sines of every token's angles, and queries and keys turned by them.
pub(super) struct Turned<T> {
    cosines: Vec<T>,
    sines: Vec<T>,
    pub(super) query: Vec<T>,
    pub(super) key: Vec<T>,
    /// Φ after the last token.
    phases: Vec<T>,
}

impl<T: Real> Turned<T> {
    /// Sums and angles in double precision: an angle's absolute error matters, and sums over long sequences are large.
    pub(super) fn new(
        rotation: Rotation,
        places: Places,
        given: &Given<'_, T>,
        seen: usize,
        phases: &[T],
    ) -> Self {
        let pairs = places.width / 2;
        let (query, key) = (given.tokens[places.query].to_vec(), given.tokens[places.key].to_vec());
        let mut angles: Vec<f64> = Vec::with_capacity(given.length * pairs);
        let mut sums: Vec<f64> = phases.iter().map(|phase| phase.value()).collect();
        match rotation {
            Rotation::None => {}
            Rotation::Fixed { base } => {
                let frequencies = frequencies(base, pairs);
                for t in 0..given.length {
                    angles.extend(frequencies.iter().map(|frequency| (seen + t) as f64 * frequency));
                }
            }
            Rotation::Selective { temperatures } => {
                let temperatures = temperatures.values(pairs);
                for t in 0..given.length {
                    for (sum, &angle) in sums.iter_mut().zip(given.row(places.angle, t)) {
                        *sum += angle.value();
                    }
                    angles.extend(temperatures.iter().zip(&sums).map(|(temperature, sum)| temperature * sum));
                }
            }
        }
        let mut cosines = vec![0.0; angles.len()];
        cosines_and_sines(&mut angles, &mut cosines);
        let rounded = |numbers: Vec<f64>| numbers.into_iter().map(T::constant).collect::<Vec<T>>();
        let (cosines, sines) = (rounded(cosines), rounded(angles));
        let phases = sums.into_iter().map(T::constant).collect();
        let mut turned = Turned { cosines, sines, query, key, phases };
        for (rows, t) in [&mut turned.query, &mut turned.key]
            .into_iter()
            .flat_map(|numbers| numbers.chunks_exact_mut(places.width).zip(0..))
        {
            if let Some(range) = range_of(&turned.cosines, pairs, t) {
                turn(rows, &turned.cosines[range.clone()], &turned.sines[range]);
            }
        }
        turned
    }

    /// Adds slopes in what was given from those in turned queries or keys, and the part of every angle's slope.
    fn turn_back(
        &self,
        places: Places,
        turned: &[T],
        slopes: &mut [T],
        to: &mut [T],
        angle_slopes: &mut [T],
    ) {
        let pairs = places.width / 2;
        let rows = slopes.chunks_exact_mut(places.width).zip(turned.chunks_exact(places.width));
        for (t, (slopes, turned)) in rows.enumerate() {
            let Some(range) = range_of(&self.cosines, pairs, t) else { break };
            if !angle_slopes.is_empty() {
                for (j, slope) in angle_slopes[range.clone()].iter_mut().enumerate() {
                    *slope += turned[j] * slopes[j + pairs] - turned[j + pairs] * slopes[j];
                }
            }
            let opposite: Vec<T> = self.sines[range.clone()].iter().map(|&sine| -sine).collect();
            turn(slopes, &self.cosines[range], &opposite);
        }
        to.iter_mut().zip(slopes).for_each(|(to, &mut slope)| *to += slope);
    }
}

/// Where the angles of token t stand; nothing where there are none.
fn range_of<T>(cosines: &[T], pairs: usize, t: usize) -> Option<std::ops::Range<usize>> {
    (!cosines.is_empty()).then_some(t * pairs..(t + 1) * pairs)
}

impl<M: Mechanism> Rotated<M> {
    fn inner_state<T: Real>(&self, state: &State<T>) -> State<T> {
        State { seen: state.seen, numbers: state.numbers[self.phases()..].to_vec() }
    }
}

impl<T: Real, M: In<T>> Chunked<T> for Rotated<M> {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        let places = self.places();
        let turned = Turned::new(self.rotation, places, given, state.seen, &state.numbers[..self.phases()]);
        let mut inner = self.inner_state(state);
        let saved = places.with_rotated(given, &turned.query, &turned.key, |given| {
            self.inner.forward(given, &mut inner, outputs)
        });
        state.seen += given.length;
        state.numbers = turned.phases;
        state.numbers.append(&mut inner.numbers);
        saved
    }

    fn backward(
        &self,
        given: &Given<'_, T>,
        initial: &State<T>,
        outputs: &[T],
        saved: &Saved<T>,
        output_slopes: &[T],
        state_slopes: &State<T>,
        gradient: &mut Gradient<T>,
    ) -> State<T> {
        let places = self.places();
        let phases = self.phases();
        let turned = Turned::new(self.rotation, places, given, initial.seen, &initial.numbers[..phases]);
        // The inner mechanism adds to the slopes of its ports in place, but to those of turned queries and keys from zero.
        let mut inner_gradient = Gradient {
            tokens: gradient.tokens[..places.angle].iter_mut().map(std::mem::take).collect(),
            parameters: std::mem::take(&mut gradient.parameters),
        };
        let aside = |slopes: &mut Vec<T>| {
            let zeros = vec![T::zero(); slopes.len()];
            std::mem::replace(slopes, zeros)
        };
        let mut query_slopes = aside(&mut inner_gradient.tokens[places.query]);
        let mut key_slopes = aside(&mut inner_gradient.tokens[places.key]);
        let inner_slopes = places.with_rotated(given, &turned.query, &turned.key, |given| {
            self.inner.backward(
                given,
                &self.inner_state(initial),
                outputs,
                saved,
                output_slopes,
                &self.inner_state(state_slopes),
                &mut inner_gradient,
            )
        });
        let mut angle_slopes = vec![T::zero(); phases * given.length];
        for (port, rows, to) in
            [(places.query, &turned.query, &mut query_slopes), (places.key, &turned.key, &mut key_slopes)]
        {
            turned.turn_back(places, rows, &mut inner_gradient.tokens[port], to, &mut angle_slopes);
        }
        inner_gradient.tokens[places.query] = query_slopes;
        inner_gradient.tokens[places.key] = key_slopes;
        gradient.parameters = inner_gradient.parameters;
        for (to, slopes) in gradient.tokens.iter_mut().zip(inner_gradient.tokens) {
            *to = slopes;
        }
        let mut sums = state_slopes.numbers[..phases].to_vec();
        if let Rotation::Selective { temperatures } = self.rotation {
            let temperatures = temperatures.values(phases);
            let rows = angle_slopes.chunks_exact(phases.max(1));
            let to = gradient.tokens[places.angle].chunks_exact_mut(phases.max(1));
            for (to, slopes) in to.zip(rows).rev() {
                for (((to, &slope), sum), &temperature) in
                    to.iter_mut().zip(slopes).zip(&mut sums).zip(&temperatures)
                {
                    *sum += T::constant(temperature) * slope;
                    *to += *sum;
                }
            }
        }
        sums.extend(inner_slopes.numbers);
        State { seen: initial.seen, numbers: sums }
    }
}
