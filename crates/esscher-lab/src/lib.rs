//! Runs that survive anything: specification → plan of work units → units run anywhere → merged result.
//!
//! Knows no kind of experiment. An [`Experiment`] says what its units are and how they merge; a [`RunFolder`] keeps
//! what was done, so that a run killed at any moment goes on where it was, and shards from several machines become the
//! bytes of a single run.

mod experiment;
pub mod specification;
mod table;

pub use experiment::{Experiment, Failure, Unit};
pub use table::{Column, Row, Table, TableError, Value};
