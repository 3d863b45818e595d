//! Conducting runs: what every door does around a run, so that the command line and Python do and say the same.
//!
//! A door decides how units are computed and what is printed; here are the names of runs, reports and figures, and the errors.
//! Files are touched through `esscher-lab`.

#[cfg(feature = "audit")]
mod audit;
mod error;
mod publish;
mod request;

#[cfg(feature = "audit")]
pub use audit::{
    AssignmentFound, Audit, AuditFound, AuditRequest, Counts, Criterion, Estimated, Role, Running, audit,
};
pub use error::{Error, kind_of_failure};
pub use publish::publish;
pub use request::{REPRODUCTIONS, name_of_file, name_of_text, read_file, schema, share, unknown};

/// Ends and removes what a program that ends now would leave behind: clients that are fetching, files that are being written.
pub fn abandon() {
    #[cfg(feature = "audit")]
    esscher_models::abandon_fetch();
    esscher_lab::abandon_writes();
}
