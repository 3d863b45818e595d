//! The kinds of experiment: each reads its keys, plans units, runs them, merges them and describes the result.
//!
//! Add a kind: a file here that implements [`Plan`] and has a `pub(super) const KIND: Kind`, and its line in [`kinds`].

#[cfg(feature = "audit")]
pub(crate) mod audit;
mod authors;
pub(crate) mod columns;
pub(crate) mod concentration;
mod horizon;
#[cfg(feature = "zoo")]
mod large_prompts;
mod layers;
pub(crate) mod linearity;
pub(crate) mod path;
#[cfg(feature = "training")]
mod recall;
mod regression;
mod seeds;
mod valley;

pub(crate) use authors::{
    AuthorsRecord, figure as authors_figure, records as authors_errors, table as authors_table,
};
pub(crate) use horizon::{
    HorizonRecord, figure as horizon_figure, records as horizons, table as horizon_table,
};
pub(crate) use regression::{Record, curves, lines, records as trajectories, time_axis};

use esscher_core::Monitor;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{Mistake, Section};
use esscher_lab::{Failure, Table, Unit};

/// A kind of experiment.
pub struct Kind {
    /// As specifications name it.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What it measures, one sentence.
    pub summary: &'static str,
    /// A specification that runs within seconds: documentation, tests and the seed of fuzzing.
    pub example: &'static str,
    /// Reads the keys of this kind (`kind`, `title` and `seed` are read already).
    #[allow(clippy::type_complexity)] // a name for this type would say less than the type
    pub read: fn(&mut Section, seed: u64, InstructionSet) -> Result<Box<dyn Plan>, Mistake>,
}

/// What a kind makes of a specification. The laws are those of [`Experiment`](esscher_lab::Experiment).
pub trait Plan: Send + Sync {
    /// The plan of work.
    fn units(&self) -> Vec<Unit>;

    /// How many units there are: asked before they are listed.
    fn unit_count(&self) -> usize {
        self.units().len()
    }

    /// Runs one unit; nothing if the monitor asked to stop.
    ///
    /// # Errors
    /// What the mathematics refuses.
    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure>;

    /// The result from the units' tables in order: their rows, unless the kind has more to say.
    ///
    /// # Errors
    /// Tables of another experiment.
    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        let mut units = units.into_iter();
        let mut all = units.next().ok_or("there are no units to merge")?;
        units.try_for_each(|unit| all.append(unit))?;
        Ok(all)
    }

    /// The result as sections of a document: what was measured, tables, figures.
    ///
    /// # Errors
    /// A result of another experiment.
    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure>;
}

/// All kinds, in the order of the guide.
pub fn kinds() -> &'static [Kind] {
    &[
        linearity::KIND,
        path::KIND,
        concentration::KIND,
        regression::KIND,
        horizon::KIND,
        authors::KIND,
        layers::KIND,
        #[cfg(feature = "zoo")]
        large_prompts::KIND,
        #[cfg(feature = "training")]
        recall::KIND,
        #[cfg(feature = "audit")]
        audit::heads::KIND,
        #[cfg(feature = "audit")]
        audit::model::KIND,
    ]
}
