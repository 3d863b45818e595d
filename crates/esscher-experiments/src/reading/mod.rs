//! How specifications write laws, heads and lengths.

mod head;
mod law;
mod laws;
mod lengths;
mod simulation;

pub use head::{head, square};
pub use law::{FAMILIES, Family, law};
pub use laws::{NamedLaw, token_laws};
pub use lengths::lengths;
pub use simulation::{PRECISIONS, sigmas};
