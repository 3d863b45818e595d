//! Runs: planned, computed here or by another engine, merged, read, reported on; the claims; the catalogue.

use crate::arrays::Any;
use crate::failure::OrRaise;
use crate::threads;
use crate::watch::{Watch, watched};
use esscher_claims::{self as claims, Finding, Scale, verdict_word};
use esscher_core::numerics::InstructionSet;
use esscher_lab::{
    Account, Beginning, Column, Experiment, Origin, Outcome, RunFolder, Session, Share, Table, Unit, Value,
    Watcher, compute_shard,
};
use esscher_questions::conduct;
use esscher_questions::{Asked, Planned, Settings, Sources};
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

export!(fn plan, run, compute_unit, instruction_sets, merge_shards, read_run, write_report, reproduce, catalogue, example);

/// The plan of a specification: its normal form, what it is, the name of its run, and its units as (label, cost).
#[pyfunction]
#[pyo3(signature = (file, text, *, seed, instruction_set))]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    file: Option<PathBuf>,
    text: Option<&str>,
    seed: Option<u64>,
    instruction_set: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted = asked(file.as_deref(), text, settings(seed, instruction_set)?)?;
    // A plan fetches nothing.
    if let Some(download) = wanted.download(&sources()).or_raise()? {
        return Err(PyRuntimeError::new_err(download.to_string()));
    }
    let wanted = Wanted::of(file.as_deref(), wanted)?;
    let planned = &wanted.planned;
    let units: Vec<(String, f64)> = planned.units().into_iter().map(|unit| (unit.label, unit.cost)).collect();
    let plan = PyDict::new(py);
    plan.set_item("specification", planned.specification())?;
    plan.set_item("title", planned.title())?;
    plan.set_item("kind", planned.question().name)?;
    plan.set_item("seed", planned.seed())?;
    plan.set_item("instruction_set", planned.instruction_set())?;
    plan.set_item("name", wanted.name)?;
    plan.set_item("units", units)?;
    Ok(plan)
}

/// Runs a specification, or one share of it, in its folder, which is returned.
///
/// `engine` computes units elsewhere: called with the missing units as (number, label, cost), the costliest first, it
/// returns an iterator over (where the bytes come from, the bytes that `compute_unit` made), in any order.
#[pyfunction]
#[pyo3(signature = (file, text, *, out, name, share, seed, instruction_set, engine, threads, progress))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn run(
    py: Python<'_>,
    file: Option<PathBuf>,
    text: Option<&str>,
    out: PathBuf,
    name: Option<String>,
    share: Option<&str>,
    seed: Option<u64>,
    instruction_set: Option<&str>,
    engine: Option<Any<'_>>,
    threads: usize,
    progress: Option<Any<'_>>,
) -> PyResult<PathBuf> {
    let (share, ending) = match share {
        Some(share) => conduct::share(share).or_raise()?,
        None => (Share::WHOLE, String::new()),
    };
    let wanted = Wanted::read(file.as_deref(), text, seed, instruction_set)?;
    let planned = &wanted.planned;
    let folder = RunFolder::open(&out.join(name.unwrap_or(wanted.name) + &ending), planned).or_raise()?;
    let outcome = match engine {
        None => watched(py, progress.as_ref(), |watch| {
            let watcher = Watching::new(watch, 0.0, 1.0);
            esscher_lab::run(planned, &folder, share, &origin("Python"), &watcher)
        })?
        .or_raise()?,
        Some(engine) => elsewhere(py, planned, &folder, share, &engine, threads, progress.as_ref())?,
    };
    match outcome {
        Outcome::Finished { result, provenance, .. } => threads::detached(py, || {
            threads::on_all(|| {
                let described = claims::describe(planned, &result, &provenance)?;
                conduct::publish(&folder, &described.document)
            })
            .or_raise()
        })?,
        Outcome::ShareDone { .. } => {}
        // Asked to stop, the call has raised already: this is an engine that gave up without saying why.
        Outcome::Stopped { done, total } => {
            return Err(PyRuntimeError::new_err(format!(
                "stopped with {done} of {total} units done; the same call goes on from here"
            )));
        }
    }
    Ok(folder.path().to_path_buf())
}

