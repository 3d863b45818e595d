//! Every question that can be asked: a folder each, with what is asked, how it is computed, what the answer is and how it
//! is described.
//!
//! A specification is read into a [`Planned`] experiment, which any runner of `esscher-lab` can run; its question turns the
//! result into sections of a document. What doors do around a run is in [`conduct`].

pub mod asking;
mod commented;
pub mod conduct;
mod counted;
mod document;
pub mod drawing;
pub mod measured;
mod planned;
mod question;
mod rounding;
mod seeds;
mod sources;
pub mod tabulating;

pub use commented::commented;
pub use document::{program, provenance_lines, run_document};
pub use planned::{Asked, Planned, RENAMED, Settings};
pub use question::{Awaiting, Plan, Question};
pub use sources::{Download, Sources};

pub mod attend;
#[cfg(feature = "audit")]
pub mod audit;
#[cfg(feature = "audit")]
pub mod audit_heads;
#[cfg(feature = "audit")]
pub mod audit_model;
pub mod authors;
pub mod concentration;
pub mod horizon;
#[cfg(feature = "zoo")]
pub mod large_prompts;
pub mod layers;
pub mod linearity;
pub mod path;
#[cfg(feature = "training")]
pub mod recall;
pub mod training;
pub mod training_horizon;

/// All questions, in the order of the guide.
pub fn questions() -> &'static [Question] {
    &[
        attend::QUESTION,
        horizon::QUESTION,
        linearity::QUESTION,
        path::QUESTION,
        concentration::QUESTION,
        training::QUESTION,
        training_horizon::QUESTION,
        authors::QUESTION,
        layers::QUESTION,
        #[cfg(feature = "zoo")]
        large_prompts::QUESTION,
        #[cfg(feature = "training")]
        recall::QUESTION,
        #[cfg(feature = "audit")]
        audit_heads::QUESTION,
        #[cfg(feature = "audit")]
        audit_model::QUESTION,
    ]
}
