//! Clusters of keys that readers cannot tell apart: weighted k-means in the metric of the tilts.

use super::geometry::Geometry;
use super::moments::Moments;
use super::{Tokens, rows_times_rows};
use crate::Error;
use crate::error::go_on;
use crate::head::product_in_double;
use esscher_core::Monitor;
use esscher_core::numerics::Stream;
use esscher_core::numerics::linalg::dot_in_lanes;

/// Rounds of assignment after the start.
const ROUNDS: usize = 4;
/// The seed of the k-means++ start.
const SEED: u64 = 8;

/// At most `count` clusters of the tokens at their places, weighted by their mass at the base tilt; an error if the monitor asked to
/// stop.
pub(crate) fn cluster(
    tokens: &Tokens,
    places: &[f32],
    count: usize,
    geometry: &Geometry,
    monitor: &dyn Monitor,
) -> Result<Vec<Moments>, Error> {
    let d = geometry.base.len();
    let scores: Vec<f64> =
        tokens.keys.chunks_exact(d).map(|key| product_in_double(&geometry.base, key)).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Never quite 0: a token without weight here may have some for another reader.
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp().max(1e-30)).collect();
    let mut centres = start(places, &weights, count, d, monitor)?;
    let parts = centres.len() / d;
    let mut owners = Vec::new();
    for _ in 0..ROUNDS {
        go_on(monitor)?;
        owners = all_nearest(&centres, places, d);
        let mut sums = vec![0f64; centres.len()];
        let mut masses = vec![0f64; parts];
        for ((place, &owner), weight) in places.chunks_exact(d).zip(&owners).zip(&weights) {
            masses[owner] += weight;
            let sum = &mut sums[owner * d..(owner + 1) * d];
            sum.iter_mut().zip(place).for_each(|(sum, entry)| *sum += weight * f64::from(*entry));
        }
        for ((centre, sum), mass) in centres.chunks_exact_mut(d).zip(sums.chunks_exact(d)).zip(&masses) {
            if *mass > 0.0 {
                centre.iter_mut().zip(sum).for_each(|(entry, sum)| *entry = (sum / mass) as f32);
            }
        }
    }
    let mut members = vec![Tokens::default(); parts];
    for ((position, key, value), owner) in tokens.iter(d).zip(owners) {
        members[owner].push(position, key, value);
    }
    let moments = |own: &Tokens| {
        let mut moments = Moments::new(d, geometry.rank);
        moments.absorb(own, &geometry.base, &geometry.directions());
        moments
    };
    Ok(members.iter().filter(|own| own.len() > 0).map(moments).collect())
}

/// The centre that is nearest to a place (the first of equals), and its squared distance, ∞ if there is none.
pub(crate) fn nearest(centres: &[f32], place: &[f32]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (index, centre) in centres.chunks_exact(place.len()).enumerate() {
        let distance = squared_distance(centre, place);
        if distance < best.1 {
            best = (index, distance);
        }
    }
    best
}

/// The nearest centre of every place, by |c|²/2 − c·x; one by one where that overflows.
fn all_nearest(centres: &[f32], places: &[f32], dimension: usize) -> Vec<usize> {
    let count = centres.len() / dimension;
    let halves: Vec<f32> =
        centres.chunks_exact(dimension).map(|centre| dot_in_lanes(centre, centre) / 2.0).collect();
    let one_by_one = |place: &[f32]| nearest(centres, place).0;
    if halves.iter().any(|half| !half.is_finite()) {
        return places.chunks_exact(dimension).map(one_by_one).collect();
    }
    let mut products = vec![0.0; places.len() / dimension * count];
    rows_times_rows(&mut products, places, centres, dimension);
    products
        .chunks_exact(count)
        .zip(places.chunks_exact(dimension))
        .map(|(row, place)| {
            let mut best = (0, f32::INFINITY);
            for (index, (product, half)) in row.iter().zip(&halves).enumerate() {
                if half - product < best.1 {
                    best = (index, half - product);
                }
            }
            if best.1.is_finite() { best.0 } else { one_by_one(place) }
        })
        .collect()
}

/// |x − y|², in double precision where single precision overflows.
fn squared_distance(x: &[f32], y: &[f32]) -> f64 {
    let (left, left_rest) = x.as_chunks::<8>();
    let (right, right_rest) = y.as_chunks::<8>();
    let mut sums = [0f32; 8];
    for (a, b) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| (a - b) * (a - b)).sum();
    let single = sums.iter().sum::<f32>() + rest;
    if single.is_finite() {
        return f64::from(single);
    }
    x.iter().zip(y).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
}

/// k-means++ (key `arthur2007`): the heaviest token, then tokens drawn with probability ∝ weight × squared distance to the centres so far.
fn start(
    places: &[f32],
    weights: &[f64],
    count: usize,
    dimension: usize,
    monitor: &dyn Monitor,
) -> Result<Vec<f32>, Error> {
    let heaviest = weights
        .iter()
        .enumerate()
        .fold((0, 0.0), |best, (index, &weight)| if weight > best.1 { (index, weight) } else { best });
    let row = |index: usize| places.get(index * dimension..(index + 1) * dimension);
    let mut stream = Stream::new(SEED, 0, weights.len() as u32);
    let count = count.min(weights.len());
    let mut centres = Vec::with_capacity(count * dimension);
    let mut distances = vec![f64::INFINITY; weights.len()];
    let mut next = row(heaviest.0);
    while let Some(centre) = next {
        centres.extend_from_slice(centre);
        if centres.len() >= count * dimension {
            break;
        }
        go_on(monitor)?;
        for (distance, place) in distances.iter_mut().zip(places.chunks_exact(dimension)) {
            *distance = distance.min(squared_distance(centre, place));
        }
        let mut probabilities: Vec<f64> =
            distances.iter().zip(weights).map(|(far, weight)| far * weight).collect();
        let total: f64 = probabilities.iter().sum();
        if total.is_nan() || total <= 0.0 {
            break;
        }
        probabilities.iter_mut().for_each(|probability| *probability /= total);
        next = row(stream.index(&probabilities));
    }
    Ok(centres)
}
