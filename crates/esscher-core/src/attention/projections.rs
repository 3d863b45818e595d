//! Separate query, key and value projections (Q, K, V), the parametrisation of trained models.

use crate::error::Result;
use crate::numerics::check;
use faer::{Mat, MatRef, Scale};

/// The factor that multiplies the scores ⟨K z′, Q z⟩.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scaling {
    /// No factor.
    None,
    /// 1/√k for heads of dimension k, as in transformers.
    InverseRootDimension,
    /// A given factor.
    Factor(f64),
}

/// Q (k × query dimension), K (k × token dimension), V (output × token dimension) and a score factor.
///
/// ```
/// use esscher_core::attention::{Projections, Scaling, Softmax};
/// use esscher_core::mat;
/// let q = mat![[1.0, 0.0], [0.0, 1.0]];
/// let projections = Projections::new(q.as_ref(), q.as_ref(), q.as_ref(), Scaling::InverseRootDimension)?;
/// let head = Softmax::from_projections(&projections)?;
/// assert!((head.score()[(0, 0)] - 0.5f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Projections {
    query: Mat<f64>,
    key: Mat<f64>,
    value: Mat<f64>,
    factor: f64,
}

impl Projections {
    /// Checks the three projections against each other.
    pub fn new(
        query: MatRef<'_, f64>,
        key: MatRef<'_, f64>,
        value: MatRef<'_, f64>,
        scaling: Scaling,
    ) -> Result<Self> {
        check::not_empty("query projection (rows)", query.nrows())?;
        check::size("key projection (rows)", query.nrows(), key.nrows())?;
        check::size("value projection (columns)", key.ncols(), value.ncols())?;
        for (what, matrix) in
            [("query projection", query), ("key projection", key), ("value projection", value)]
        {
            check::finite_matrix(what, matrix)?;
        }
        let factor = match scaling {
            Scaling::None => 1.0,
            Scaling::InverseRootDimension => 1.0 / (query.nrows() as f64).sqrt(),
            Scaling::Factor(factor) => factor,
        };
        check::finite_vector("score factor", &[factor])?;
        Ok(Projections { query: query.to_owned(), key: key.to_owned(), value: value.to_owned(), factor })
    }

    /// U = factor · KᵀQ.
    pub fn score_matrix(&self) -> Mat<f64> {
        Scale(self.factor) * (self.key.transpose() * &self.query)
    }

    /// The value matrix V.
    pub fn value_matrix(&self) -> MatRef<'_, f64> {
        self.value.as_ref()
    }
}
