//! Softmax sums Σ e^{⟨θ, z⟩} and Σ e^{⟨θ, z⟩} z over the tokens of a prompt, relative to the largest score.

mod strips;

pub(crate) use strips::{BLOCK, Order, StripSums};
