//! Runs: planned, computed here or by another engine, merged, read, reported on; the claims; the catalogue.

use crate::prelude::*;
use crate::watch::{Watch, left_behind, watched};
use esscher_claims::{self as claims, Finding, Scale, verdict_word};
use esscher_core::numerics::InstructionSet;
use esscher_lab::{
    Account, Beginning, Column, Experiment, Origin, Outcome, RunFolder, Session, Share, Table, Unit, Value,
    Watcher, compute_shard,
};
use esscher_questions::conduct;
use esscher_questions::{Planned, Settings, Sources};
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

export!(fn plan, run, compute_unit, instruction_sets, merge_shards, read_run, write_report, reproduce, catalogue, example);

/// The plan of a specification: its normal form, what it is, the name of its run, and its units as (label, cost).
#[pyfunction]
fn plan<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let specification = Specification::read(&asked)?;
    // A plan fetches nothing.
    if let Some(download) = specification.asked.download(&sources()).or_raise()? {
        return Err(PyRuntimeError::new_err(download.to_string()));
    }
    let (planned, name) = specification.plan(py)?;
    let units: Vec<(String, f64)> = planned.units().into_iter().map(|unit| (unit.label, unit.cost)).collect();
    Ok(dictionary!(py, specification: planned.specification(), title: planned.title(),
        kind: planned.question().name, seed: planned.seed(), instruction_set: planned.instruction_set(),
        name: name, units: units))
}

/// Runs a specification, or one share of it, in its folder, which is returned.
///
/// `engine` computes units elsewhere: called with the missing units as (number, label, cost), the costliest first, it
/// returns an iterator over (where the bytes come from, the bytes that `compute_unit` made), in any order.
#[pyfunction]
fn run(py: Python<'_>, asked: Asked<'_>) -> PyResult<PathBuf> {
    let (share, ending) = match asked.maybe("share", Asked::text)? {
        Some(share) => conduct::share(&share).or_raise()?,
        None => (Share::WHOLE, String::new()),
    };
    let named = asked.maybe("name", Asked::text)?;
    let (planned, usual) = Specification::read(&asked)?.plan(py)?;
    let name = named.unwrap_or(usual) + &ending;
    let out: PathBuf = asked.get("out")?.extract()?;
    let folder = RunFolder::open(&out.join(name), &planned).or_raise()?;
    let outcome = match asked.given("engine")? {
        None => asked
            .watched(|watch| {
                let watcher = Watching::new(watch, 0.0, 1.0);
                esscher_lab::run(&planned, &folder, share, &origin("Python"), &watcher)
            })?
            .or_raise()?,
        Some(engine) => elsewhere(py, &planned, &folder, share, &engine, &asked)?,
    };
    match outcome {
        Outcome::Finished { result, provenance, .. } => threads::detached(py, || {
            let described = claims::describe(&planned, &result, &provenance)?;
            conduct::publish(&folder, &described.document)
        })
        .or_raise()?,
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
    asked: &Asked<'_>,
) -> PyResult<Outcome> {
    let (origin, threads) = (origin("Ray"), asked.count("threads", 1)? as usize);
    let begun =
        threads::detached(py, || Session::begin(planned, folder, share, &origin, threads)).or_raise()?;
    let session = match begun {
        Beginning::Finished(outcome) => return Ok(outcome),
        Beginning::Pending(session) => session,
    };
    match keep_all(py, &session, engine, asked.given("progress")?.as_ref()) {
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
fn compute_unit<'py>(
    py: Python<'py>,
    specification: &str,
    unit: usize,
    instruction_set: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings = settings(None, Some(instruction_set))?;
    let (planned, _) = Specification::of(py, None, specification, settings)?.plan(py)?;
    let one_thread = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let shard = watched(py, None, |watch| one_thread.install(|| compute_shard(&planned, unit, watch)))?;
    match shard.or_raise()? {
        Some(bytes) => Ok(PyBytes::new(py, &bytes)),
        None => Err(PyRuntimeError::new_err("the unit was stopped before it was finished")),
    }
}

/// The instruction sets that this machine has, the best last.
#[pyfunction]
fn instruction_sets() -> Vec<String> {
    InstructionSet::available().iter().map(ToString::to_string).collect()
}

/// Merges shards into one run and publishes it; its folder.
#[pyfunction]
fn merge_shards(py: Python<'_>, folders: Vec<PathBuf>, out: Option<PathBuf>) -> PyResult<PathBuf> {
    threads::detached(py, || claims::merge(&folders, out, Settings::default(), &sources(), &origin("Python")))
        .or_raise()
}

/// A finished run: its specification, history and result, and how its claim fared if it measures one.
#[pyfunction]
fn read_run<'py>(py: Python<'py>, folder: PathBuf) -> PyResult<Bound<'py, PyDict>> {
    let read = left_behind(py, None, move |_| claims::read_run(&folder, Settings::default(), &sources()))?;
    let (planned, finished, described) = read.or_raise()?;
    let provenance = serde_json::to_string(&finished.provenance)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let finding = described.finding.map(|found| finding(py, &found)).transpose()?;
    Ok(dictionary!(py, specification: finished.specification, title: planned.title(),
        kind: planned.question().name, seed: planned.seed(), provenance: provenance,
        result: columns(py, &finished.result)?, finding: finding))
}

