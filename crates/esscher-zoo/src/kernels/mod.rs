//! Arithmetic that several mechanisms share, each with its backward pass.

pub(crate) mod affine;
pub(crate) mod chunked_sum;
pub(crate) mod circular;
pub(crate) mod corrected_sum;
pub(crate) mod decay_per_channel;
pub(crate) mod decay_per_token;
pub(crate) mod diagonal_scan;
pub(crate) mod linear_sum;
pub(crate) mod logistic;
pub mod matrix;
pub(crate) mod slices;
