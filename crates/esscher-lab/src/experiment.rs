//! What an experiment is: its specification, its plan of work units, how a unit is run and how units are merged.

use crate::Table;
use esscher_core::Monitor;

/// What an experiment may refuse or fail with: its own error, told to the user as it is.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A piece of work that any machine can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// What the unit computes, for progress lines and messages.
    pub label: String,
    /// Its expected time in seconds on one core, roughly: for estimates of what is left.
    pub cost: f64,
}

/// An experiment that is ready to run.
///
/// # Laws
/// - The plan and the specification depend on nothing but each other: equal specifications, equal plans.
/// - A unit is a pure function of its number and the instruction set; it does not depend on threads, machines or other
///   units, and draws no randomness beyond the seed in the specification.
/// - `merge` is a pure function of the units' tables in the order of their numbers.
pub trait Experiment: Send + Sync {
    /// The normalised specification, from which the same experiment can be built again.
    fn specification(&self) -> &str;

    /// The name of the instruction set that units run with: part of the identity of a result.
    fn instruction_set(&self) -> String;

    /// The units of work, in the order in which results are merged.
    fn units(&self) -> Vec<Unit>;

    /// Runs one unit; nothing if the monitor asked to stop before it was finished.
    ///
    /// # Errors
    /// What the experiment cannot do: told with the unit's label.
    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure>;

    /// The result, from the tables of all units in order.
    ///
    /// # Errors
    /// Tables that are not of this experiment.
    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure>;
}
