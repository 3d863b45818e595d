//! How specifications write laws, heads, lengths and regression tasks.

mod head;
mod law;
mod lengths;
mod task;

pub use head::{head, square};
pub use law::{FAMILIES, Family, law};
pub use lengths::lengths;
pub use task::{COVARIATES, Covariates, InitialScale, initial_scale, tasks};
