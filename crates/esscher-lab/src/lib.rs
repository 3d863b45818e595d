//! Runs that survive anything: specification → plan of work units → units run anywhere → merged result.
//!
//! Knows no kind of experiment. An [`Experiment`] says what its units are and how they merge; a [`RunFolder`] keeps
//! what was done, so that a run killed at any moment goes on where it was, and shards from several machines become the
//! bytes of a single run.
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unreachable)
)]

mod account;
mod error;
mod experiment;
mod files;
mod folder;
mod kind;
mod merge;
mod named;
mod provenance;
mod run;
mod session;
mod shard;
pub mod specification;
mod table;

pub use account::Account;
pub use error::{Error, Result, SettingNames, system_reason};
pub use experiment::{Experiment, Failure, Unit};
pub use files::{
    Exclusive, Replace, TemporaryFolder, abandon_writes, digest as sha256, file_sha256, list as list_files,
    open_file, place_file, read_file, read_specification, write_file,
};
pub use folder::{FinishedRun, RunFolder, RunsFolder, read_finished, specification_of};
pub use kind::ErrorKind;
pub use merge::merge;
pub use named::Named;
pub use provenance::{Origin, Provenance, WorkSession};
pub use run::{Watcher, run};
pub use session::{Beginning, Outcome, Session, Share};
pub use shard::{compute_shard, run_of_shard, specification_sha256};
pub use table::{Column, Field, Record, Row, Scalar, Table, TableError, Value};

// For the code that `keys!` makes.
#[doc(hidden)]
pub use serde_json;
