//! Linear attention trained on prompts of one length, in closed form.

use super::predictors::PyBlock;
use crate::prelude::*;
use esscher_core::Mat;
use esscher_core::regression::{ContextLength, LinearAttention};

export!(class PyLinearAttentionTraining);
compared!(PyLinearAttentionTraining);

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
    /// What makes it again, for pickling: a callable and its arguments.
    pub(super) recipe: Py<PyTuple>,
}

/// A matrix A, or the product bA of a block.
fn product(value: &Any<'_>) -> PyResult<Mat<f64>> {
    match value.cast::<PyBlock>() {
        Ok(block) => block.get().block.product().or_raise(),
        Err(_) => arrays::owned_matrix("matrix", value),
    }
}

getters! { PyLinearAttentionTraining, own:
    /// N; infinity for the infinite prompt.
    prompt_length: f64 = match own.attention.length() {
        ContextLength::Finite(length) => length.as_f64(),
        ContextLength::Infinite => f64::INFINITY,
    };
    /// Γ = (1 + 1/N) Σ + ((tr Σ + s²/k)/N) I; Σ itself at the infinite prompt.
    gamma: Array = own.attention.gamma().into();
    /// Γ⁻¹, the A of smallest risk.
    minimiser: Array = own.attention.minimiser().into();
    /// R(Γ⁻¹) = k/2 [tr Σ_q − tr(Σ_qΣΓ⁻¹)] + s_q²/2.
    minimal_risk: f64 = own.attention.minimal_risk().or_raise()?;
    /// Bounds on the initial scale α: √(2/(‖Γ‖√d)), below which convergence is proved, and √2/(d^{1/4}‖Σ‖), the
    /// paper's.
    scale_bounds: (f64, f64) = {
        let found = own.attention.initial_scale(1.0).or_raise()?;
        (found.sufficient_bound, found.paper_bound)
    };
}

#[pymethods]
impl PyLinearAttentionTraining {
    /// R(A), half the mean squared error of the prediction.
    fn risk(&self, matrix: &Any<'_>) -> PyResult<f64> {
        self.attention.risk(product(matrix)?.as_ref()).or_raise()
    }

    /// R(A) − R(Γ⁻¹), without the cancellation of that difference.
    fn excess_risk(&self, matrix: &Any<'_>) -> PyResult<f64> {
        self.attention.excess_risk(product(matrix)?.as_ref()).or_raise()
    }

    /// ∇R(A) = k Σ(ΓA − I)Σ_q.
    fn gradient(&self, matrix: &Any<'_>) -> PyResult<Array> {
        Ok(self.attention.gradient(product(matrix)?.as_ref()).or_raise()?.into())
    }

    /// The block with bA = Γ⁻¹, b > 0 and ‖A‖²_F − b² = conserved: where gradient flow ends.
    #[pyo3(signature = (conserved = 0.0))]
    fn flow_limit(
        &self,
        #[pyo3(from_py_with = numbers::argument::conserved)] conserved: f64,
    ) -> PyResult<PyBlock> {
        Ok(PyBlock { block: self.attention.flow_limit(conserved).or_raise()? })
    }

    /// Whether convergence from the initial scale α is proved, by α²‖Γ‖√d < 2 and by the paper's range.
    fn initial_scale(
        &self,
        #[pyo3(from_py_with = numbers::argument::scale)] scale: f64,
    ) -> PyResult<(bool, bool)> {
        let found = self.attention.initial_scale(scale).or_raise()?;
        Ok((found.is_sufficient(), found.is_in_range_of_paper()))
    }

    /// The prediction (1/N) Σ yₗ xₗᵀA x_q on one prompt: covariates (N, d), targets (N,), query (d,).
    #[staticmethod]
    fn predict(matrix: &Any<'_>, covariates: &Any<'_>, targets: &Any<'_>, query: &Any<'_>) -> PyResult<f64> {
        let covariates = arrays::Reals::read("covariates", covariates)?;
        let targets = arrays::owned_vector("targets", targets)?;
        let query = arrays::owned_vector("query", query)?;
        LinearAttention::predict(product(matrix)?.as_ref(), covariates.matrix()?, &targets, &query).or_raise()
    }

    fn __reduce__(&self, py: Python<'_>) -> Py<PyTuple> {
        self.recipe.clone_ref(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.recipe)
    }

    fn __repr__(&self) -> PyResult<String> {
        let (dimension, length) = (self.attention.dimension(), self.prompt_length()?);
        Ok(format!("LinearAttentionTraining(dimension={dimension}, prompt_length={length})"))
    }
}
