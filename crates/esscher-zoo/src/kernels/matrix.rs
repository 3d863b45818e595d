//! Row-major matrices in slices, and products of them by faer's kernels.

use crate::number::Real;

/// A borrowed row-major matrix, possibly transposed.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T> {
    numbers: &'a [T],
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a, T: Real> Matrix<'a, T> {
    /// The first `rows` rows of `columns` numbers each.
    ///
    /// # Panics
    /// If the slice has fewer numbers.
    pub fn new(numbers: &'a [T], rows: usize, columns: usize) -> Self {
        Matrix { numbers: &numbers[..rows * columns], rows, columns, transposed: false }
    }

    /// The transpose, of the same numbers.
    pub fn transposed(self) -> Self {
        Matrix { transposed: !self.transposed, ..self }
    }

    pub(crate) fn is_transposed(self) -> bool {
        self.transposed
    }

    pub(crate) fn view(self) -> faer::MatRef<'a, T> {
        let view = faer::MatRef::from_row_major_slice(self.numbers, self.rows, self.columns);
        if self.transposed { view.transpose() } else { view }
    }
}

/// to ← factor · left · right, where `to` is row-major.
pub fn set_product<T: Real>(to: &mut [T], factor: T, left: Matrix<'_, T>, right: Matrix<'_, T>) {
    T::product(to, false, factor, left, right);
}

/// to ← to + factor · left · right, where `to` is row-major.
pub fn add_product<T: Real>(to: &mut [T], factor: T, left: Matrix<'_, T>, right: Matrix<'_, T>) {
    T::product(to, true, factor, left, right);
}

/// to ← (I + L)⁻¹ to, where L is the part of `lower` below the diagonal; its transpose if `lower` is transposed.
pub fn solve_unit_triangle<T: Real>(to: &mut [T], lower: Matrix<'_, T>) {
    T::solve_unit_triangle(to, lower);
}
