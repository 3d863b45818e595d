//! A short causal convolution of every channel with itself, then SiLU: y_t = silu(Σ_j w_j ⊙ x_{t−j}), j < taps.

use super::slices::{sigmoid, sum_in_order, with_exponentials};
use super::tape::{Tape, Tensor};
use rayon::prelude::*;

/// Σ_j w_j ⊙ x_{t−j} over one sequence; `taps` has one row of `width` per j.
fn filter(x: &[f32], taps: &[f32], width: usize) -> Vec<f32> {
    let mut z = vec![0.0; x.len()];
    for (delay, tap) in taps.chunks_exact(width).enumerate() {
        for (z, x) in z.chunks_exact_mut(width).skip(delay).zip(x.chunks_exact(width)) {
            for ((z, x), w) in z.iter_mut().zip(x).zip(tap) {
                *z += w * x;
            }
        }
    }
    z
}

/// One row from the `taps` latest rows, the oldest first.
pub(super) fn latest(rows: &[f32], taps: &[f32], width: usize) -> Vec<f32> {
    let z = filter(rows, taps, width);
    let last = &z[z.len() - width..];
    let mut y = vec![0.0; width];
    with_exponentials(&mut y, last, |y, z, e| *y = z * sigmoid(z, e));
    y
}

/// On the tape, over sequences of `length` rows.
pub(super) fn convolve(tape: &mut Tape, x: &Tensor, taps: &Tensor, length: usize) -> Tensor {
    let width = taps.columns();
    tape.operation(
        "convolution",
        &[x, taps],
        width,
        |given| {
            let mut y = vec![0.0; given[0].len()];
            let z: Vec<Vec<f32>> = y
                .par_chunks_mut(length * width)
                .zip(given[0].par_chunks(length * width))
                .map(|(y, x)| {
                    let z = filter(x, given[1], width);
                    with_exponentials(y, &z, |y, z, e| *y = z * sigmoid(z, e));
                    z
                })
                .collect();
            (y, z)
        },
        move |z, given, slopes| {
            let mut of_x = vec![0.0; given[0].len()];
            let of_taps = of_x
                .par_chunks_mut(length * width)
                .zip(given[0].par_chunks(length * width))
                .zip(slopes.par_chunks(length * width))
                .zip(z)
                .map(|(((of_x, x), slopes), z)| pull_back(of_x, x, given[1], &z, slopes, width));
            let of_taps = sum_in_order(of_taps);
            vec![of_x, of_taps]
        },
    )
}

/// Writes the derivative in one sequence and returns that in the taps.
fn pull_back(of_x: &mut [f32], x: &[f32], taps: &[f32], z: &[f32], slopes: &[f32], width: usize) -> Vec<f32> {
    let mut of_z = slopes.to_vec();
    with_exponentials(&mut of_z, z, |slope, z, e| {
        let s = sigmoid(z, e);
        *slope *= s + z * s * (1.0 - s);
    });
    let mut of_taps = vec![0.0; taps.len()];
    let pairs = taps.chunks_exact(width).zip(of_taps.chunks_exact_mut(width));
    for (delay, (tap, of_tap)) in pairs.enumerate() {
        let rows = of_x.chunks_exact_mut(width).zip(x.chunks_exact(width));
        for ((of_x, x), of_z) in rows.zip(of_z.chunks_exact(width).skip(delay)) {
            for ((((of_x, x), of_z), w), of_w) in of_x.iter_mut().zip(x).zip(of_z).zip(tap).zip(&mut *of_tap)
            {
                *of_x += w * of_z;
                *of_w += x * of_z;
            }
        }
    }
    of_taps
}
