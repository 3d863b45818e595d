//! The few operations on vectors and matrices that the rest of the crate speaks in.
//!
//! Vectors are slices of `f64`, matrices are `faer::Mat<f64>`; what needs a factorisation asks faer. Sizes
//! must agree, which callers have checked; an entry without a partner is ignored.

use crate::error::{Error, Result};
use crate::numerics::check;
use faer::{Mat, MatRef, Side};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// ⟨a, b⟩, added in order.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// ⟨a, b⟩ of f32 or f64 in eight running sums, which the compiler keeps in vector registers: faster than [`dot`] on long
/// vectors, and of other rounding.
#[inline]
pub fn dot_in_lanes<T>(a: &[T], b: &[T]) -> T
where
    T: Copy + Default + Mul<Output = T> + AddAssign + Add<Output = T> + Sum,
{
    const LANES: usize = 8;
    let length = a.len().min(b.len());
    let (a, a_rest) = a[..length].as_chunks::<LANES>();
    let (b, b_rest) = b[..length].as_chunks::<LANES>();
    let mut sums = [T::default(); LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: T = a_rest.iter().zip(b_rest).map(|(&x, &y)| x * y).sum();
    sums.into_iter().sum::<T>() + rest
}

/// |a|².
pub fn squared_norm(a: &[f64]) -> f64 {
    dot(a, a)
}

/// |a|, without overflow or underflow of the squares.
pub fn norm(a: &[f64]) -> f64 {
    let largest = largest(a);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * a.iter().map(|entry| (entry / largest).powi(2)).sum::<f64>().sqrt()
}

/// max |aᵢ|, zero of none, NaN where an entry is.
pub fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |size: f64, entry| larger(size, entry.abs()))
}

/// The larger of two numbers, NaN where one of them is: `f64::max` would forget it.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

/// The exponent e of the largest entry, which lies between 2ᵉ⁻¹ and 2ᵉ in size; 0 where all are zero.
///
/// Vectors divided by 2ᵉ have squares that neither overflow nor vanish, and lose no digit by it.
pub fn exponent(a: &[f64]) -> i32 {
    libm::frexp(largest(a)).1
}

/// 2ᵉ · a.
pub fn times_power_of_two(a: &[f64], exponent: i32) -> Vec<f64> {
    a.iter().map(|entry| libm::ldexp(*entry, exponent)).collect()
}

/// The same of a matrix: the exponent of its largest entry.
pub fn matrix_exponent(matrix: MatRef<'_, f64>) -> i32 {
    libm::frexp(check::largest_entry(matrix)).1
}

/// 2ᵉ · M.
pub fn matrix_times_power_of_two(matrix: MatRef<'_, f64>, exponent: i32) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| libm::ldexp(matrix[(i, j)], exponent))
}

/// √|a|², to the bit, also where |a|² would overflow or underflow.
pub fn root_of_squares(a: &[f64]) -> f64 {
    let exponent = exponent(a);
    libm::ldexp(squared_norm(&times_power_of_two(a, -exponent)).sqrt(), exponent)
}

/// target += scale · vector.
pub fn add_scaled(target: &mut [f64], scale: f64, vector: &[f64]) {
    for (entry, value) in target.iter_mut().zip(vector) {
        *entry += scale * value;
    }
}

/// a + b.
pub fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(x, y)| x + y).collect()
}

/// a − b.
pub fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(x, y)| x - y).collect()
}

/// M v.
pub fn apply(matrix: MatRef<'_, f64>, vector: &[f64]) -> Vec<f64> {
    let mut result = vec![0.0; matrix.nrows()];
    for (column, &value) in vector.iter().enumerate().take(matrix.ncols()) {
        for (row, entry) in result.iter_mut().enumerate() {
            *entry += matrix[(row, column)] * value;
        }
    }
    result
}

/// Mᵀ v.
pub fn apply_transpose(matrix: MatRef<'_, f64>, vector: &[f64]) -> Vec<f64> {
    apply(matrix.transpose(), vector)
}

