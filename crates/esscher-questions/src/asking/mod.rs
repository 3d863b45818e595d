//! How specifications write laws, heads, lengths, regression tasks.

mod head;
mod law;
mod laws;
mod lengths;
mod simulation;
mod task;
mod tokens;

pub use head::{LARGEST_DIMENSION, any_head, head, square, square_rule, vectors};
pub use law::{FAMILIES, Family, law, law_schema};
pub use laws::{NamedLaw, ScaledLaw, TokenLaws};
pub use lengths::{lengths, lengths_up_to};
pub use simulation::{PRECISIONS, check_directions, sigmas};
pub use task::{Covariates, InitialScale, Tasks};
pub use tokens::{GivenTokens, Tokens, tokens};
