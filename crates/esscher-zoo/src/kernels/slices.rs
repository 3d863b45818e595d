//! Plain operations on slices of numbers, which the compiler turns into vector instructions.

use crate::number::{Number, Real};

/// The product of two vectors of any number, traced ones too; of its own because it begins with the rest.
pub(crate) fn dot<T: Number>(left: &[T], right: &[T]) -> T {
    // Eight sums at once, which the compiler keeps in vector registers.
    let mut sums = [T::zero(); 8];
    let (lefts, rights) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest = lefts.remainder().iter().zip(rights.remainder()).fold(T::zero(), |sum, (&x, &y)| sum + x * y);
    for (x, y) in lefts.zip(rights) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.into_iter().fold(rest, |total, sum| total + sum)
}

/// to ← to + from.
pub(crate) fn add<T: Real>(to: &mut [T], from: &[T]) {
    to.iter_mut().zip(from).for_each(|(x, &y)| *x += y);
}

/// to ← to + factor · from.
pub(crate) fn add_scaled<T: Real>(to: &mut [T], factor: T, from: &[T]) {
    to.iter_mut().zip(from).for_each(|(x, &y)| *x += factor * y);
}

/// to ← to + left ⊙ right.
pub(crate) fn add_product_of<T: Real>(to: &mut [T], left: &[T], right: &[T]) {
    to.iter_mut().zip(left).zip(right).for_each(|((x, &y), &z)| *x += y * z);
}

/// to ← to ⊙ by.
pub(crate) fn multiply<T: Real>(to: &mut [T], by: &[T]) {
    to.iter_mut().zip(by).for_each(|(x, &y)| *x *= y);
}

/// to ← left ⊙ right.
pub(crate) fn multiply_into<T: Real>(to: &mut [T], left: &[T], right: &[T]) {
    to.iter_mut().zip(left).zip(right).for_each(|((x, &y), &z)| *x = y * z);
}

/// Rows times one factor each, in place.
pub(crate) fn scale_rows<T: Real>(rows: &mut [T], factors: &[T]) {
    let width = rows.len() / factors.len();
    for (row, &factor) in rows.chunks_exact_mut(width).zip(factors) {
        row.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Rows times one factor each.
pub(crate) fn scale_rows_into<T: Real>(to: &mut [T], rows: &[T], factors: &[T]) {
    to[..rows.len()].fill(T::zero());
    let width = rows.len() / factors.len();
    for ((to, row), &factor) in to.chunks_exact_mut(width).zip(rows.chunks_exact(width)).zip(factors) {
        add_scaled(to, factor, row);
    }
}
