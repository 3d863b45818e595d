//! What layers are made of besides products and attention: norms, rotations, activations.

use crate::checkpoint::{LayerNorm, Pairs, Rotation};
use esscher_core::numerics::{MultiplyAdd, VectorLoops, exponentials_f32, normal, vectorised};
use rayon::prelude::*;

/// Rows that a task takes: tasks must outweigh their start.
const ROWS_PER_TASK: usize = 32;

/// Calls `work` with pieces of `rows` and the same rows of `to`, on several threads if there are many.
pub(super) fn for_rows(
    rows: &[f32],
    to: &mut [f32],
    width: usize,
    work: impl Fn(usize, &[f32], &mut [f32]) + Sync,
) {
    let size = (ROWS_PER_TASK * width).max(1);
    if to.len() <= size {
        work(0, rows, to);
    } else {
        to.par_chunks_mut(size)
            .zip(rows.par_chunks(size))
            .enumerate()
            .for_each(|(piece, (to, rows))| work(piece * ROWS_PER_TASK, rows, to));
    }
}

/// Adds one stream to another.
pub(super) fn add(stream: &mut [f32], addend: &[f32]) {
    for (stream, addend) in stream.iter_mut().zip(addend) {
        *stream += addend;
    }
}

/// Adds a bias to every row.
pub(super) fn add_bias(rows: &mut [f32], bias: &[f32]) {
    rows.chunks_exact_mut(bias.len().max(1)).for_each(|row| add(row, bias));
}

/// x -> gain · x / √(mean x² + ε), row by row.
pub(super) fn root_mean_square_norm(rows: &[f32], gain: &[f32], epsilon: f32, to: &mut [f32]) {
    for_rows(rows, to, gain.len(), |_, rows, to| {
        vectorised(RootMeanSquareNorm { rows, gain, epsilon, to });
    });
}

struct RootMeanSquareNorm<'a> {
    rows: &'a [f32],
    gain: &'a [f32],
    epsilon: f32,
    to: &'a mut [f32],
}

impl VectorLoops for RootMeanSquareNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<M: MultiplyAdd>(self) {
        let width = self.gain.len();
        for (row, to) in self.rows.chunks_exact(width).zip(self.to.chunks_exact_mut(width)) {
            let (blocks, rest) = row.as_chunks::<16>();
            let mut sums = [0.0; 16];
            for block in blocks {
                for lane in 0..16 {
                    sums[lane] = M::multiply_add(block[lane], block[lane], sums[lane]);
                }
            }
            for (lane, number) in rest.iter().enumerate() {
                sums[lane] += number * number;
            }
            let mean = sums.iter().sum::<f32>() / width as f32;
            if !mean.is_finite() {
                norm_in_double_precision(row, self.gain, self.epsilon, to);
                continue;
            }
            let factor = 1.0 / (mean + self.epsilon).sqrt();
            for ((to, number), gain) in to.iter_mut().zip(row).zip(self.gain) {
                *to = gain * (number * factor);
            }
        }
    }
}

/// The same norm of a row whose squares overflow single precision: divided by infinity it would be zero, and look like an answer.
/// What is not finite stays so.
#[cold]
fn norm_in_double_precision(row: &[f32], gain: &[f32], epsilon: f32, to: &mut [f32]) {
    let mean = row.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>() / row.len() as f64;
    let factor = 1.0 / (mean + f64::from(epsilon)).sqrt();
    for ((to, number), gain) in to.iter_mut().zip(row).zip(gain) {
        // An infinite number makes the factor zero; their product is not a number, as it should be.
        *to = gain * (f64::from(*number) * factor) as f32;
    }
}

/// x -> gain · (x − mean) / √(variance + ε) + bias in place, row by row.
pub(super) fn layer_norm(rows: &mut [f32], norm: &LayerNorm, epsilon: f32) {
    let width = norm.gain.len();
    rows.par_chunks_mut(width.max(1)).with_min_len(ROWS_PER_TASK).for_each(|row| {
        let count = row.len() as f64;
        let mean = row.iter().map(|number| f64::from(*number)).sum::<f64>() / count;
        let variance = row.iter().map(|number| (f64::from(*number) - mean).powi(2)).sum::<f64>() / count;
        let factor = 1.0 / (variance + f64::from(epsilon)).sqrt();
        for ((number, gain), bias) in row.iter_mut().zip(&norm.gain).zip(&norm.bias) {
            *number = ((f64::from(*number) - mean) * factor) as f32 * gain + bias;
        }
    });
}

