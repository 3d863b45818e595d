//! Questions asked of any mechanism through the weights it gives: who confuses queries, who looks nearby, who is a kernel.

mod injectivity;
mod kernels;
mod local_mass;
mod rows;
mod static_approximation;

pub use injectivity::{Confusion, RankCondition, SAME_ROW, ToyFigure, confusion, rank_condition, toy_figure};
pub use kernels::{KernelSpectrum, Verdict, exponential_kernel, kernel_of_rows, kernel_spectrum};
pub use local_mass::{LocalMass, Neighbourhood, local_mass};
pub use rows::{Rows, attention_matrix, query_rows};
pub use static_approximation::{StaticApproximation, static_approximation};
