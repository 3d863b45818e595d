//! Clusters of keys that readers cannot tell apart: weighted k-means in the metric of the tilts.

use super::{Tokens, geometry::Geometry, moments::Moments, moments::score};
use esscher_core::numerics::Stream;

/// Rounds of assignment after the start.
const ROUNDS: usize = 4;
/// The seed of the k-means++ start.
const SEED: u64 = 8;

/// At most `count` clusters of the tokens, weighted by their mass at the base tilt.
pub(crate) fn cluster(tokens: &Tokens, count: usize, geometry: &Geometry) -> Vec<Moments> {
    let d = geometry.base.len();
    let places: Vec<Vec<f32>> = tokens.keys.chunks_exact(d).map(|key| geometry.place(key)).collect();
    let scores: Vec<f64> = tokens.keys.chunks_exact(d).map(|key| score(&geometry.base, key)).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Never quite 0: a token without weight here may have some for another reader.
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp().max(1e-30)).collect();
    let mut centres = start(&places, &weights, count);
    let mut owners = Vec::new();
    for _ in 0..ROUNDS {
        owners = places.iter().map(|place| nearest(&centres, place)).collect();
        let mut sums = vec![vec![0f64; d]; centres.len()];
        let mut masses = vec![0f64; centres.len()];
        for ((place, &owner), weight) in places.iter().zip(&owners).zip(&weights) {
            masses[owner] += weight;
            sums[owner].iter_mut().zip(place).for_each(|(sum, entry)| *sum += weight * f64::from(*entry));
        }
        for ((centre, sum), mass) in centres.iter_mut().zip(&sums).zip(&masses) {
            if *mass > 0.0 {
                centre.iter_mut().zip(sum).for_each(|(entry, sum)| *entry = (sum / mass) as f32);
            }
        }
    }
    let mut members = vec![Tokens::default(); centres.len()];
    for ((position, key, value), owner) in tokens.iter(d).zip(owners) {
        members[owner].push(position, key, value);
    }
    members
        .iter()
        .filter(|own| own.len() > 0)
        .map(|own| {
            let mut moments = Moments::new(d, geometry.rank);
            moments.absorb(own, &geometry.base, &geometry.directions());
            moments
        })
        .collect()
}

/// The centre that is nearest to a place; the first of equals.
pub(crate) fn nearest(centres: &[Vec<f32>], place: &[f32]) -> usize {
    let mut best = (0, f32::INFINITY);
    for (index, centre) in centres.iter().enumerate() {
        let distance = squared_distance(centre, place);
        if distance < best.1 {
            best = (index, distance);
        }
    }
    best.0
}

pub(crate) fn squared_distance(x: &[f32], y: &[f32]) -> f32 {
    let (left, left_rest) = x.as_chunks::<8>();
    let (right, right_rest) = y.as_chunks::<8>();
    let mut sums = [0f32; 8];
    for (a, b) in left.iter().zip(right) {
        for lane in 0..8 {
            sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    sums.iter().sum::<f32>() + left_rest.iter().zip(right_rest).map(|(a, b)| (a - b) * (a - b)).sum::<f32>()
}

/// k-means++: the heaviest token, then tokens drawn with probability ∝ weight × squared distance to the centres so far.
fn start(places: &[Vec<f32>], weights: &[f64], count: usize) -> Vec<Vec<f32>> {
    let heaviest = weights
        .iter()
        .enumerate()
        .fold((0, 0.0), |best, (index, &weight)| if weight > best.1 { (index, weight) } else { best });
    let Some(first) = places.get(heaviest.0) else { return Vec::new() };
    let mut stream = Stream::new(SEED, 0, places.len() as u32);
    let mut centres = vec![first.clone()];
    let mut distances: Vec<f64> =
        places.iter().map(|place| f64::from(squared_distance(first, place))).collect();
    while centres.len() < count {
        let mut probabilities: Vec<f64> =
            distances.iter().zip(weights).map(|(far, weight)| far * weight).collect();
        let total: f64 = probabilities.iter().sum();
        if !(total > 0.0) {
            break;
        }
        probabilities.iter_mut().for_each(|probability| *probability /= total);
        let Some(centre) = places.get(stream.index(&probabilities)) else { break };
        for (distance, place) in distances.iter_mut().zip(places) {
            *distance = distance.min(f64::from(squared_distance(centre, place)));
        }
        centres.push(centre.clone());
    }
    centres
}
