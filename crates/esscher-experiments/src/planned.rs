//! An experiment read from a specification and ready to run.

use crate::kinds::{Kind, Plan, kinds};
use esscher_core::Monitor;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{self, Mistake};
use esscher_lab::{Experiment, Failure, Table, Unit};
use esscher_report::Section;

/// What is decided outside the file.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Replaces the specification's seed.
    pub seed: Option<u64>,
    /// Instructions of the simulations.
    pub instruction_set: InstructionSet,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { seed: None, instruction_set: InstructionSet::best() }
    }
}

/// Larger plans are split into several runs.
pub(crate) const MOST_UNITS: usize = 100_000;

/// An experiment of some kind with everything that determines it.
pub struct Planned {
    title: String,
    kind: &'static Kind,
    seed: u64,
    normalised: String,
    settings: Settings,
    plan: Box<dyn Plan>,
}

impl Planned {
    /// Reads a specification; `file` is the name that mistakes are reported with.
    ///
    /// ```
    /// use esscher_experiments::{Planned, Settings};
    /// let text = "kind = \"concentration\"\n[tokens]\nfamily = \"gausian\"\ndimension = 2";
    /// let mistake = Planned::read("mine.toml", text, Settings::default()).err().unwrap();
    /// assert_eq!((mistake.line, mistake.hint.as_deref()), (3, Some("did you mean \"gaussian\"?")));
    /// ```
    ///
    /// # Errors
    /// Anything that is not a specification of one of our kinds, with its place.
    pub fn read(file: &str, text: &str, settings: Settings) -> Result<Self, Mistake> {
        let ((title, kind, seed, plan), normalised) = specification::read(file, text, |section| {
            let names: Vec<(&'static str, &'static Kind)> =
                kinds().iter().map(|kind| (kind.name, kind)).collect();
            let kind = section.choice("kind", &names, None)?;
            let title = section.text("title", Some(kind.title))?;
            let seeds = 0..=u64::MAX >> 1;
            let seed = match settings.seed {
                Some(seed) => section.replaced_integer("seed", seeds, seed)?,
                None => section.integer("seed", seeds, Some(0))?,
            };
            let plan = (kind.read)(section, seed, settings.instruction_set)?;
            let units = plan.unit_count();
            if units > MOST_UNITS {
                let message = format!("that makes {units} units of work, at most {MOST_UNITS} are planned");
                return Err(section.mistake("kind", message));
            }
            Ok((title, kind, seed, plan))
        })?;
        Ok(Planned { title, kind, seed, normalised, settings, plan })
    }

    /// The title for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// The seed of its simulations.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What was decided outside the file, the seed included.
    pub(crate) fn settings(&self) -> Settings {
        Settings { seed: Some(self.seed), ..self.settings }
    }

    /// The result as sections of a document.
    ///
    /// # Errors
    /// A table that is not a result of this experiment.
    pub fn sections(&self, result: &Table) -> Result<Vec<Section>, Failure> {
        self.plan.sections(result)
    }
}

impl Experiment for Planned {
    fn specification(&self) -> &str {
        &self.normalised
    }

    fn instruction_set(&self) -> String {
        self.settings.instruction_set.to_string()
    }

    fn units(&self) -> Vec<Unit> {
        self.plan.units()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        self.plan.run_unit(unit, monitor)
    }

    fn merge(&self, units: Vec<Table>) -> Result<Table, Failure> {
        self.plan.merge(units)
    }
}
