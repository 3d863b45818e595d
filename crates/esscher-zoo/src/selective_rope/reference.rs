//! The definition: Φ_t = Σ_{s≤t} ω_s, then every query and key times its rotation matrix, then the inner definition.

use super::angle::frequencies;
use super::{Places, Rotated, Rotation};
use crate::mechanism::{Definition, Evaluated, Given, Mechanism};
use crate::number::Number;

pub(super) fn evaluate<N: Number, M: Mechanism + Definition<N>>(
    mechanism: &Rotated<M>,
    given: &Given<'_, N>,
) -> Evaluated<N> {
    let places = mechanism.places();
    let pairs = places.width / 2;
    let phase = |t: usize, j: usize| (0..=t).fold(N::zero(), |sum, s| sum + given.row(places.angle, s)[j]);
    let angle = |t: usize, j: usize| match mechanism.rotation {
        Rotation::None => N::zero(),
        Rotation::Fixed { base } => N::constant(t as f64 * frequencies(base, pairs)[j]),
        Rotation::Selective { temperatures } => N::constant(temperatures.values(pairs)[j]) * phase(t, j),
    };
    let rotated = |port: usize| -> Vec<N> {
        (0..given.length)
            .flat_map(|t| {
                let matrix = rotation_matrix(places, |j| angle(t, j));
                let row = given.row(port, t);
                matrix
                    .chunks_exact(places.width)
                    .map(|line| line.iter().zip(row).fold(N::zero(), |sum, (&r, &x)| sum + r * x))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let (query, key) = (rotated(places.query), rotated(places.key));
    let mut evaluated =
        places.with_rotated(given, &query, &key, |given| Definition::<N>::reference(&mechanism.inner, given));
    let phases = (0..mechanism.phases()).map(|j| phase(given.length - 1, j));
    evaluated.state.numbers.splice(0..0, phases);
    evaluated
}

/// R, row by row.
fn rotation_matrix<N: Number>(places: Places, angle: impl Fn(usize) -> N) -> Vec<N> {
    let (width, pairs) = (places.width, places.width / 2);
    let mut matrix = vec![N::zero(); width * width];
    if width % 2 == 1 {
        matrix[width * width - 1] = N::one();
    }
    for j in 0..pairs {
        let (first, second, angle) = (j, j + pairs, angle(j));
        matrix[first * width + first] = angle.cos();
        matrix[first * width + second] = -angle.sin();
        matrix[second * width + first] = angle.sin();
        matrix[second * width + second] = angle.cos();
    }
    matrix
}
