//! Softmax attention and its linear relatives: one interface, three forms that agree.
//!
//! Every mechanism is a folder with the same files: `reference` transcribes the definition, `recurrent` is the state with
//! its step, `chunked` the fast form with its hand-written backward pass. [`mechanism`] says what they have in common,
//! [`agreement`] is the law that all of them are held to, [`batch`] runs them over heads and packed or padded sequences.

pub mod agreement;
pub mod batch;
pub mod catalogue;
pub mod delta_rule;
pub mod diagnostics;
pub mod dynamical_system;
mod error;
pub mod feature_maps;
pub mod gated_linear_attention;
pub mod inline;
pub mod kernels;
pub mod large_prompt;
pub mod linear_attention;
pub mod luna;
pub mod mechanism;
pub mod metala;
pub mod mlstm;
pub mod normalized_attention;
mod number;
pub mod quasi_lstm;
pub mod rg_lru;
pub mod s4;
pub mod s6;
pub mod selective_rope;
pub mod softmax;
pub mod ssd;
pub mod swax;
pub mod tasks;
pub mod traced;
#[cfg(feature = "training")]
pub mod training;

pub use error::{Error, Result};
pub use number::{Number, Real};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/own-mechanism.md")]
struct OwnMechanismExamples;
