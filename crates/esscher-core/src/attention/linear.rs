//! Linear attention V M Uz, with the raw second moment E zzᵀ or the covariance as M.

use super::{Attention, Gradient, Projections, ScoreValue};
use crate::error::Result;
use crate::measure::Measure;
use crate::numerics::{check, linalg};
use faer::{Mat, MatRef};

/// Which second moment of the tokens linear attention uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// E zzᵀ: on a prompt, (1/L) Σ V zₗ ⟨zₗ, Uz⟩, the linear attention of the literature.
    Raw,
    /// Cov(z): softmax attention on Gaussian tokens is V m plus this, for every mean m.
    Centred,
}

/// One linear attention head.
///
/// On N(m, G) the raw form equals softmax attention when Vm = Vm⟨m, Uz⟩, in particular for m = 0; the
/// centred form plus Vm always does.
///
/// ```
/// use esscher_core::attention::{Attention, Linear, Moment, Softmax};
/// use esscher_core::measure::Gaussian;
/// use esscher_core::{Mat, mat};
/// let (score, value) = (mat![[0.3, 0.1], [-0.2, 0.5]], Mat::<f64>::identity(2, 2));
/// let tokens = Gaussian::centred(mat![[2.0, 0.4], [0.4, 1.0]].as_ref())?;
/// let softmax = Softmax::new(score.as_ref(), value.as_ref())?.attend(&tokens, &[1.0, -1.0])?;
/// let linear = Linear::new(score.as_ref(), value.as_ref(), Moment::Raw)?.attend(&tokens, &[1.0, -1.0])?;
/// assert!(softmax.iter().zip(&linear).all(|(a, b)| (a - b).abs() < 1e-14));
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Linear {
    matrices: ScoreValue,
    moment: Moment,
}

impl Linear {
    /// The head with score matrix U, value matrix V and this second moment.
    pub fn new(score: MatRef<'_, f64>, value: MatRef<'_, f64>, moment: Moment) -> Result<Self> {
        Ok(Linear { matrices: ScoreValue::new(score, value)?, moment })
    }

    /// The head of separate query, key and value projections: U = scaling · KᵀQ.
    pub fn from_projections(projections: &Projections, moment: Moment) -> Result<Self> {
        Linear::new(projections.score_matrix().as_ref(), projections.value_matrix(), moment)
    }

    /// The score matrix U.
    pub fn score(&self) -> MatRef<'_, f64> {
        self.matrices.score.as_ref()
    }

    /// The value matrix V.
    pub fn value(&self) -> MatRef<'_, f64> {
        self.matrices.value.as_ref()
    }

    /// Which second moment it uses.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    fn moment_of(&self, tokens: &dyn Measure) -> Result<Mat<f64>> {
        match self.moment {
            Moment::Raw => tokens.second_moment(),
            Moment::Centred => tokens.covariance(),
        }
    }
}

impl Attention for Linear {
    fn query_dimension(&self) -> usize {
        self.matrices.score.ncols()
    }

    fn token_dimension(&self) -> usize {
        self.matrices.score.nrows()
    }

    fn output_dimension(&self) -> usize {
        self.matrices.value.nrows()
    }

    fn attend(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Vec<f64>> {
        Ok(self.gradient(tokens, query)?.output)
    }

    fn gradient(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Gradient> {
        let tilt = self.matrices.tilt(tokens, query)?;
        let moment = self.moment_of(tokens)?;
        let attended_token =
            check::finite_result("the attended token", linalg::apply(moment.as_ref(), &tilt))?;
        let output = check::finite_result("the output", linalg::apply(self.value(), &attended_token))?;
        let tilt_sensitivity = check::finite_matrix_result("the gradient", self.value() * moment)?;
        Ok(Gradient { output, tilt_sensitivity, attended_token, query: query.to_vec() })
    }

    fn attend_all(&self, tokens: &dyn Measure, queries: MatRef<'_, f64>) -> Result<Mat<f64>> {
        // The moment does not depend on the query: V M U is one matrix for all of them.
        check::size("tokens (dimension)", self.token_dimension(), tokens.dimension())?;
        check::size("queries (columns)", self.query_dimension(), queries.ncols())?;
        check::finite_matrix("queries", queries)?;
        let operator = self.value() * self.moment_of(tokens)? * self.score();
        check::finite_matrix_result("the outputs", queries * operator.transpose())
    }
}
