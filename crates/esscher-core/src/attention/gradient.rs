//! The derivatives of one output in U and V, kept in the rank-one form that they have.

use crate::numerics::linalg;
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
    /// Entries of `output_weight` beyond the output are ignored, missing ones count as zero.
    pub fn in_score(&self, output_weight: &[f64]) -> Mat<f64> {
        let pulled = linalg::apply_transpose(self.tilt_sensitivity.as_ref(), &self.fitted(output_weight));
        let mut gradient = Mat::zeros(pulled.len(), self.query.len());
        linalg::add_outer(&mut gradient, 1.0, &pulled, &self.query);
        gradient
    }

    /// ∂⟨w, T⟩/∂V = w aᵀ for an output weight w.
    ///
    /// Entries of `output_weight` beyond the output are ignored, missing ones count as zero.
    pub fn in_value(&self, output_weight: &[f64]) -> Mat<f64> {
        let mut gradient = Mat::zeros(self.output.len(), self.attended_token.len());
        linalg::add_outer(&mut gradient, 1.0, &self.fitted(output_weight), &self.attended_token);
        gradient
    }

    /// ‖∂T/∂U‖²_F = ‖D‖²_F |z|².
    pub fn squared_norm_in_score(&self) -> f64 {
        linalg::squared_frobenius(self.tilt_sensitivity.as_ref()) * linalg::squared_norm(&self.query)
    }

    fn fitted(&self, output_weight: &[f64]) -> Vec<f64> {
        (0..self.output.len()).map(|i| output_weight.get(i).copied().unwrap_or(0.0)).collect()
    }
}
