//! Arithmetic that several mechanisms share, each with its backward pass.

pub(crate) mod gated_sum;
pub mod matrix;
pub(crate) mod scalar_gated_sum;
