//! Arithmetic over slices that the layers share: products in blocks of rows, sigmoids, sums; the same bits on any number of threads.

use crate::kernels::matrix::{Matrix, add_product, set_product};
use rayon::prelude::*;

/// Rows per task: large enough for a product to run at full speed, small enough that every thread has one.
const BLOCK: usize = 512;

/// left · right by blocks of rows of `left` (rows × inner); `right` is inner × columns.
pub(super) fn product(left: &[f32], right: Matrix<'_, f32>, inner: usize, columns: usize) -> Vec<f32> {
    let rows = left.len() / inner;
    let mut result = vec![0.0; rows * columns];
    result.par_chunks_mut(BLOCK * columns).zip(left.par_chunks(BLOCK * inner)).for_each(|(to, left)| {
        set_product(to, 1.0, Matrix::new(left, left.len() / inner, inner), right);
    });
    result
}

/// leftᵀ · right for left rows × inner and right rows × columns, summed over blocks of rows in their order.
pub(super) fn transposed_product(left: &[f32], right: &[f32], inner: usize, columns: usize) -> Vec<f32> {
    let blocks = left.par_chunks(BLOCK * inner).zip(right.par_chunks(BLOCK * columns));
    sum_in_order(blocks.map(|(left, right)| {
        let rows = left.len() / inner;
        let mut part = vec![0.0; inner * columns];
        let left = Matrix::new(left, rows, inner).transposed();
        set_product(&mut part, 1.0, left, Matrix::new(right, rows, columns));
        part
    }))
}

/// to + left · right by blocks of rows.
pub(super) fn add_to_product(
    to: &[f32],
    left: &[f32],
    right: Matrix<'_, f32>,
    inner: usize,
    columns: usize,
) -> Vec<f32> {
    let mut result = to.to_vec();
    result.par_chunks_mut(BLOCK * columns).zip(left.par_chunks(BLOCK * inner)).for_each(|(to, left)| {
        add_product(to, 1.0, Matrix::new(left, left.len() / inner, inner), right);
    });
    result
}

/// The sum of equally long parts, in the order of the parts whoever made them.
pub(super) fn sum_in_order(parts: impl IndexedParallelIterator<Item = Vec<f32>>) -> Vec<f32> {
    let parts: Vec<Vec<f32>> = parts.collect();
    parts
        .into_iter()
        .reduce(|mut sum, part| {
            sum.iter_mut().zip(&part).for_each(|(sum, x)| *sum += x);
            sum
        })
        .unwrap_or_default()
}

/// Sums of the columns of rows of this width.
pub(super) fn column_sums(numbers: &[f32], width: usize) -> Vec<f32> {
    sum_in_order(numbers.par_chunks(BLOCK * width).map(|block| {
        let mut sums = vec![0.0; width];
        for row in block.chunks_exact(width) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        sums
    }))
}

/// Runs something over blocks of numbers on all threads, in place.
pub(super) fn in_blocks(numbers: &mut [f32], others: &[f32], run: impl Fn(&mut [f32], &[f32]) + Sync) {
    const NUMBERS: usize = 1 << 14;
    numbers
        .par_chunks_mut(NUMBERS)
        .zip(others.par_chunks(NUMBERS))
        .for_each(|(numbers, others)| run(numbers, others));
}

/// Calls `visit` with every number, e^{−|z|} and the place it belongs to, in runs that fit in the nearest cache.
pub(super) fn with_exponentials(to: &mut [f32], numbers: &[f32], visit: impl Fn(&mut f32, f32, f32)) {
    const RUN: usize = 512;
    let mut exponentials = [0.0; RUN];
    for (to, numbers) in to.chunks_mut(RUN).zip(numbers.chunks(RUN)) {
        let exponentials = &mut exponentials[..numbers.len()];
        exponentials.iter_mut().zip(numbers).for_each(|(e, z)| *e = -z.abs());
        esscher_core::numerics::exponentials_f32(exponentials);
        for ((to, &z), &e) in to.iter_mut().zip(numbers).zip(&*exponentials) {
            visit(to, z, e);
        }
    }
}

/// σ(z) from z and e^{−|z|}.
pub(super) fn sigmoid(z: f32, e: f32) -> f32 {
    (if z < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// ln(1 + e) for e in [0, 1], to a few units in the last place: 2 artanh(s) with s = e / (2 + e) ≤ 1/3.
pub(super) fn ln_1p(e: f32) -> f32 {
    let s = e / (2.0 + e);
    let square = s * s;
    let series = [1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0];
    2.0 * s * series.iter().fold(0.0, |sum, term| sum * square + term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_near_one_are_right_to_single_precision() {
        for step in 0..=1000 {
            let e = step as f32 / 1000.0;
            let expected = f64::from(e).ln_1p();
            assert!((f64::from(ln_1p(e)) - expected).abs() <= 4e-7 * expected, "{e}");
        }
    }
}