/// Has units computed by another engine and keeps each as it arrives.
fn elsewhere(
    py: Python<'_>,
    planned: &Planned,
    folder: &RunFolder,
    share: Share,
    engine: &Any<'_>,
    threads: usize,
    progress: Option<&Any<'_>>,
) -> PyResult<Outcome> {
    let origin = origin("Ray");
    let begun =
        threads::detached(py, || Session::begin(planned, folder, share, &origin, threads)).or_raise()?;
    let session = match begun {
        Beginning::Finished(outcome) => return Ok(outcome),
        Beginning::Pending(session) => session,
    };
    match keep_all(py, &session, engine, progress) {
        Ok(()) => threads::detached(py, || session.conclude()).or_raise(),
        Err(exception) => {
            threads::detached(py, || session.abandon());
            Err(exception)
        }
    }
}

fn keep_all(
    py: Python<'_>,
    session: &Session<'_>,
    engine: &Any<'_>,
    progress: Option<&Any<'_>>,
) -> PyResult<()> {
    let plan = session.plan();
    let mut account = Account::new(&plan);
    let units = session.experiment().units();
    let pending: Vec<(usize, String, f64)> = session
        .pending()
        .into_iter()
        .map(|unit| (unit, units[unit].label.clone(), units[unit].cost))
        .collect();
    if pending.is_empty() {
        return Ok(());
    }
    let answers = engine.call1((pending,))?.try_iter()?;
    let mut keep = |answer: Any<'_>| -> PyResult<()> {
        let (source, bytes): (PathBuf, Vec<u8>) = answer.extract()?;
        account.finish(threads::detached(py, || session.accept(&source, &bytes)).or_raise()?);
        if let Some(progress) = progress {
            progress.call1((account.fraction(),))?;
        }
        Ok(())
    };
    let iterator = answers.clone();
    for answer in answers {
        if let Err(exception) = answer.and_then(&mut keep) {
            // A generator ends its tasks when it is closed; one that raised is closed already.
            let _ = iterator.call_method0("close");
            return Err(exception);
        }
    }
    Ok(())
}

/// Computes one unit of a normalised specification on one thread: the bytes of its shard.
#[pyfunction]
pub(crate) fn compute_unit<'py>(
    py: Python<'py>,
    specification: &str,
    unit: usize,
    instruction_set: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let wanted = Wanted::read(None, Some(specification), None, Some(instruction_set))?;
    let one_thread = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let shard =
        watched(py, None, |watch| one_thread.install(|| compute_shard(&wanted.planned, unit, watch)))?;
    match shard.or_raise()? {
        Some(bytes) => Ok(PyBytes::new(py, &bytes)),
        None => Err(PyRuntimeError::new_err("the unit was stopped before it was finished")),
    }
}

/// The instruction sets that this machine has, the best last.
#[pyfunction]
pub(crate) fn instruction_sets() -> Vec<String> {
    InstructionSet::available().iter().map(ToString::to_string).collect()
}

/// Merges shards into one run and publishes it; its folder.
#[pyfunction]
pub(crate) fn merge_shards(py: Python<'_>, folders: Vec<PathBuf>, out: Option<PathBuf>) -> PyResult<PathBuf> {
    let settings = Settings::default();
    threads::detached(py, || {
        threads::on_all(|| claims::merge(&folders, out, settings, &sources(), &origin("Python")))
    })
    .or_raise()
}

