//! The fast form: turn all queries and keys, run the inner chunked form; backwards, turn slopes the other way.
//!
//! With (x, y) turned by θ, the derivative in θ is x dy − y dx of the turned pair; slopes in Φ are summed from the end to give
//! those in the angles. Turned queries and keys are made again in the backward pass: what is saved is the inner mechanism's.

use super::angle::{frequencies, turn};
use super::{Places, Rotated, Rotation};
use crate::kernels::circular::cosines_and_sines;
use crate::kernels::diagonal_scan::blocks;
use crate::mechanism::{Chunked, Given, Gradient, In, Mechanism, Pass, Saved, State};
use crate::number::Real;
use std::ops::Range;

/// Tokens whose angles are made at a time: their cosines and sines stay in the cache.
const BLOCK: usize = 32;

/// Queries and keys turned by their tokens' angles, and Φ after the last token.
pub(super) struct Turned<T> {
    pub(super) query: Vec<T>,
    pub(super) key: Vec<T>,
    phases: Vec<T>,
}

impl<T: Real> Turned<T> {
    pub(super) fn new(
        rotation: Rotation,
        places: Places,
        given: &Given<'_, T>,
        seen: usize,
        phases: &[T],
    ) -> Self {
        let (mut query, mut key) = (given.tokens[places.query].to_vec(), given.tokens[places.key].to_vec());
        let phases = for_each_block(rotation, places, given, seen, phases, |tokens, cosines, sines| {
            let range = tokens.start * places.width..tokens.end * places.width;
            for rows in [&mut query[range.clone()], &mut key[range]] {
                turn_all(rows, places.width, cosines, sines);
            }
        });
        Turned { query, key, phases }
    }
}

/// Hands over cosines and sines of all tokens' angles, block by block; nothing where nothing is rotated. Returns Φ after the last.
///
/// Sums and angles are in double precision: an angle's absolute error matters, and sums over long sequences are large.
fn for_each_block<T: Real>(
    rotation: Rotation,
    places: Places,
    given: &Given<'_, T>,
    seen: usize,
    phases: &[T],
    mut visit: impl FnMut(Range<usize>, &[T], &[T]),
) -> Vec<T> {
    let pairs = places.width / 2;
    let factors = match rotation {
        Rotation::None => return phases.to_vec(),
        Rotation::Fixed { base } => frequencies(base, pairs),
        Rotation::Selective { temperatures } => temperatures.values(pairs),
    };
    let mut sums: Vec<f64> = phases.iter().map(|phase| phase.value()).collect();
    let (mut angles, mut cosines) = (vec![0.0; BLOCK * pairs], vec![0.0; BLOCK * pairs]);
    let mut rounded = [vec![T::zero(); BLOCK * pairs], vec![T::zero(); BLOCK * pairs]];
    for tokens in blocks(given.length, BLOCK) {
        let size = tokens.len() * pairs;
        for (t, row) in tokens.clone().zip(angles.chunks_exact_mut(pairs.max(1))) {
            if let Rotation::Selective { .. } = rotation {
                let angles = given.row(places.angle, t);
                sums.iter_mut().zip(angles).for_each(|(sum, angle)| *sum += angle.value());
                row.iter_mut().zip(&sums).zip(&factors).for_each(|((x, sum), factor)| *x = factor * sum);
            } else {
                let position = (seen + t) as f64;
                row.iter_mut().zip(&factors).for_each(|(x, factor)| *x = position * factor);
            }
        }
        cosines_and_sines(&mut angles[..size], &mut cosines[..size]);
        for (to, from) in rounded.iter_mut().zip([&cosines, &angles]) {
            to.iter_mut().zip(&from[..size]).for_each(|(to, &x)| *to = T::constant(x));
        }
        visit(tokens, &rounded[0][..size], &rounded[1][..size]);
    }
    sums.into_iter().map(T::constant).collect()
}

/// Turns every row by its cosines and sines.
fn turn_all<T: Real>(rows: &mut [T], width: usize, cosines: &[T], sines: &[T]) {
    let pairs = (width / 2).max(1);
    let turns = cosines.chunks_exact(pairs).zip(sines.chunks_exact(pairs));
    for (row, (cosines, sines)) in rows.chunks_exact_mut(width).zip(turns) {
        turn(row, cosines, sines);
    }
}

impl<M: Mechanism> Rotated<M> {
    /// The inner state and Φ.
    fn parts<T: Real>(&self, state: &State<T>) -> (State<T>, Vec<T>) {
        let (inner, phases) = state.numbers.split_at(state.numbers.len() - self.phases());
        (State { seen: state.seen, numbers: inner.to_vec() }, phases.to_vec())
    }
}

impl<T: Real, M: In<T>> Chunked<T> for Rotated<M> {
    fn forward(&self, given: &Given<'_, T>, state: &mut State<T>, outputs: &mut [T]) -> Saved<T> {
        let places = self.places();
        let phases = state.numbers.split_off(state.numbers.len() - self.phases());
        let mut turned = Turned::new(self.rotation, places, given, state.seen, &phases);
        let saved = places.with_rotated(given, &turned.query, &turned.key, |given| {
            self.inner.forward(given, state, outputs)
        });
        state.numbers.append(&mut turned.phases);
        saved
    }

    fn backward(&self, pass: &Pass<'_, T>, gradient: &mut Gradient<T>) -> State<T> {
        let Pass { given, initial, .. } = *pass;
        let places = self.places();
        let phases = self.phases();
        let (inner_initial, before) = self.parts(initial);
        let (inner_state_slopes, mut sums) = self.parts(pass.state_slopes);
        let turned = Turned::new(self.rotation, places, given, initial.seen, &before);
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
            let inner = Pass { given, initial: &inner_initial, state_slopes: &inner_state_slopes, ..*pass };
            self.inner.backward(&inner, &mut inner_gradient)
        });
        let mut angle_slopes = vec![T::zero(); phases * given.length];
        let (width, pairs) = (places.width, places.width / 2);
        if phases > 0 {
            for (port, turned) in [(places.query, &turned.query), (places.key, &turned.key)] {
                let rows = turned.chunks_exact(width).zip(inner_gradient.tokens[port].chunks_exact(width));
                for (to, (turned, slopes)) in angle_slopes.chunks_exact_mut(pairs).zip(rows) {
                    let (x, y) = turned.split_at(pairs);
                    let (dx, dy) = slopes.split_at(pairs);
                    for (((to, (&x, &y)), &dx), &dy) in to.iter_mut().zip(x.iter().zip(y)).zip(dx).zip(dy) {
                        *to += x * dy - y * dx;
                    }
                }
            }
        }
        for_each_block(self.rotation, places, given, initial.seen, &before, |tokens, cosines, sines| {
            let opposite: Vec<T> = sines.iter().map(|&sine| -sine).collect();
            for port in [places.query, places.key] {
                let range = tokens.start * width..tokens.end * width;
                turn_all(&mut inner_gradient.tokens[port][range], width, cosines, &opposite);
            }
        });
        for (port, to) in [(places.query, &mut query_slopes), (places.key, &mut key_slopes)] {
            to.iter_mut().zip(&inner_gradient.tokens[port]).for_each(|(to, &slope)| *to += slope);
        }
        inner_gradient.tokens[places.query] = query_slopes;
        inner_gradient.tokens[places.key] = key_slopes;
        gradient.parameters = inner_gradient.parameters;
        for (to, slopes) in gradient.tokens.iter_mut().zip(inner_gradient.tokens) {
            *to = slopes;
        }
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
        let mut slopes = inner_slopes;
        slopes.numbers.append(&mut sums);
        slopes
    }
}
