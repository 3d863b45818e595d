//! Validation at the edge: each public constructor checks its arguments once, with these.

use crate::error::{Entry, Error, Result};
use crate::numerics::linalg;
use faer::{Mat, MatRef};
use rayon::prelude::*;

/// A covariance may be asymmetric, and its eigenvalues negative, by this much of its largest entry:
/// what products such as A G Aᵀ leave behind in double precision, and no more.
const ROUNDING: f64 = 1e-12;

pub(crate) fn size(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Size { what, expected, found }) }
}

pub(crate) fn not_empty(what: &'static str, size: usize) -> Result<()> {
    if size > 0 { Ok(()) } else { Err(Error::Empty { what }) }
}

/// A number of things, or a dimension, of which there must be at least one.
pub(crate) fn at_least_one(what: &'static str, count: usize) -> Result<()> {
    if count > 0 { Ok(()) } else { Err(Error::OutOfRange { what, value: 0.0, expected: "at least 1" }) }
}

/// The dimension of a law that is given by a number: vectors of it are made without another question.
pub(crate) fn dimension(dimension: usize) -> Result<()> {
    let what = "the dimension of the measure";
    at_least_one(what, dimension)?;
    if dimension <= 1 << 24 {
        return Ok(());
    }
    Err(Error::OutOfRange { what, value: dimension as f64, expected: "at most 16777216" })
}

/// A dimension of which square matrices are made.
pub(crate) fn matrix_dimension(dimension: usize) -> Result<()> {
    if dimension <= 16_384 {
        return Ok(());
    }
    let what = "the dimension of a covariance";
    Err(Error::OutOfRange {
        what,
        value: dimension as f64,
        expected: "at most 16384: it must fit into memory",
    })
}

/// A buffer that must hold whole tokens.
pub(crate) fn whole_tokens(dimension: usize, found: usize) -> Result<()> {
    if found.is_multiple_of(dimension) { Ok(()) } else { Err(Error::WholeTokens { dimension, found }) }
}

/// The first entry that is NaN or infinite, found at the speed of memory and, of many, on all threads.
pub(crate) fn first_not_finite(values: &[f64]) -> Option<usize> {
    const BLOCK: usize = 1 << 10;
    const PIECE: usize = 1 << 16;
    const WORTH_THREADS: usize = 4 * PIECE;
    let start = if values.len() < WORTH_THREADS {
        BLOCK * values.chunks(BLOCK).position(|block| !all_finite(block))?
    } else {
        PIECE * values.par_chunks(PIECE).position_first(|piece| !all_finite(piece))?
    };
    values[start..].iter().position(|value| !value.is_finite()).map(|offset| start + offset)
}

/// Many entries together: x · 0 is zero for a finite x and NaN otherwise.
fn all_finite(values: &[f64]) -> bool {
    let (lines, rest) = values.as_chunks::<16>();
    let mut sums = [0.0; 16];
    for line in lines {
        for (sum, value) in sums.iter_mut().zip(line) {
            *sum += value * 0.0;
        }
    }
    sums.iter().chain(rest).all(|value| value.is_finite())
}

pub(crate) fn finite_vector(what: &'static str, vector: &[f64]) -> Result<()> {
    match first_not_finite(vector) {
        None => Ok(()),
        Some(index) => Err(Error::NotFinite { what, entry: Entry::Index(index), value: vector[index] }),
    }
}

pub(crate) fn finite_matrix(what: &'static str, matrix: MatRef<'_, f64>) -> Result<()> {
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            let value = matrix[(row, column)];
            if !value.is_finite() {
                return Err(Error::NotFinite { what, entry: Entry::RowColumn(row, column), value });
            }
        }
    }
    Ok(())
}

/// A vector argument: right size, finite entries.
pub(crate) fn vector(what: &'static str, dimension: usize, vector: &[f64]) -> Result<()> {
    size(what, dimension, vector.len())?;
    finite_vector(what, vector)
}

pub(crate) fn positive(what: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::OutOfRange { what, value, expected: "a positive finite number" })
    }
}

/// A variance, a ridge or a tolerance: zero is allowed.
pub(crate) fn zero_or_more(what: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::OutOfRange { what, value, expected: "a finite number, zero or more" })
    }
}

