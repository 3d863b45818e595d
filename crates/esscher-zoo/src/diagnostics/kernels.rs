//! Positive definiteness: the eigenvalues of the Gram matrix k(x_i, x_j) over given points, and whether it is a kernel at all.

use super::rows::Rows;
use crate::error::{Error, Result};
use esscher_core::numerics::linalg;
use faer::Mat;

/// What a matrix over points is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Symmetric, no negative eigenvalue beyond rounding: these points do not speak against a positive definite kernel.
    PositiveDefinite,
    /// Symmetric with a negative eigenvalue: no positive definite kernel.
    Indefinite,
    /// Not symmetric: no kernel; eigenvalues are those of the symmetric part.
    NotSymmetric,
}

/// The spectrum of a Gram matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelSpectrum {
    /// Smallest eigenvalue.
    pub smallest: f64,
    /// Largest eigenvalue.
    pub largest: f64,
    /// smallest/largest; negative for an indefinite matrix.
    pub relative: f64,
    /// max |K_ij − K_ji| over max |K_ij|.
    pub asymmetry: f64,
    /// Whether it is positive definite, as far as rounding lets one say.
    pub verdict: Verdict,
}

/// What is taken for rounding, relative to the largest entry or eigenvalue.
const ROUNDING: f64 = 1e-10;

/// The spectrum of k(x_i, x_j) over points (a row each, of this width).
///
/// # Errors
/// Points that are no whole rows, or values that are not finite.
pub fn kernel_spectrum(
    kernel: impl Fn(&[f64], &[f64]) -> f64,
    points: &[f64],
    width: usize,
) -> Result<KernelSpectrum> {
    if width == 0 || points.is_empty() || !points.len().is_multiple_of(width) {
        return Err(Error::Size { name: "points", expected: width, found: points.len() });
    }
    let point = |index: usize| &points[index * width..(index + 1) * width];
    let count = points.len() / width;
    spectrum(&Mat::from_fn(count, count, |i, j| kernel(point(i), point(j))))
}

/// exp(⟨x, y⟩/√d), the kernel of softmax attention.
pub fn exponential_kernel(x: &[f64], y: &[f64]) -> f64 {
    (linalg::dot(x, y) / (x.len() as f64).sqrt()).exp()
}

/// The same question asked of rows of attention, which in general are no kernel: normalisation and decay break the symmetry.
///
/// # Errors
/// Rows that do not belong to the tokens.
pub fn kernel_of_rows(rows: &Rows) -> Result<KernelSpectrum> {
    if rows.count() != rows.tokens {
        return Err(Error::Size { name: "rows", expected: rows.tokens, found: rows.count() });
    }
    spectrum(&Mat::from_fn(rows.tokens, rows.tokens, |i, j| rows.row(i)[j]))
}

fn spectrum(matrix: &Mat<f64>) -> Result<KernelSpectrum> {
    let size = matrix.nrows();
    let pairs = || (0..size).flat_map(|i| (0..size).map(move |j| (i, j)));
    let largest_entry = pairs().map(|pair| matrix[pair].abs()).fold(0.0, f64::max);
    let gap = pairs().map(|(i, j)| (matrix[(i, j)] - matrix[(j, i)]).abs()).fold(0.0, f64::max);
    let eigen =
        linalg::SymmetricEigen::new("the Gram matrix", linalg::symmetric_part(matrix.as_ref()).as_ref())?;
    let smallest = eigen.values.first().copied().unwrap_or(0.0);
    let largest = eigen.values.last().copied().unwrap_or(0.0);
    let over = |part: f64, whole: f64| if part == 0.0 { 0.0 } else { part / whole };
    let scale = largest.abs().max(smallest.abs());
    let verdict = if gap > ROUNDING * largest_entry {
        Verdict::NotSymmetric
    } else if smallest < -ROUNDING * scale {
        Verdict::Indefinite
    } else {
        Verdict::PositiveDefinite
    };
    Ok(KernelSpectrum {
        smallest,
        largest,
        relative: over(smallest, scale),
        asymmetry: over(gap, largest_entry),
        verdict,
    })
}
