//! Replacements against their definitions in double precision, and worlds in which they are exact.

use esscher_audit::head::{Head, Order, Readers};
use esscher_audit::replacement::{
    Atoms, BLOCK, Middle, Replacement, StreamingCache, exact_bytes, offline, streaming,
};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::Gaussian;
use esscher_core::numerics::{Stream, log_sum_exp};

const DIMENSION: usize = 6;

/// One head's tokens and tilts of a text, owned.
#[derive(Clone)]
struct Text {
    tilts: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Text {
    /// Tilts of some mean and spread, keys with a few outliers, values that depend on keys, some of them light.
    fn random(seed: u64, tokens: usize) -> Text {
        let mut stream = Stream::new(seed, 0, 0);
        let mut row = |scale: f64, mean: f64| -> Vec<f32> {
            (0..DIMENSION).map(|i| (mean * (1.0 - 0.3 * i as f64) + scale * stream.normal()) as f32).collect()
        };
        let mut text = Text { tilts: Vec::new(), keys: Vec::new(), values: Vec::new() };
        for token in 0..tokens {
            text.tilts.extend(row(0.35, 0.5));
            let key = row(if token % 29 == 5 { 2.0 } else { 0.9 }, 0.3);
            let light = if token % 17 == 3 { 0.1 } else { 1.0 };
            text.values.extend(row(1.0, 0.2).iter().zip(&key).map(|(noise, key)| light * (noise + key)));
            text.keys.extend(key);
        }
        text
    }

    fn head(&self, order: Order) -> Head<'_> {
        Head { order, dimension: DIMENSION, tilts: &self.tilts, keys: &self.keys, values: &self.values }
    }
}

fn middles() -> Vec<Middle> {
    vec![
        Middle::Exact,
        Middle::Dropped,
        Middle::Mean,
        Middle::Gaussian,
        Middle::TiltedGaussian,
        Middle::ReducedGaussian { rank: 2 },
        Middle::TiltedMeans { count: 5 },
        Middle::TiltedGaussians { count: 3 },
    ]
}

fn replacement(middle: Middle) -> Replacement {
    Replacement { atoms: Atoms { first: 2, light: 0.4, most_light: 4 }, window: 40, top: 0, middle }
}

fn double(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&entry| f64::from(entry)).collect()
}

