//! How specifications write laws, heads, lengths and regression tasks.

mod head;
mod law;
mod laws;
mod lengths;
mod simulation;
mod task;

pub use head::{LARGEST_DIMENSION, head, square};
pub use law::{FAMILIES, Family, law};
pub use laws::{NamedLaw, token_laws};
pub use lengths::lengths;
pub use simulation::{PRECISIONS, sigmas};
pub use task::{COVARIATES, Covariates, InitialScale, initial_scale, tasks};
