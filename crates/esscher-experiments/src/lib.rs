//! The kinds of experiment, the claims of the paper, and the catalogue: what Esscher can be asked to run.
//!
//! A specification is read into a [`Planned`] experiment, which any runner of `esscher-lab` can run; its kind turns
//! the result into sections of a document. A [`Claim`] is a shipped specification with a statement and a judge. What doors
//! do around a run is in [`conduct`].

mod catalogue;
mod claims;
pub mod conduct;
mod document;
mod kinds;
mod measured;
#[cfg(feature = "audit")]
pub mod models;
mod planned;
pub mod reading;
mod tabulating;

pub use catalogue::{Entry, Group, catalogue};
pub use claims::{Claim, Judgement, Scale, claims};
pub use document::{Judged, claim_document, reproduction_document, run_document};
pub use kinds::{Kind, Plan, kinds};
pub use planned::{Planned, Settings};