/// Writes the report of a run again, or the comparison of several; the file.
#[pyfunction]
fn write_report(
    py: Python<'_>,
    runs: Vec<PathBuf>,
    out: Option<PathBuf>,
    force: &Any<'_>,
) -> PyResult<PathBuf> {
    let force = numbers::truth("force", force)?;
    threads::detached(py, || claims::report(&runs, out.as_deref(), force, Settings::default(), &sources()))
        .or_raise()
}

/// The page on all claims, what was found of each, and the names of those that are left out.
type Reproduced<'py> = (Option<PathBuf>, Vec<Bound<'py, PyDict>>, Vec<&'static str>);

/// Measures claims of the paper: the report, and what was found of each.
#[pyfunction]
fn reproduce<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Reproduced<'py>> {
    let request = claims::Request {
        scale: if asked.flag("full")? { Scale::Full } else { Scale::Quick },
        settings: asked.settings()?,
        only: numbers::list("only", &asked.get("only")?, |name| numbers::text("only", name))?,
        out: asked.get("out")?.extract()?,
    };
    let count = claims::chosen_claims(&request.only).or_raise()?.len() as f64;
    let reproduction = asked.watched(|watch| {
        let mut before = 0.0;
        let run = |_: &str, planned: &Planned, folder: &RunFolder| {
            let watcher = Watching::new(watch, before / count, 1.0 / count);
            before += 1.0;
            Ok(esscher_lab::run(planned, folder, Share::WHOLE, &origin("Python"), &watcher)?)
        };
        claims::reproduce::<conduct::Error>(&request, run, |_| Ok(()))
    })?;
    let reproduction = reproduction.or_raise()?;
    let findings = reproduction.findings.iter().map(|found| finding(py, found)).collect::<PyResult<_>>()?;
    let left_out = reproduction.left_out.iter().map(|claim| claim.name).collect();
    Ok((reproduction.report, findings, left_out))
}

/// What there is, as columns: group, name, summary.
#[pyfunction]
fn catalogue<'py>(py: Python<'py>, group: Option<&Any<'py>>) -> PyResult<Bound<'py, PyDict>> {
    let group = group.map(|group| numbers::text("group", group)).transpose()?;
    let entries = claims::entries(group.as_deref()).or_raise()?;
    Ok(dictionary!(py,
        group: entries.iter().map(|entry| entry.group.name()).collect::<Vec<_>>(),
        name: entries.iter().map(|entry| entry.name).collect::<Vec<_>>(),
        summary: entries.iter().map(|entry| entry.summary).collect::<Vec<_>>()))
}

/// A specification to start from, of a kind or a claim.
#[pyfunction]
fn example(name: &Any<'_>) -> PyResult<String> {
    claims::example(&numbers::text("name", name)?).or_raise()
}

/// A specification that was read, and the file that it stands in.
struct Specification {
    file: Option<PathBuf>,
    asked: esscher_questions::Asked,
}

impl Specification {
    /// `file`, or `text`, with `seed` and `instruction_set`; no other file is touched.
    fn read(asked: &Asked<'_>) -> PyResult<Self> {
        let text = asked.maybe("text", Asked::text)?.unwrap_or_default();
        let file = asked.get("file")?;
        Self::of(file.py(), file.extract()?, &text, asked.settings()?)
    }

    /// Mistakes of a text are reported in `specification`.
    fn of(py: Python<'_>, file: Option<PathBuf>, text: &str, settings: Settings) -> PyResult<Self> {
        let asked = match file.clone() {
            // Files of a network may keep one waiting.
            Some(file) => left_behind(py, None, move |_| conduct::read_file(&file, settings))?,
            None => esscher_questions::Asked::read("specification", text, settings).map_err(Into::into),
        };
        Ok(Specification { asked: asked.or_raise()?, file })
    }

    /// The experiment and the name of its run.
    fn plan(self, py: Python<'_>) -> PyResult<(Planned, String)> {
        let asked = self.asked;
        let planned = left_behind(py, None, move |_| {
            let sources = sources();
            asked.fetch(&sources)?;
            asked.plan(&sources).map_err(conduct::Error::from)
        })?;
        let planned = planned.or_raise()?;
        let name = match self.file {
            Some(file) => conduct::name_of_file(&file).or_raise()?,
            None => conduct::name_of_text(&planned),
        };
        Ok((planned, name))
    }
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
    Ok(dictionary!(py, claim: found.claim.name, title: found.claim.title, statement: found.claim.statement,
        verdict: verdict_word(found.verdict); found => number, meaning, reason, folder))
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
        let is_whole = values.iter().all(|value| matches!(value, Value::Integer(_)));
        let texts = values.iter().map(|value| if let Value::Text(text) = value { Some(text) } else { None });
        let whole =
            values.iter().filter_map(|value| if let Value::Integer(it) = value { Some(*it) } else { None });
        let reals = values.iter().map(|value| match value {
            Value::Real(real) => *real,
            Value::Integer(integer) => *integer as f64,
            _ => f64::NAN,
        });
        match kind {
            Column::Text => columns.set_item(name, texts.collect::<Vec<_>>())?,
            Column::Integer if is_whole => columns.set_item(name, whole.collect::<Array<i64>>())?,
            _ => columns.set_item(name, reals.collect::<Array>())?,
        }
    }
    Ok(columns)
}
