//! Which heads of a real checkpoint are already in the large-prompt regime, and what may replace them.
//!
//! In reading order: [`checkpoint`] turns bytes into named tensors, [`vocabulary`] text into tokens; [`model`] runs them and lets
//! anything compute the attention of its layers; [`head`] is what one head saw of one text; [`replacement`] answers a head's
//! queries from a small measure, [`eviction`] from fewer tokens; [`texts`] are there to try it on.
//!
//! The crate reads bytes that it is handed and touches no file.

pub mod checkpoint;
pub mod error;
pub mod eviction;
pub mod head;
pub mod model;
pub mod replacement;
pub mod texts;
pub mod vocabulary;
pub mod weights;

pub use error::Error;
