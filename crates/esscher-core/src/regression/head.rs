//! What is trained: the score matrix and the one row of the value matrix that predicts.

use crate::error::Result;
use crate::numerics::check;
use faer::{Mat, MatRef};

/// One attention head read as a predictor: tokens (x, y) in Rᵈ⁺¹, query (x_q, 0), prediction = the attended
/// token along `value`.
///
/// `score` is U, square of size d + 1; `value` is v, the last row of V. Other rows of V predict nothing and get
/// no gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionHead {
    score: Mat<f64>,
    value: Vec<f64>,
}

impl RegressionHead {
    /// A head with these matrices.
    ///
    /// # Errors
    /// Sizes that do not agree, a dimension of zero, entries that are not finite.
    pub fn new(score: MatRef<'_, f64>, value: &[f64]) -> Result<Self> {
        check::not_empty("the covariates (dimension)", value.len().saturating_sub(1))?;
        check::size("the score matrix (rows)", value.len(), score.nrows())?;
        check::size("the score matrix (columns)", value.len(), score.ncols())?;
        check::finite_matrix("the score matrix", score)?;
        check::finite_vector("the value vector", value)?;
        Ok(RegressionHead { score: score.to_owned(), value: value.to_vec() })
    }

    /// The block form: U = diag(A, 0), v = (0, b).
    pub fn block(matrix: MatRef<'_, f64>, gain: f64) -> Result<Self> {
        let dimension = matrix.nrows();
        check::size("the block A (columns)", dimension, matrix.ncols())?;
        let score = Mat::from_fn(dimension + 1, dimension + 1, |i, j| {
            if i < dimension && j < dimension { matrix[(i, j)] } else { 0.0 }
        });
        let mut value = vec![0.0; dimension + 1];
        value[dimension] = gain;
        RegressionHead::new(score.as_ref(), &value)
    }

    /// d, the dimension of a covariate.
    pub fn dimension(&self) -> usize {
        self.value.len() - 1
    }

    /// The score matrix U.
    pub fn score(&self) -> MatRef<'_, f64> {
        self.score.as_ref()
    }

    /// The value vector v.
    pub fn value(&self) -> &[f64] {
        &self.value
    }
}
