//! Which heads of a real checkpoint are already in the large-prompt regime, and what may replace them.
//!
//! In reading order: [`checkpoint`] turns bytes into named tensors, [`vocabulary`] text into tokens; [`model`] runs them and lets
//! anything compute the attention of its layers; [`head`] is what one head saw of one text; [`replacement`] answers a head's
//! queries from a small measure, [`eviction`] from fewer tokens. A [`candidate`] is one of these; [`readers`] and the
//! [`calibration`] of a model are what they may know in advance, [`answer`] asks one of them.
//!
//! Then the questions: [`portrait`] and [`discrepancy`] look at one head, [`examination`] at all heads on a text, [`dossier`] and
//! [`verdict`] decide over texts, an [`assignment`] says who replaces whom, its [`role`] what for, [`controls`] what it is compared with; [`replaced`] runs the model so, [`likelihood`] and [`needle`]
//! say what it costs, [`decoding`] does it in constant memory, [`continuation`] lets the model write on; [`texts`] are
//! there to try it on.
//!
//! The crate reads bytes that it is handed and touches no file.

pub mod answer;
pub mod assignment;
pub mod calibration;
pub mod candidate;
pub mod checkpoint;
pub mod continuation;
pub mod controls;
pub mod decoding;
pub mod discrepancy;
pub mod dossier;
pub mod error;
pub mod eviction;
pub mod examination;
pub mod head;
pub mod layer;
pub mod likelihood;
pub mod model;
mod names;
pub mod needle;
pub mod portrait;
pub mod readers;
pub mod replaced;
pub mod replacement;
pub mod role;
pub mod segment;
pub mod texts;
pub mod verdict;
pub mod vocabulary;
pub mod weights;

pub use error::Error;
