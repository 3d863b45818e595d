//! Conducting runs: what every door does around a run, so that the command line and Python do and say the same.
//!
//! A door decides how units are computed and what is printed; here are the names of runs, reports and figures, merging,
//! reproducing the claims, and the errors. Files are touched through `esscher-lab`.

#[cfg(feature = "audit")]
mod audit;
mod error;
mod publish;
mod reproduce;
mod request;
mod runs;

#[cfg(feature = "audit")]
pub use audit::{AssignmentFound, Audit, AuditFound, AuditRequest, Counts, Criterion, Estimated, audit};
pub use error::Error;
pub use publish::{Described, Finding, describe, publish};
pub use reproduce::{Reproduction, Request, reproduce, verdict_word};
#[cfg(feature = "audit")]
pub(crate) use request::unknown;
pub use request::{chosen_claims, entries, example, name_of_file, name_of_text, read_file, share};
pub use runs::{merge, read_run, report};
