//! The tests of the zoo, one file per subject: one program, since every program would compile all mechanisms again.

mod attention_and_feature_maps;
mod batches;
mod catalogue;
mod common;
mod decaying_memories;
mod diagnostics;
mod large_prompts;
mod scans_and_rotations;
#[cfg(feature = "training")]
mod training;
