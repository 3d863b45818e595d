//! Attention as an operator on measures: (measure of tokens, query) ↦ output, with gradients in U and V.
//!
//! With score matrix U and value matrix V, the *tilt* of a query z is θ = Uz, and
//!
//! - softmax attention is V ∇Λ(θ), V times the mean of the tilted measure;
//! - linear attention is V M θ with a second-moment matrix M of the measure.
//!
//! A prompt of L tokens is a [`Prompt`](crate::measure::Prompt) or an [`Empirical`](crate::measure::Empirical)
//! measure and an infinite prompt is its law: there is one code path. For Gaussian tokens softmax attention is
//! V m + V G θ, linear in z.

mod gradient;
mod heads;
mod linear;
mod projections;
mod softmax;

pub use gradient::Gradient;
pub use heads::Heads;
pub use linear::{Linear, Moment};
pub use projections::{Projections, Scaling};
pub use softmax::Softmax;

use crate::error::Result;
use crate::measure::Measure;
use crate::numerics::check;
use faer::{Mat, MatRef};
use rayon::prelude::*;
use std::fmt::Debug;

/// A map (measure, query) ↦ output, differentiable in its score matrix U and value matrix V.
///
/// Object-safe, so that heads of different kinds can be summed.
pub trait Attention: Debug + Send + Sync {
    /// Dimension of a query (columns of U).
    fn query_dimension(&self) -> usize;

    /// Dimension of a token (rows of U, columns of V).
    fn token_dimension(&self) -> usize;

    /// Dimension of the output (rows of V).
    fn output_dimension(&self) -> usize;

    /// The output at one query.
    fn attend(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Vec<f64>>;

    /// The output at one query and its derivatives in U and V.
    fn gradient(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Gradient>;

    /// The outputs at many queries, one per row of `queries`; rows of the result match.
    fn attend_all(&self, tokens: &dyn Measure, queries: MatRef<'_, f64>) -> Result<Mat<f64>> {
        check::size("queries (columns)", self.query_dimension(), queries.ncols())?;
        let outputs: Vec<Vec<f64>> = (0..queries.nrows())
            .into_par_iter()
            .map(|row| {
                let query: Vec<f64> = (0..queries.ncols()).map(|column| queries[(row, column)]).collect();
                self.attend(tokens, &query)
            })
            .collect::<Result<_>>()?;
        Ok(Mat::from_fn(queries.nrows(), self.output_dimension(), |row, column| outputs[row][column]))
    }
}

/// The pair (U, V) that every attention of this crate carries, checked once.
#[derive(Debug, Clone)]
struct ScoreValue {
    score: Mat<f64>,
    value: Mat<f64>,
}

impl ScoreValue {
    fn new(score: MatRef<'_, f64>, value: MatRef<'_, f64>) -> Result<Self> {
        for (what, size) in [
            ("score matrix (rows)", score.nrows()),
            ("score matrix (columns)", score.ncols()),
            ("value matrix (rows)", value.nrows()),
        ] {
            check::not_empty(what, size)?;
        }
        check::size("value matrix (columns)", score.nrows(), value.ncols())?;
        check::finite_matrix("score matrix", score)?;
        check::finite_matrix("value matrix", value)?;
        Ok(ScoreValue { score: score.to_owned(), value: value.to_owned() })
    }

    /// θ = U z, for tokens of the right dimension.
    fn tilt(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Vec<f64>> {
        check::size("tokens (dimension)", self.score.nrows(), tokens.dimension())?;
        self.tilt_of(query)
    }

    /// The tilts of many queries, one per row of `queries`, one after the other.
    fn tilts(&self, tokens: &dyn Measure, queries: MatRef<'_, f64>) -> Result<Vec<f64>> {
        check::size("queries (columns)", self.score.ncols(), queries.ncols())?;
        check::size("tokens (dimension)", self.score.nrows(), tokens.dimension())?;
        check::finite_matrix("queries", queries)?;
        let by_column = &self.score * queries.transpose();
        let mut tilts = Vec::with_capacity(by_column.nrows() * by_column.ncols());
        for column in 0..by_column.ncols() {
            tilts.extend_from_slice(by_column.col_as_slice(column));
        }
        check::finite_result("the tilt of the query", tilts)
    }

    fn tilt_of(&self, query: &[f64]) -> Result<Vec<f64>> {
        check::vector("query", self.score.ncols(), query)?;
        check::finite_result(
            "the tilt of the query",
            crate::numerics::linalg::apply(self.score.as_ref(), query),
        )
    }
}