/// Positive finite weights, returned normalised to sum one.
pub(crate) fn weights(weights: &[f64]) -> Result<Vec<f64>> {
    not_empty("the list of weights", weights.len())?;
    for (index, &value) in weights.iter().enumerate() {
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::Weight { index, value });
        }
    }
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let total: f64 = weights.iter().map(|weight| weight / largest).sum();
    let normalised: Vec<f64> = weights.iter().map(|weight| weight / largest / total).collect();
    match normalised.iter().position(|&weight| weight == 0.0) {
        Some(index) => Err(Error::WeightUnderflow { index, value: weights[index], largest }),
        None => Ok(normalised),
    }
}

/// A square, finite, symmetric matrix, returned exactly symmetric.
pub(crate) fn symmetric(what: &'static str, matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    size(what, matrix.nrows(), matrix.ncols())?;
    finite_matrix(what, matrix)?;
    let scale = largest_entry(matrix);
    for column in 0..matrix.ncols() {
        for row in 0..column {
            let (upper, lower) = (matrix[(row, column)], matrix[(column, row)]);
            if (upper - lower).abs() > ROUNDING * scale {
                return Err(Error::NotSymmetric { what, row, column, upper, lower });
            }
        }
    }
    Ok(crate::numerics::linalg::symmetric_part(matrix))
}

/// The smallest eigenvalue that still counts as zero for a matrix of this size.
pub(crate) fn eigenvalue_allowance(matrix: MatRef<'_, f64>) -> f64 {
    ROUNDING * largest_entry(matrix) * matrix.nrows() as f64
}

/// The largest |Mᵢⱼ|, NaN where an entry is.
pub(crate) fn largest_entry(matrix: MatRef<'_, f64>) -> f64 {
    let mut largest: f64 = 0.0;
    for column in 0..matrix.ncols() {
        for row in 0..matrix.nrows() {
            largest = linalg::larger(largest, matrix[(row, column)].abs());
        }
    }
    largest
}

/// A computed vector that must be handed out finite.
pub(crate) fn finite_result(what: &'static str, result: Vec<f64>) -> Result<Vec<f64>> {
    if first_not_finite(&result).is_none() { Ok(result) } else { Err(Error::Overflow { what }) }
}

/// Drawn tokens that must be handed out finite.
pub(crate) fn finite_tokens(tokens: &[f64]) -> Result<()> {
    if first_not_finite(tokens).is_none() { Ok(()) } else { Err(Error::Overflow { what: "a drawn token" }) }
}

/// A computed number that must be handed out finite.
pub(crate) fn finite_number(what: &'static str, result: f64) -> Result<f64> {
    if result.is_finite() { Ok(result) } else { Err(Error::Overflow { what }) }
}

/// A computed matrix that must be handed out finite.
pub(crate) fn finite_matrix_result(what: &'static str, result: Mat<f64>) -> Result<Mat<f64>> {
    match finite_matrix(what, result.as_ref()) {
        Ok(()) => Ok(result),
        Err(_) => Err(Error::Overflow { what }),
    }
}

/// A computed tilted covariance that must be handed out finite, and not as zero because squares of the sizes of the
/// coordinates underflow. (Variances that vanish because their probabilities do are right.)
pub(crate) fn tilted_covariance_result(
    covariance: Mat<f64>,
    size_of: impl Fn(usize) -> f64,
) -> Result<Mat<f64>> {
    /// Squares of smaller sizes may lose digits or vanish.
    const SMALLEST: f64 = 1e-150;
    const WHAT: &str = "the tilted covariance";
    let covariance = finite_matrix_result(WHAT, covariance)?;
    for index in 0..covariance.nrows() {
        if covariance[(index, index)] < f64::MIN_POSITIVE {
            let size = size_of(index);
            if size > 0.0 && size < SMALLEST {
                return Err(Error::Underflow { what: WHAT });
            }
        }
    }
    Ok(covariance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_is_not_finite_is_found_wherever_it_is() {
        assert_eq!(first_not_finite(&[]), None);
        for count in [5000, 300_000] {
            let mut values: Vec<f64> = (0..count).map(|k| f64::from(k) * 1e302).collect();
            assert_eq!(first_not_finite(&values), None);
            let last = values.len() - 1;
            for (position, value) in
                [(last, f64::NAN), (1024, f64::INFINITY), (1023, -f64::INFINITY), (0, f64::NAN)]
            {
                values[position] = value;
                assert_eq!(first_not_finite(&values), Some(position));
            }
        }
    }
}
