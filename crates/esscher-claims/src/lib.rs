//! What papers claim: a folder for each paper, a file for each claim, judged from answers to questions.
//!
//! A [`Claim`] is a shipped specification with a statement and a judge. The [`catalogue`] lists what there is.

#[macro_use]
mod claim;
mod catalogue;
mod describe;
mod judging;
mod large_prompt_regime;
mod letters;
mod reproduce;
mod request;
mod runs;

pub use catalogue::{Entry, Group, catalogue};
pub use claim::{Claim, Judgement, Scale};
pub use describe::{Described, Finding, describe, left_out_sentence, verdict_word};
pub use large_prompt_regime::claims;
pub use reproduce::{Reproduction, Request, reproduce};
pub use request::{chosen_claims, entries, example};
pub use runs::{merge, read_run, report};
