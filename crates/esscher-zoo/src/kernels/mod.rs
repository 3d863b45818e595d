//! Arithmetic that several mechanisms share, each with its backward pass.

pub(crate) mod affine;
pub(crate) mod circular;
pub(crate) mod corrected_sum;
pub(crate) mod diagonal_scan;
pub(crate) mod gated_sum;
pub(crate) mod linear_sum;
pub(crate) mod logistic;
pub mod matrix;
pub(crate) mod scalar_gated_sum;
