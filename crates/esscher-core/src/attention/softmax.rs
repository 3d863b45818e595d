//! Softmax attention `T[μ](z) = V ∇Λ_μ(Uz)`: V times the mean of the tilted measure.

use super::{Attention, Gradient, Projections, ScoreValue};
use crate::error::Result;
use crate::measure::Measure;
use crate::numerics::{check, linalg};
use faer::{Mat, MatRef};

/// One softmax attention head with score matrix U and value matrix V.
///
/// On an empirical measure this is Σₗ softmax(⟨zₗ, Uz⟩) V zₗ; on N(m, G) it is V(m + GUz).
///
/// ```
/// use esscher_core::attention::{Attention, Softmax};
/// use esscher_core::measure::{Empirical, Gaussian};
/// use esscher_core::mat;
/// let head = Softmax::new(mat![[1.0, 0.0], [0.0, 1.0]].as_ref(), mat![[1.0, 1.0]].as_ref())?;
/// let law = Gaussian::standard(2)?;
/// assert_eq!(head.attend(&law, &[0.5, 0.25])?, [0.75]);
/// let prompt = Empirical::from_tokens(2, &[1.0, 0.0, 0.0, 1.0])?;
/// assert!((head.attend(&prompt, &[0.5, 0.25])?[0] - 1.0).abs() < 1e-15);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Softmax(ScoreValue);

impl Softmax {
    /// The head with score matrix U (token × query dimension) and value matrix V (output × token dimension).
    pub fn new(score: MatRef<'_, f64>, value: MatRef<'_, f64>) -> Result<Self> {
        Ok(Softmax(ScoreValue::new(score, value)?))
    }

    /// The head of separate query, key and value projections: U = scaling · KᵀQ.
    pub fn from_projections(projections: &Projections) -> Result<Self> {
        Softmax::new(projections.score_matrix().as_ref(), projections.value_matrix())
    }

    /// The score matrix U.
    pub fn score(&self) -> MatRef<'_, f64> {
        self.0.score.as_ref()
    }

    /// The value matrix V.
    pub fn value(&self) -> MatRef<'_, f64> {
        self.0.value.as_ref()
    }

    /// θ = Uz, the tilt that this head applies for a query.
    pub fn tilt(&self, query: &[f64]) -> Result<Vec<f64>> {
        self.0.tilt_of(query)
    }
}

impl Attention for Softmax {
    fn query_dimension(&self) -> usize {
        self.0.score.ncols()
    }

    fn token_dimension(&self) -> usize {
        self.0.score.nrows()
    }

    fn output_dimension(&self) -> usize {
        self.0.value.nrows()
    }

    fn attend(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Vec<f64>> {
        let mean = tokens.tilted_mean(&self.0.tilt(tokens, query)?)?;
        check::finite_result("the output", linalg::apply(self.value(), &mean))
    }

    fn attend_all(&self, tokens: &dyn Measure, queries: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let tilts = self.0.tilts(tokens, queries)?;
        let means = tokens.tilted_means(&tilts)?;
        let means = MatRef::from_row_major_slice(&means, queries.nrows(), tokens.dimension());
        check::finite_matrix_result("the output", means * self.value().transpose())
    }

    fn gradient(&self, tokens: &dyn Measure, query: &[f64]) -> Result<Gradient> {
        let tilt = self.0.tilt(tokens, query)?;
        let mean = tokens.tilted_mean(&tilt)?;
        let covariance = tokens.tilted_covariance(&tilt)?;
        let output = check::finite_result("the output", linalg::apply(self.value(), &mean))?;
        let sensitivity = check::finite_matrix_result("the gradient", self.value() * covariance)?;
        Ok(Gradient { output, tilt_sensitivity: sensitivity, attended_token: mean, query: query.to_vec() })
    }
}
