//! Arithmetic that several mechanisms share, each with its backward pass.

pub(crate) mod gated_sum;
pub(crate) mod linear_sum;
pub mod matrix;
