//! The numerical ground floor: safe sums of exponentials, random streams, quasi-random points, special functions, small linear algebra.

pub(crate) mod bessel;
pub(crate) mod check;
pub mod dormand_prince;
mod integration;
mod joint_summary;
pub mod linalg;
pub mod log_sum_exp;
pub mod normal;
mod quadratic_form;
pub mod radius;
pub mod rosenbrock;
pub mod sobol;
pub(crate) mod softmax_sums;
pub mod statistics;
pub mod stream;
pub mod student;
mod vector;

pub use joint_summary::JointSummary;
pub use log_sum_exp::{log_sum_exp, softmax};
pub use sobol::ScrambledSobol;
pub use stream::Stream;
pub use vector::{InstructionSet, MultiplyAdd, VectorLoops, exponentials_f32, exponentials_f64, vectorised};

pub(crate) use quadratic_form::{FormNode, QuadraticForm};
pub(crate) use vector::{Arithmetic, Kernel, Real, Register, exp};
