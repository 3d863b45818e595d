//! How specifications write laws, heads, lengths, regression tasks, checkpoints and texts.

mod head;
mod law;
mod laws;
mod lengths;
#[cfg(feature = "audit")]
mod model;
mod simulation;
mod task;
#[cfg(feature = "audit")]
mod text;

pub use head::{LARGEST_DIMENSION, head, square};
pub use law::{FAMILIES, Family, law};
pub use laws::{NamedLaw, token_laws};
pub use lengths::lengths;
#[cfg(feature = "audit")]
pub use model::{ModelChoice, model};
pub use simulation::{PRECISIONS, sigmas};
pub use task::{COVARIATES, Covariates, InitialScale, initial_scale, tasks};
#[cfg(feature = "audit")]
pub use text::{LARGEST_TEXT, TextChoice, find_text, text};
