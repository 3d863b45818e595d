//! The audit: real checkpoints by name or path, and, as arrays, the replacements that they are audited with.
//!
//! Arrays are of single precision, as checkpoints are run. A query comes with its scale: scores are scale·⟨query, key⟩.

mod cache;
mod checkpoint;
mod context;
mod replacing;