/// target += scale · a bᵀ.
pub fn add_outer(target: &mut Mat<f64>, scale: f64, a: &[f64], b: &[f64]) {
    let (rows, columns) = target.shape();
    for (column, &right) in b.iter().enumerate().take(columns) {
        for (row, &left) in a.iter().enumerate().take(rows) {
            target[(row, column)] += scale * left * right;
        }
    }
}

/// tr(A B) without forming the product.
pub fn trace_of_product(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    let mut trace = 0.0;
    for i in 0..a.nrows().min(b.ncols()) {
        for j in 0..a.ncols().min(b.nrows()) {
            trace += a[(i, j)] * b[(j, i)];
        }
    }
    trace
}

/// tr M.
pub fn trace(matrix: MatRef<'_, f64>) -> f64 {
    (0..matrix.nrows().min(matrix.ncols())).map(|i| matrix[(i, i)]).sum()
}

/// ‖M‖²_F.
pub fn squared_frobenius(matrix: MatRef<'_, f64>) -> f64 {
    trace_of_product(matrix, matrix.transpose())
}

/// ‖M‖_F, without overflow or underflow of the squares.
pub fn frobenius(matrix: MatRef<'_, f64>) -> f64 {
    let largest = check::largest_entry(matrix);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let mut total = 0.0;
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            total += (matrix[(row, column)] / largest).powi(2);
        }
    }
    largest * total.sqrt()
}

/// The d × d identity.
pub fn identity(dimension: usize) -> Mat<f64> {
    Mat::identity(dimension, dimension)
}

/// (M + Mᵀ)/2, of the leading square of a matrix that is not square.
pub fn symmetric_part(matrix: MatRef<'_, f64>) -> Mat<f64> {
    let size = matrix.nrows().min(matrix.ncols());
    Mat::from_fn(size, size, |i, j| {
        let (here, there) = (matrix[(i, j)], matrix[(j, i)]);
        // Half of the smallest double is zero, half of the largest twice is not infinity.
        if here == there { here } else { 0.5 * here + 0.5 * there }
    })
}

/// A = Q diag(λ) Qᵀ of a symmetric matrix, eigenvalues in increasing order.
#[derive(Debug, Clone)]
pub struct SymmetricEigen {
    /// λ, increasing.
    pub values: Vec<f64>,
    /// Q, a column per eigenvalue.
    pub vectors: Mat<f64>,
}

impl SymmetricEigen {
    /// Decomposes a symmetric matrix (only its lower triangle is read).
    ///
    /// # Errors
    /// [`Error::Size`] if it is not square, [`Error::NotFinite`] for its entries, [`Error::Overflow`] if an
    /// eigenvalue exceeds double precision.
    pub fn new(what: &'static str, matrix: MatRef<'_, f64>) -> Result<Self> {
        check::size(what, matrix.nrows(), matrix.ncols())?;
        check::finite_matrix(what, matrix)?;
        // Entries near the ends of the doubles overflow or vanish when they are multiplied inside; a power
        // of two in front costs no digit.
        let exponent = matrix_exponent(matrix);
        let scaled = matrix_times_power_of_two(matrix, -exponent);
        let eigen = scaled.self_adjoint_eigen(Side::Lower).map_err(|_| Error::Overflow { what })?;
        let values = (0..matrix.nrows()).map(|i| libm::ldexp(eigen.S()[i], exponent)).collect();
        Ok(SymmetricEigen {
            values: check::finite_result(what, values)?,
            vectors: check::finite_matrix_result(what, eigen.U().to_owned())?,
        })
    }

    /// Q diag(f(λ)) Qᵀ.
    pub fn map(&self, function: impl Fn(f64) -> f64) -> Mat<f64> {
        let n = self.values.len();
        let scaled = Mat::from_fn(n, n, |i, j| self.vectors[(i, j)] * function(self.values[j]));
        &scaled * self.vectors.transpose()
    }
}