/// A finished run: its specification, history and result, and how its claim fared if it measures one.
#[pyfunction]
pub(crate) fn read_run<'py>(py: Python<'py>, folder: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let read = threads::detached(py, || claims::read_run(&folder, Settings::default(), &sources()));
    let (planned, finished, described) = read.or_raise()?;
    let provenance = serde_json::to_string(&finished.provenance)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let run = PyDict::new(py);
    run.set_item("specification", finished.specification)?;
    run.set_item("title", planned.title())?;
    run.set_item("kind", planned.question().name)?;
    run.set_item("seed", planned.seed())?;
    run.set_item("provenance", provenance)?;
    run.set_item("result", columns(py, &finished.result)?)?;
    run.set_item("finding", described.finding.map(|found| finding(py, &found)).transpose()?)?;
    Ok(run)
}

/// Writes the report of a run again, or the comparison of several; the file.
#[pyfunction]
pub(crate) fn write_report(py: Python<'_>, runs: Vec<PathBuf>, out: Option<PathBuf>) -> PyResult<PathBuf> {
    threads::detached(py, || {
        threads::on_all(|| claims::report(&runs, out.as_deref(), Settings::default(), &sources()))
    })
    .or_raise()
}

/// Measures claims of the paper: the report, and what was found of each.
#[pyfunction]
#[pyo3(signature = (*, only, full, out, seed, instruction_set, progress))]
pub(crate) fn reproduce<'py>(
    py: Python<'py>,
    only: Vec<String>,
    full: bool,
    out: PathBuf,
    seed: Option<u64>,
    instruction_set: Option<&str>,
    progress: Option<Any<'py>>,
) -> PyResult<(Option<PathBuf>, Vec<Bound<'py, PyDict>>)> {
    let request = claims::Request {
        scale: if full { Scale::Full } else { Scale::Quick },
        settings: settings(seed, instruction_set)?,
        only,
        out,
    };
    let count = claims::chosen_claims(&request.only).or_raise()?.len() as f64;
    let reproduction = watched(py, progress.as_ref(), |watch| {
        let mut before = 0.0;
        let run = |_: &str, planned: &Planned, folder: &RunFolder| {
            let watcher = Watching::new(watch, before / count, 1.0 / count);
            before += 1.0;
            Ok(esscher_lab::run(planned, folder, Share::WHOLE, &origin("Python"), &watcher)?)
        };
        claims::reproduce::<conduct::Error>(&request, run, |_| Ok(()))
    })?
    .or_raise()?;
    let findings = reproduction.findings.iter().map(|found| finding(py, found)).collect::<PyResult<_>>()?;
    Ok((reproduction.report, findings))
}

/// What there is, as columns: group, name, summary.
#[pyfunction]
#[pyo3(signature = (group))]
pub(crate) fn catalogue<'py>(py: Python<'py>, group: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let entries = claims::entries(group).or_raise()?;
    let columns = PyDict::new(py);
    columns.set_item("group", entries.iter().map(|entry| entry.group.name()).collect::<Vec<_>>())?;
    columns.set_item("name", entries.iter().map(|entry| entry.name).collect::<Vec<_>>())?;
    columns.set_item("summary", entries.iter().map(|entry| entry.summary).collect::<Vec<_>>())?;
    Ok(columns)
}

/// A specification to start from, of a kind or a claim.
#[pyfunction]
pub(crate) fn example(name: &str) -> PyResult<String> {
    claims::example(name).or_raise()
}

/// An experiment that was asked for, and the name of its run.
struct Wanted {
    planned: Planned,
    name: String,
}

impl Wanted {
    /// Reads and plans a file or a text.
    fn read(
        file: Option<&Path>,
        text: Option<&str>,
        seed: Option<u64>,
        instruction_set: Option<&str>,
    ) -> PyResult<Self> {
        Self::of(file, asked(file, text, settings(seed, instruction_set)?)?)
    }

    fn of(file: Option<&Path>, asked: Asked) -> PyResult<Self> {
        let planned = asked.plan(&sources()).map_err(conduct::Error::from).or_raise()?;
        let name = match file {
            Some(file) => conduct::name_of_file(file).or_raise()?,
            None => conduct::name_of_text(&planned),
        };
        Ok(Wanted { planned, name })
    }
}

