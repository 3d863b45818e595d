//! Rows, or the heads of rows, brought to size one: y = w ⊙ (x − m) / √(mean (x − m)² + ε), with m = 0 or the mean.

use super::tape::{Tape, Tensor};
use esscher_core::numerics::linalg::dot_in_lanes;
use rayon::prelude::*;

/// What is subtracted before dividing by the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalisation {
    /// Nothing: the root mean square becomes one.
    RootMeanSquare,
    /// The mean: mean zero, variance one.
    Layer,
}

/// ε.
const SMALLEST: f32 = 1e-6;

/// Rows per task.
const BLOCK: usize = 256;

/// (mean, 1 / size) of numbers.
fn centre_and_factor(normalisation: Normalisation, x: &[f32]) -> (f32, f32) {
    let count = x.len() as f32;
    let mean = match normalisation {
        Normalisation::RootMeanSquare => 0.0,
        Normalisation::Layer => x.iter().sum::<f32>() / count,
    };
    let square = match normalisation {
        Normalisation::RootMeanSquare => dot_in_lanes(x, x) / count,
        Normalisation::Layer => x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count,
    };
    (mean, 1.0 / (square + SMALLEST).sqrt())
}

/// Over slices: rows as wide as `weight`, in `groups` equal parts of which each is normalised alone. Returns also the mean and
/// the factor of every part.
pub(super) fn evaluate(
    normalisation: Normalisation,
    groups: usize,
    x: &[f32],
    weight: &[f32],
) -> (Vec<f32>, Vec<(f32, f32)>) {
    let (width, part) = (weight.len(), weight.len() / groups);
    let mut y = vec![0.0; x.len()];
    let mut factors = vec![(0.0, 0.0); x.len() / part];
    y.par_chunks_mut(BLOCK * width)
        .zip(x.par_chunks(BLOCK * width))
        .zip(factors.par_chunks_mut(BLOCK * groups))
        .for_each(|((y, x), factors)| {
            let parts = y.chunks_exact_mut(part).zip(x.chunks_exact(part)).zip(factors);
            for (index, ((y, x), kept)) in parts.enumerate() {
                let group = index % groups;
                let (mean, factor) = centre_and_factor(normalisation, x);
                *kept = (mean, factor);
                for ((y, x), w) in y.iter_mut().zip(x).zip(&weight[group * part..(group + 1) * part]) {
                    *y = (x - mean) * factor * w;
                }
            }
        });
    (y, factors)
}

/// On the tape.
pub(super) fn normalise(
    tape: &mut Tape,
    name: &'static str,
    normalisation: Normalisation,
    groups: usize,
    x: &Tensor,
    weight: &Tensor,
) -> Tensor {
    tape.operation(
        name,
        &[x, weight],
        x.columns(),
        |given| evaluate(normalisation, groups, given[0], given[1]),
        move |factors, given, slopes| pull_back(normalisation, groups, &factors, given[0], given[1], &slopes),
    )
}

/// With x̂ = (x − m) f and s = w ⊙ dy: dx = f (s − mean s (Layer) − x̂ mean(s x̂)), dw = Σ dy x̂.
fn pull_back(
    normalisation: Normalisation,
    groups: usize,
    factors: &[(f32, f32)],
    x: &[f32],
    weight: &[f32],
    slopes: &[f32],
) -> Vec<Vec<f32>> {
    let (width, part) = (weight.len(), weight.len() / groups);
    let mut of_x = vec![0.0; x.len()];
    let weight_slopes: Vec<Vec<f32>> = of_x
        .par_chunks_mut(BLOCK * width)
        .zip(x.par_chunks(BLOCK * width))
        .zip(slopes.par_chunks(BLOCK * width))
        .zip(factors.par_chunks(BLOCK * groups))
        .map(|(((of_x, x), slopes), factors)| {
            let mut weight_slopes = vec![0.0; width];
            let mut weighted = vec![0.0; part];
            let mut standard = vec![0.0; part];
            let parts = of_x.chunks_exact_mut(part).zip(x.chunks_exact(part)).zip(slopes.chunks_exact(part));
            for (index, (((of_x, x), slopes), &(mean, factor))) in parts.zip(factors).enumerate() {
                let group = index % groups;
                let range = group * part..(group + 1) * part;
                for (standard, x) in standard.iter_mut().zip(x) {
                    *standard = (x - mean) * factor;
                }
                for ((weighted, slope), w) in weighted.iter_mut().zip(slopes).zip(&weight[range.clone()]) {
                    *weighted = slope * w;
                }
                for ((sum, slope), standard) in weight_slopes[range].iter_mut().zip(slopes).zip(&standard) {
                    *sum += slope * standard;
                }
                let along = dot_in_lanes(&weighted, &standard) / part as f32;
                let shift = match normalisation {
                    Normalisation::RootMeanSquare => 0.0,
                    Normalisation::Layer => weighted.iter().sum::<f32>() / part as f32,
                };
                for ((to, s), standard) in of_x.iter_mut().zip(&weighted).zip(&standard) {
                    *to = factor * (s - shift - standard * along);
                }
            }
            weight_slopes
        })
        .collect();
    let of_weight = super::slices::sum_in_order(weight_slopes.into_par_iter());
    vec![of_x, of_weight]
}
