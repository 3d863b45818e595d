//! How specifications write laws, heads and lengths.

mod head;
mod law;
mod lengths;

pub use head::{head, square};
pub use law::{FAMILIES, Family, law};
pub use lengths::lengths;
