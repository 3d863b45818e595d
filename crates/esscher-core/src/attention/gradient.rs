//! The derivatives of one output in U and V, kept in the rank-one form that they have.

use crate::error::Result;
use crate::numerics::{check, linalg};
use faer::Mat;

/// An output T = V a(Uz) with its derivatives.
///
/// With the *attended token* a and the *tilt sensitivity* D = V ∂a/∂θ (an output × token matrix):
/// ∂Tᵢ/∂U_ab = D_ia z_b and ∂Tᵢ/∂V_ij = aⱼ (zero for other rows). For softmax attention a is the tilted
/// mean and D = V Cov_tilt.
#[derive(Debug, Clone)]
pub struct Gradient {
    /// T, the output itself.
    pub output: Vec<f64>,
    /// D = V ∂a/∂θ.
    pub tilt_sensitivity: Mat<f64>,
    /// a, the token that the query sees.
    pub attended_token: Vec<f64>,
    /// z, the query.
    pub query: Vec<f64>,
}

impl Gradient {
    /// ∂⟨w, T⟩/∂U = Dᵀw zᵀ for an output weight w: what back-propagation needs.
    ///
    /// # Errors
    /// [`crate::Error::Size`] and [`crate::Error::NotFinite`] for `output_weight`, [`crate::Error::Overflow`] if the
    /// gradient exceeds double precision.
    pub fn in_score(&self, output_weight: &[f64]) -> Result<Mat<f64>> {
        check::vector("the output weight", self.output.len(), output_weight)?;
        let pulled = linalg::apply_transpose(self.tilt_sensitivity.as_ref(), output_weight);
        outer(&pulled, &self.query)
    }

    /// ∂⟨w, T⟩/∂V = w aᵀ for an output weight w.
    ///
    /// # Errors
    /// As [`Self::in_score`].
    pub fn in_value(&self, output_weight: &[f64]) -> Result<Mat<f64>> {
        check::vector("the output weight", self.output.len(), output_weight)?;
        outer(output_weight, &self.attended_token)
    }
}

fn outer(a: &[f64], b: &[f64]) -> Result<Mat<f64>> {
    let mut product = Mat::zeros(a.len(), b.len());
    linalg::add_outer(&mut product, 1.0, a, b);
    check::finite_matrix_result("the gradient", product)
}
