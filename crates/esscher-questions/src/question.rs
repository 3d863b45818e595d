//! What a question is: it reads its keys, plans units, runs them, merges them and describes the result.
//!
//! Add a question: a folder beside this file with `question!` in its `mod.rs`, with its `mod` and its line in `questions()`.

// What every `compute.rs` needs.
pub(crate) use esscher_core::Monitor;
pub(crate) use esscher_lab::specification::{Mistake, Section};
pub(crate) use esscher_lab::{Failure, Unit};

use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::schema_of;
use esscher_lab::{Record, Table};
use serde_json::{Value, json};
use std::any::Any;

/// A question that can be asked.
pub struct Question {
    /// As specifications name it.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What it measures, one sentence.
    pub summary: &'static str,
    /// A specification that runs within seconds: documentation, tests and the seed of fuzzing.
    pub example: &'static str,
    /// Its keys with their schemas and whether they must be given.
    pub properties: fn() -> Vec<(String, Value, bool)>,
    /// Reads its keys (`kind`, `title` and `seed` are read already).
    #[allow(clippy::type_complexity)] // a name for this type would say less than the type
    pub read: fn(&mut Section, seed: u64, InstructionSet) -> Result<Box<dyn Plan>, Mistake>,
}

impl Question {
    /// The JSON Schema of its specifications.
    pub fn schema(&self) -> Value {
        let common = [
            ("kind", json!({ "const": self.name, "description": self.summary }), true),
            (
                "$schema",
                json!({ "type": "string", "description": "For editors: where this schema is" }),
                false,
            ),
            ("title", json!({ "type": "string", "description": "The heading of its report" }), false),
            (
                "seed",
                json!({ "type": "integer", "minimum": 0, "description": "The seed of its random numbers" }),
                false,
            ),
        ];
        let common = common.map(|(key, schema, required)| (key.to_string(), schema, required));
        schema_of(common.into_iter().chain((self.properties)()).collect())
    }
}

/// What is decided outside the keys of a question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) seed: u64,
    pub(crate) instruction_set: InstructionSet,
}

/// The `QUESTION` of a folder: its `ask::Ask` has the keys, and its `compute::plan` plans what they ask for.
macro_rules! question {
    (name: $name:literal, title: $title:literal, summary: $summary:literal, example: $example:literal,) => {
        pub(crate) const QUESTION: $crate::Question = $crate::Question {
            name: $name,
            title: $title,
            summary: $summary,
            example: $example,
            properties: <ask::Ask as esscher_lab::specification::Keys>::properties,
            read: |section, seed, instruction_set| {
                let ask = <ask::Ask as esscher_lab::specification::Keys>::read(section)?;
                let given = $crate::question::Given { seed, instruction_set };
                Ok(Box::new(compute::plan(ask, section, given)?))
            },
        };
    };
}
pub(crate) use question;

/// What a question makes of a specification. The laws are those of [`Experiment`](esscher_lab::Experiment).
pub trait Plan: Any + Send + Sync {
    /// The plan of work.
    fn units(&self) -> Vec<Unit>;

    /// How many units there are: asked before they are listed.
    fn unit_count(&self) -> usize {
        self.units().len()
    }

    /// Runs one unit; nothing if the monitor asked to stop, an error if the mathematics refuses.
    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure>;

    /// The result from the units' tables in order; an error if they are of another experiment.
    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure>;

    /// The result as sections of a document: what was measured, tables, figures.
    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure>;

    /// What it waits for if it was read from its keys alone and needs files.
    fn awaits(&self) -> Option<&Awaiting> {
        None
    }
}

/// Stands for a plan that needs a checkpoint or dumps, as long as only its keys are read: there is no work yet.
pub struct Awaiting {
    /// The checkpoint's name or path, if it is one.
    pub(crate) model: Option<String>,
}

impl Awaiting {
    const REASON: &'static str = "only the keys are read: plan it with the sources of its files";
}

impl Plan for Awaiting {
    fn units(&self) -> Vec<Unit> {
        Vec::new()
    }

    fn run_unit(&self, _unit: usize, _monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        Err(Self::REASON.into())
    }

    fn merge(&self, _units: Vec<Table>) -> Result<Table, Failure> {
        Err(Self::REASON.into())
    }

    fn sections(&self, _result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        Err(Self::REASON.into())
    }

    fn awaits(&self) -> Option<&Awaiting> {
        Some(self)
    }
}

/// What a question computes, with its answer as typed rows; tables are written and read here, once.
pub trait Compute: Send + Sync + 'static {
    /// A row of the answer.
    type Row: Record + Send;

    /// As [`Plan::units`].
    fn units(&self) -> Vec<Unit>;

    /// As [`Plan::unit_count`].
    fn unit_count(&self) -> usize {
        self.units().len()
    }

    /// As [`Plan::run_unit`], of a unit that there is.
    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Self::Row>>, Failure>;

    /// The answer from the units' rows in order: all of them, unless the question has more to say.
    fn merge(&self, units: Vec<Vec<Self::Row>>) -> Result<Vec<Self::Row>, Failure> {
        Ok(units.into_iter().flatten().collect())
    }

    /// As [`Plan::sections`].
    fn describe(&self, rows: &[Self::Row]) -> Result<Vec<esscher_report::Section>, Failure>;
}

impl<C: Compute> Plan for C {
    fn units(&self) -> Vec<Unit> {
        Compute::units(self)
    }

    fn unit_count(&self) -> usize {
        Compute::unit_count(self)
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        if unit >= self.unit_count() {
            return Err(format!("there is no unit {unit}").into());
        }
        let rows = Compute::run_unit(self, unit, monitor)?;
        Ok(rows.map(|rows| Table::of(&rows)).transpose()?)
    }

    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        if units.is_empty() {
            return Err("there are no units to merge".into());
        }
        let rows = units.iter().map(Table::read).collect::<Result<_, _>>()?;
        Ok(Table::of(&Compute::merge(self, rows)?)?)
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        self.describe(&result.read()?)
    }
}