/// Orthonormal vectors, grown one by one.
///
/// ```
/// use esscher_core::numerics::linalg::OrthonormalBasis;
/// let mut affine = OrthonormalBasis::default();
/// affine.add(vec![1.0; 4]);
/// affine.add(vec![0.0, 1.0, 2.0, 3.0]);
/// affine.add(vec![5.0, 7.0, 9.0, 11.0]); // nothing new
/// assert_eq!(affine.vectors().len(), 2);
/// let curved = affine.without(vec![0.0, 1.0, 4.0, 9.0]);
/// assert!(curved.iter().zip([1.0, -1.0, -1.0, 1.0]).all(|(found, exact)| (found - exact).abs() < 1e-14));
/// ```
#[derive(Debug, Clone, Default)]
pub struct OrthonormalBasis {
    vectors: Vec<Vec<f64>>,
}

impl OrthonormalBasis {
    /// The vectors, in the order in which they were added.
    pub fn vectors(&self) -> &[Vec<f64>] {
        &self.vectors
    }

    /// The vector minus its projection on the basis; twice, so that rounding leaves nothing of it.
    pub fn without(&self, mut vector: Vec<f64>) -> Vec<f64> {
        for _ in 0..2 {
            for direction in &self.vectors {
                let part = dot(direction, &vector);
                add_scaled(&mut vector, -part, direction);
            }
        }
        vector
    }

    /// Takes in what the vector adds to the basis, unless that is below 10⁻¹⁰ of its size.
    pub fn add(&mut self, vector: Vec<f64>) {
        let size = norm(&vector);
        let rest = self.without(vector);
        let norm = norm(&rest);
        if norm > 1e-10 * size {
            self.vectors.push(rest.iter().map(|entry| entry / norm).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    #[test]
    fn eigenvalues_are_increasing_and_rebuild_the_matrix() {
        let matrix = mat![[2.0, -1.0, 0.5], [-1.0, 1.0, 0.0], [0.5, 0.0, 3.0]];
        let eigen = SymmetricEigen::new("matrix", matrix.as_ref()).unwrap();
        assert!(eigen.values.windows(2).all(|pair| pair[0] <= pair[1]));
        let rebuilt = eigen.map(|value| value);
        assert!(squared_frobenius((&rebuilt - &matrix).as_ref()) < 1e-28);
    }

    #[test]
    fn eigenvalues_scale_with_the_matrix_to_both_ends_of_the_doubles() {
        for scale in [1e-308, 1e-200, 1e200, 5e307] {
            let matrix = mat![[2.0 * scale, scale], [scale, 2.0 * scale]];
            let eigen = SymmetricEigen::new("matrix", matrix.as_ref()).unwrap();
            assert!((eigen.values[0] / scale - 1.0).abs() < 1e-14, "{scale:e}");
            assert!((eigen.values[1] / scale - 3.0).abs() < 1e-14, "{scale:e}");
        }
        let matrix = mat![[1.5e308, 1.5e308], [1.5e308, 1.5e308]];
        assert_eq!(SymmetricEigen::new("m", matrix.as_ref()).unwrap_err(), Error::Overflow { what: "m" });
    }

    #[test]
    fn what_has_no_partner_is_ignored() {
        let matrix = mat![[1.0, 2.0]];
        assert_eq!(apply(matrix.as_ref(), &[1.0, 1.0, 9.0]), [3.0]);
        assert_eq!(apply(matrix.as_ref(), &[1.0]), [1.0]);
        assert_eq!(apply_transpose(matrix.as_ref(), &[1.0, 9.0]), [1.0, 2.0]);
        let mut target = Mat::zeros(1, 1);
        add_outer(&mut target, 2.0, &[3.0, 9.0], &[1.0, 9.0]);
        assert_eq!(target[(0, 0)], 6.0);
        assert_eq!(trace_of_product(matrix.as_ref(), matrix.as_ref()), 1.0);
        assert_eq!(symmetric_part(matrix.as_ref())[(0, 0)], 1.0);
    }
}
