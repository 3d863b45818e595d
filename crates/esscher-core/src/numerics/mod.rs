//! The numerical ground floor: safe sums of exponentials, random streams, quasi-random points, special functions, small linear algebra.

pub mod bessel;
pub(crate) mod check;
pub mod dormand_prince;
pub mod linalg;
pub mod log_sum_exp;
pub mod normal;
pub mod radius;
pub mod sobol;
pub mod stream;

pub use log_sum_exp::{log_sum_exp, softmax};
pub use sobol::ScrambledSobol;
pub use stream::Stream;