fn inner(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

/// Log-mass and output of a part at a tilt.
type Part = (f64, Vec<f64>);

/// Σ e^Z o / Σ e^Z.
fn mixture(parts: &[Part]) -> Vec<f64> {
    let masses: Vec<f64> = parts.iter().map(|part| part.0).collect();
    let total = log_sum_exp(&masses);
    let mut output = vec![0.0; DIMENSION];
    for (mass, own) in parts {
        output.iter_mut().zip(own).for_each(|(sum, entry)| *sum += (mass - total).exp() * entry);
    }
    output
}

fn exact_part(tilt: &[f64], token: &(Vec<f64>, Vec<f64>)) -> Part {
    (inner(tilt, &token.0), token.1.clone())
}

/// The tilted Gaussian of tokens by its formulas; covariances act on the projection of e on `basis` (rows), none for means.
fn gaussian_part(tilt: &[f64], base: &[f64], tokens: &[(Vec<f64>, Vec<f64>)], basis: &[Vec<f64>]) -> Part {
    let scores: Vec<f64> = tokens.iter().map(|token| inner(base, &token.0)).collect();
    let log_mass = log_sum_exp(&scores);
    let p: Vec<f64> = scores.iter().map(|score| (score - log_mass).exp()).collect();
    let mean = |of: &dyn Fn(usize) -> f64| -> f64 { p.iter().enumerate().map(|(l, p)| p * of(l)).sum() };
    let mean_key: Vec<f64> = (0..DIMENSION).map(|i| mean(&|l| tokens[l].0[i])).collect();
    let mean_value: Vec<f64> = (0..DIMENSION).map(|i| mean(&|l| tokens[l].1[i])).collect();
    let e: Vec<f64> = tilt.iter().zip(base).map(|(a, b)| a - b).collect();
    let mut z = log_mass + inner(&e, &mean_key);
    let mut output = mean_value.clone();
    if !basis.is_empty() {
        let along: Vec<f64> = basis.iter().map(|row| inner(row, &e)).collect();
        let coordinate = |l: usize, i: usize| inner(&basis[i], &tokens[l].0);
        let projected = |l: usize| -> f64 {
            (0..basis.len()).map(|i| along[i] * (coordinate(l, i) - inner(&basis[i], &mean_key))).sum()
        };
        let variance = mean(&|l| projected(l).powi(2));
        let bound: f64 = (0..basis.len())
            .map(|i| {
                let centre = inner(&basis[i], &mean_key);
                (0..tokens.len()).map(|l| along[i] * (coordinate(l, i) - centre)).fold(f64::MIN, f64::max)
            })
            .sum();
        let two_points =
            (bound.powi(2) * (-variance / bound).exp() + variance * bound.exp()) / (bound.powi(2) + variance);
        z += (variance / 2.0).min(two_points.ln());
        for (i, entry) in output.iter_mut().enumerate() {
            let moved = *entry + mean(&|l| (tokens[l].1[i] - mean_value[i]) * projected(l));
            let (low, high) = tokens
                .iter()
                .fold((f64::MAX, f64::MIN), |(low, high), token| (low.min(token.1[i]), high.max(token.1[i])));
            *entry = moved.clamp(low, high);
        }
    }
    (z, output)
}

/// Every formula by its definition; `None` for clusters, whose choice is not a formula.
fn by_definition(replacement: &Replacement, head: &Head<'_>, readers: &Readers) -> Option<Vec<f64>> {
    let tokens: Vec<(Vec<f64>, Vec<f64>)> = head
        .keys
        .chunks_exact(DIMENSION)
        .zip(head.values.chunks_exact(DIMENSION))
        .map(|(key, value)| (double(key), double(value)))
        .collect();
    let base = match replacement.middle {
        Middle::Gaussian | Middle::Mean => vec![0.0; DIMENSION],
        _ => double(&readers.mean_tilt),
    };
    let unit = |i: usize| (0..DIMENSION).map(|j| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    let basis: Vec<Vec<f64>> = match replacement.middle {
        Middle::Exact | Middle::Dropped | Middle::Mean => Vec::new(),
        Middle::Gaussian | Middle::TiltedGaussian => (0..DIMENSION).map(unit).collect(),
        Middle::ReducedGaussian { rank } => leading_directions(&readers.tilt_covariance, rank),
        Middle::TiltedMeans { .. } | Middle::TiltedGaussians { .. } => return None,
    };
    let mut outputs = Vec::new();
    for (t, tilt) in head.tilts.chunks_exact(DIMENSION).enumerate() {
        let tilt = double(tilt);
        let (seen, left) = match head.order {
            Order::Causal => (t + 1, (t / BLOCK * BLOCK).saturating_sub(replacement.window)),
            Order::Whole => (tokens.len(), tokens.len()),
        };
        let mut parts = Vec::new();
        let mut middle = Vec::new();
        let mut light_kept = 0;
        for (l, token) in tokens.iter().enumerate().take(seen) {
            let norm = inner(&token.1, &token.1).sqrt();
            let light = norm < f64::from(replacement.atoms.light * readers.median_value_norm);
            let mut kept = l >= left || l < replacement.atoms.first || replacement.middle == Middle::Exact;
            if !kept && light && light_kept < replacement.atoms.most_light {
                light_kept += 1;
                kept = true;
            }
            if kept { parts.push(exact_part(&tilt, token)) } else { middle.push((l, token.clone())) }
        }
        let attention = |token: &(Vec<f64>, Vec<f64>)| {
            let covariance = double(&readers.tilt_covariance);
            let moved: Vec<f64> =
                covariance.chunks_exact(DIMENSION).map(|row| inner(row, &token.0)).collect();
            inner(&double(&readers.mean_tilt), &token.0) + inner(&moved, &token.0) / 2.0
        };
        middle.sort_by(|x, y| attention(&y.1).total_cmp(&attention(&x.1)));
        let rest = middle.split_off(replacement.top.min(middle.len()));
        parts.extend(middle.iter().map(|(_, token)| exact_part(&tilt, token)));
        let rest: Vec<_> = rest.into_iter().map(|(_, token)| token).collect();
        if !rest.is_empty() && replacement.middle != Middle::Dropped {
            parts.push(gaussian_part(&tilt, &base, &rest, &basis));
        }
        outputs.extend(mixture(&parts));
    }
    Some(outputs)
}

/// Leading eigenvectors by power iteration with deflation: shares nothing with the crate's decomposition.
fn leading_directions(covariance: &[f32], rank: usize) -> Vec<Vec<f64>> {
    let mut matrix = double(covariance);
    (0..rank)
        .map(|_| {
            let mut vector = vec![1.0; DIMENSION];
            let mut value = 0.0;
            for _ in 0..5000 {
                let next: Vec<f64> = matrix.chunks_exact(DIMENSION).map(|row| inner(row, &vector)).collect();
                value = inner(&next, &next).sqrt();
                vector = next.iter().map(|entry| entry / value).collect();
            }
            for i in 0..DIMENSION {
                for j in 0..DIMENSION {
                    matrix[i * DIMENSION + j] -= value * vector[i] * vector[j];
                }
            }
            vector
        })
        .collect()
}

fn largest_difference<X: Copy + Into<f64>, Y: Copy + Into<f64>>(x: &[X], y: &[Y]) -> f64 {
    assert_eq!(x.len(), y.len());
    x.iter().zip(y).fold(0.0, |most, (&a, &b)| most.max((a.into() - b.into()).abs()))
}

/// Single precision through scores of size 5 and covariances merged a dozen times: 2⁻²⁴ × 5 × 12 × outputs of size 3, tripled.
const SINGLE: f64 = 4e-5;

fn exact(head: &Head<'_>) -> Vec<f32> {
    offline::outputs(&replacement(Middle::Exact), head)
}

#[test]
fn every_middle_follows_its_formulas() {
    let text = Text::random(1, 200);
    for order in [Order::Causal, Order::Whole] {
        let head = text.head(order);
        let readers = Readers::of_head(&head);
        for middle in middles() {
            for (top, window) in [(0, 40), (7, 32), (0, 0)] {
                let replacement = Replacement { top, window, ..replacement(middle) };
                let Some(expected) = by_definition(&replacement, &head, &readers) else { continue };
                let found = offline::outputs(&replacement, &head);
                let difference = largest_difference(&found, &expected);
                assert!(difference < SINGLE, "{order:?} {middle} top {top} window {window}: {difference}");
            }
        }
    }
}