/// gate -> silu(gate) · up, with silu(x) = x / (1 + e^{−x}).
pub(super) fn gated(gate: &mut [f32], up: &[f32]) {
    const PIECE: usize = 1 << 12;
    let piece = |(gate, up): (&mut [f32], &[f32])| {
        let mut exponentials = [0.0_f32; 256];
        for (gate, up) in gate.chunks_mut(256).zip(up.chunks(256)) {
            let exponentials = &mut exponentials[..gate.len()];
            for (exponential, gate) in exponentials.iter_mut().zip(&*gate) {
                *exponential = -gate.abs();
            }
            exponentials_f32(exponentials);
            for ((gate, up), exponential) in gate.iter_mut().zip(up).zip(exponentials) {
                // 1/(1 + e^{−x}) without overflow on either side.
                let numerator = if *gate >= 0.0 { 1.0 } else { *exponential };
                *gate = *gate * numerator / (1.0 + *exponential) * up;
            }
        }
    };
    if gate.len() <= PIECE {
        piece((gate, up));
    } else {
        gate.par_chunks_mut(PIECE).zip(up.par_chunks(PIECE)).for_each(piece);
    }
}

/// x -> x Φ(x): the exact GELU.
pub(super) fn gelu(numbers: &mut [f32]) {
    numbers.par_iter_mut().with_min_len(1 << 10).for_each(|number| {
        *number = (f64::from(*number) * normal::distribution(f64::from(*number))) as f32;
    });
}

/// The angles of some consecutive positions, as cosines and sines.
pub(super) struct Angles {
    pairs: Pairs,
    dimension: usize,
    /// Per position, d/2 each.
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Angles {
    /// Angle of pair j at position t: t · base^{−2j/d}.
    pub(super) fn new(rotation: Rotation, dimension: usize, start: usize, count: usize) -> Self {
        let frequencies: Vec<f64> = (0..dimension / 2)
            .map(|pair| f64::from(rotation.base).powf(-2.0 * pair as f64 / dimension as f64))
            .collect();
        let angles = (start..start + count)
            .flat_map(|position| frequencies.iter().map(move |frequency| position as f64 * frequency));
        let (sines, cosines) = angles.map(|angle| (angle.sin() as f32, angle.cos() as f32)).unzip();
        Angles { pairs: rotation.pairs, dimension, cosines, sines }
    }

    /// Turns every head of every token (rows of `width` = heads · dimension numbers) and multiplies it by `factor`.
    pub(super) fn turn(&self, rows: &mut [f32], width: usize, factor: f32) {
        let half = self.dimension / 2;
        let token = |(token, row): (usize, &mut [f32])| {
            let cosines = &self.cosines[token * half..(token + 1) * half];
            let sines = &self.sines[token * half..(token + 1) * half];
            for head in row.chunks_exact_mut(self.dimension) {
                match self.pairs {
                    Pairs::Neighbours => {
                        let (pairs, _) = head.as_chunks_mut::<2>();
                        for ((pair, cosine), sine) in pairs.iter_mut().zip(cosines).zip(sines) {
                            let [x, y] = *pair;
                            *pair = [(x * cosine - y * sine) * factor, (x * sine + y * cosine) * factor];
                        }
                    }
                    Pairs::Halves => {
                        let (first, second) = head.split_at_mut(half);
                        for (((x, y), cosine), sine) in first.iter_mut().zip(second).zip(cosines).zip(sines) {
                            (*x, *y) =
                                ((*x * cosine - *y * sine) * factor, (*x * sine + *y * cosine) * factor);
                        }
                    }
                }
            }
        };
        if rows.len() <= ROWS_PER_TASK * width {
            rows.chunks_exact_mut(width).enumerate().for_each(token);
        } else {
            rows.par_chunks_exact_mut(width).with_min_len(ROWS_PER_TASK).enumerate().for_each(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_whose_squares_overflow_has_its_norm_and_no_zeros() {
        let (row, gain) = ([3e22_f32, -4e22, 0.0, 0.0], [1.0_f32, 1.0, 2.0, 1.0]);
        let mut to = [0.0; 4];
        root_mean_square_norm(&row, &gain, 1e-5, &mut to);
        // √(mean x²) = 2.5e22.
        for (found, expected) in to.iter().zip([1.2, -1.6, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{to:?}");
        }
        root_mean_square_norm(&[f32::INFINITY, 1.0, 1.0, 1.0], &gain, 1e-5, &mut to);
        assert!(to[0].is_nan(), "what is not finite stays so: {to:?}");
    }
}
