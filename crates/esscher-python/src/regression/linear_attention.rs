//! Linear attention trained on prompts of one length, in closed form.

use super::predictors::PyBlock;
use crate::arrays;
use crate::failure::OrRaise;
use esscher_core::Mat;
use esscher_core::regression::{ContextLength, LinearAttention};
use numpy::PyArrayDyn;
use pyo3::prelude::*;

/// Linear attention with prediction (1/N) Σ yₗ xₗᵀA x_q on prompts of N examples of one task, in closed form.
///
/// Made by `LinearRegression.linear_attention(prompt_length)`. Where a matrix A is asked for, a `Block` stands for its
/// product bA. A shift at test time is the risk of the same A on another task or at another length.
///
/// >>> import numpy as np
/// >>> import esscher as es
/// >>> attention = es.regression(np.eye(2), noise=0.5).linear_attention(10)
/// >>> attention.gamma                          # (1 + 1/N) Σ + ((tr Σ + s²/k)/N) I
/// array([[1.35, 0.  ],
///        [0.  , 1.35]])
/// >>> attention.excess_risk(attention.minimiser)
/// 0.0
#[pyclass(name = "LinearAttentionTraining", module = "esscher", frozen)]
pub(crate) struct PyLinearAttentionTraining {
    pub(super) attention: LinearAttention,
}

/// A matrix A, or the product bA of a block.
fn product(value: &Bound<'_, PyAny>) -> PyResult<Mat<f64>> {
    match value.cast::<PyBlock>() {
        Ok(block) => block.get().block.product().or_raise(),
        Err(_) => arrays::owned_matrix("matrix", value),
    }
}

#[pymethods]
impl PyLinearAttentionTraining {
    /// N; infinity for the infinite prompt.
    #[getter]
    fn prompt_length(&self) -> f64 {
        match self.attention.length() {
            ContextLength::Finite(length) => length.as_f64(),
            ContextLength::Infinite => f64::INFINITY,
        }
    }

    /// Γ = (1 + 1/N) Σ + ((tr Σ + s²/k)/N) I; Σ itself at the infinite prompt.
    #[getter]
    fn gamma<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.attention.gamma())
    }

    /// Γ⁻¹, the A of smallest risk.
    #[getter]
    fn minimiser<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.attention.minimiser().as_ref())
    }

    /// R(Γ⁻¹) = k/2 [tr Σ_q − tr(Σ_qΣΓ⁻¹)] + s_q²/2.
    #[getter]
    fn minimal_risk(&self) -> PyResult<f64> {
        self.attention.minimal_risk().or_raise()
    }

    /// R(A), half the mean squared error of the prediction.
    fn risk(&self, matrix: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.attention.risk(product(matrix)?.as_ref()).or_raise()
    }

    /// R(A) − R(Γ⁻¹), without the cancellation of that difference.
    fn excess_risk(&self, matrix: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.attention.excess_risk(product(matrix)?.as_ref()).or_raise()
    }

    /// ∇R(A) = k Σ(ΓA − I)Σ_q.
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        matrix: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.attention.gradient(product(matrix)?.as_ref()).or_raise()?.as_ref())
    }

    /// The block with bA = Γ⁻¹, b > 0 and ‖A‖²_F − b² = conserved: where gradient flow ends.
    #[pyo3(signature = (conserved = 0.0))]
    fn flow_limit(&self, conserved: f64) -> PyResult<PyBlock> {
        Ok(PyBlock { block: self.attention.flow_limit(conserved).or_raise()? })
    }

    /// Bounds on the initial scale α: √(2/(‖Γ‖√d)), below which convergence is proved, and √2/(d^{1/4}‖Σ‖), the
    /// paper's.
    #[getter]
    fn scale_bounds(&self) -> PyResult<(f64, f64)> {
        let found = self.attention.initial_scale(1.0).or_raise()?;
        Ok((found.sufficient_bound, found.paper_bound))
    }

    /// Whether convergence from the initial scale α is proved, by α²‖Γ‖√d < 2 and by the paper's range.
    fn initial_scale(&self, scale: f64) -> PyResult<(bool, bool)> {
        let found = self.attention.initial_scale(scale).or_raise()?;
        Ok((found.is_sufficient(), found.is_in_range_of_paper()))
    }

    /// The prediction (1/N) Σ yₗ xₗᵀA x_q on one prompt: covariates (N, d), targets (N,), query (d,).
    #[staticmethod]
    fn predict(
        matrix: &Bound<'_, PyAny>,
        covariates: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
        query: &Bound<'_, PyAny>,
    ) -> PyResult<f64> {
        let covariates = arrays::Reals::read("covariates", covariates)?;
        let targets = arrays::owned_vector("targets", targets)?;
        let query = arrays::owned_vector("query", query)?;
        LinearAttention::predict(product(matrix)?.as_ref(), covariates.matrix()?, &targets, &query).or_raise()
    }

    fn __repr__(&self) -> String {
        let (dimension, length) = (self.attention.dimension(), self.prompt_length());
        format!("LinearAttentionTraining(dimension={dimension}, prompt_length={length})")
    }
}