/// Reads a file, or a text that mistakes are reported in as `specification`; no other file is touched.
fn asked(file: Option<&Path>, text: Option<&str>, settings: Settings) -> PyResult<Asked> {
    match file {
        Some(file) => conduct::read_file(file, settings),
        None => {
            Asked::read("specification", text.unwrap_or_default(), settings).map_err(conduct::Error::from)
        }
    }
    .or_raise()
}

/// The user's models, fetched in silence.
pub(crate) fn sources() -> Sources {
    Sources::of_user(|_| {})
}

pub(crate) fn settings(seed: Option<u64>, instruction_set: Option<&str>) -> PyResult<Settings> {
    let instruction_set = match instruction_set {
        Some(name) => InstructionSet::named(name)
            .map_err(|error| PyValueError::new_err(format!("instruction_set: {error}")))?,
        None => InstructionSet::best(),
    };
    Ok(Settings { seed, instruction_set })
}

/// What this module is; `door` says through which it was entered.
pub(crate) fn origin(door: &str) -> Origin {
    let commit = env!("ESSCHER_COMMIT");
    Origin {
        program: format!("esscher ({door})"),
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: (!commit.is_empty()).then(|| commit.to_string()),
    }
}

/// A run's watcher that reports to a watch the part done, scaled into a larger piece of work.
pub(crate) struct Watching<'a> {
    watch: &'a Watch,
    account: Mutex<Account>,
    before: f64,
    share: f64,
}

impl<'a> Watching<'a> {
    pub(crate) fn new(watch: &'a Watch, before: f64, share: f64) -> Self {
        Watching { watch, account: Mutex::default(), before, share }
    }

    fn change(&self, change: impl FnOnce(&mut Account)) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut account);
        self.watch.report(self.before + self.share * account.fraction());
    }
}

impl Watcher for Watching<'_> {
    fn plan(&self, units: &[(usize, Unit, bool)]) {
        self.change(|account| *account = Account::new(units));
    }

    fn part(&self, unit: usize, fraction: f64) {
        self.change(|account| account.advance(unit, fraction));
    }

    fn finished(&self, unit: usize) {
        self.change(|account| account.finish(unit));
    }

    fn should_stop(&self) -> bool {
        esscher_core::Monitor::should_stop(self.watch)
    }
}

/// How a claim fared, as Python reads it.
fn finding<'py>(py: Python<'py>, found: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    dictionary.set_item("claim", found.claim.name)?;
    dictionary.set_item("title", found.claim.title)?;
    dictionary.set_item("statement", found.claim.statement)?;
    dictionary.set_item("verdict", verdict_word(found.verdict))?;
    dictionary.set_item("reason", &found.reason)?;
    dictionary.set_item("folder", found.folder.as_ref())?;
    Ok(dictionary)
}

/// The columns of a table: arrays of numbers, lists of texts; missing numbers are NaN, missing texts None.
pub(crate) fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, kind) in table.columns() {
        let values: Vec<&Value> = table
            .rows()
            .map(|row| row.value(name))
            .collect::<Result<_, _>>()
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let whole = values.iter().map(|value| match value {
            Value::Integer(integer) => Some(*integer),
            _ => None,
        });
        let column = match kind {
            Column::Text => {
                let texts = values.iter().map(|value| match value {
                    Value::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                PyList::new(py, texts)?.into_any()
            }
            Column::Integer => match whole.collect::<Option<Vec<i64>>>() {
                Some(integers) => PyArray1::from_vec(py, integers).into_any(),
                None => reals(py, &values),
            },
            Column::Real => reals(py, &values),
        };
        columns.set_item(name, column)?;
    }
    Ok(columns)
}

fn reals<'py>(py: Python<'py>, values: &[&Value]) -> Any<'py> {
    let numbers = values.iter().map(|value| match value {
        Value::Real(real) => *real,
        Value::Integer(integer) => *integer as f64,
        _ => f64::NAN,
    });
    PyArray1::from_iter(py, numbers).into_any()
}
