//! Checkpoints: the list of those with a name, and the audit of any.

use crate::prelude::*;
use crate::runs::{Watching, origin, settings};
use esscher_lab::{RunFolder, Share};
use esscher_questions::conduct::{self, AssignmentFound, AuditRequest, Criterion};
use esscher_questions::{Planned, Sources};
use pyo3::types::PyString;
use std::path::PathBuf;

export!(fn audit_models, audit_model);

/// The checkpoints that have a name: name, summary, and what else is known of each.
#[pyfunction]
fn audit_models(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let entries = esscher_claims::entries(Some("models")).or_raise()?;
    let row = |entry: &esscher_claims::Entry| {
        let row = dictionary!(py; entry => name, summary);
        entry.details.iter().try_for_each(|(name, value)| row.set_item(name, value))?;
        Ok(row)
    };
    entries.iter().map(row).collect()
}

/// Audits a checkpoint, or dumps of one model; what was found, and the files that hold the rest.
///
/// `told` is called with a sentence before what takes long beside the runs: a download.
#[pyfunction]
fn audit_model<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let tolerance = asked.real("tolerance")?;
    if tolerance.is_nan() {
        return Err(PyValueError::new_err("tolerance is NaN: expected a relative error, such as 0.05"));
    }
    let heads_only = asked.flag("heads_only")?;
    let seed = asked.maybe("seed", |asked, _| asked.seed())?;
    let request = AuditRequest {
        models: some("model", asked.get("model")?, path)?,
        text: asked.given("text")?.map(|text| path("text", &text)).transpose()?,
        test: asked.given("test")?.map(|test| path("test", &test)).transpose()?,
        lengths: asked.given("lengths")?.map_or(Ok(Vec::new()), |given| some("lengths", given, whole))?,
        tolerance,
        criterion: asked.choice("criterion", &Criterion::ALL.map(|one| (one.name(), one)))?,
        candidates: asked
            .given("candidates")?
            .map_or(Ok(Vec::new()), |given| some("candidates", given, text))?,
        texts: asked.given("texts")?.map(|texts| whole("texts", &texts)).transpose()?,
        heads_only,
        out: asked.get("out")?.extract()?,
        settings: settings(seed, None)?,
    };
    let told = asked.given("told")?.map(Bound::unbind);
    let sources = Sources::of_user(move |what| tell(told.as_ref(), what));
    // The model is run as often as its heads are looked at, about.
    let parts = if heads_only { 1.0 } else { 2.0 };
    let audit = asked
        .watched(|watch| {
            let mut before = 0.0;
            let run = |_: &str, planned: &Planned, folder: &RunFolder| {
                let watcher = Watching::new(watch, before / parts, 1.0 / parts);
                before += 1.0;
                Ok(esscher_lab::run(planned, folder, Share::WHOLE, &origin("Python"), &watcher)?)
            };
            conduct::audit::<conduct::Error>(&request, run, &sources)
        })?
        .or_raise()?;
    // Asked to stop, the call has raised already.
    let stopped =
        || PyRuntimeError::new_err("stopped before it was finished; the same call goes on from here");
    let found = audit.found.ok_or_else(stopped)?;
    let rows = found.assignments.iter().map(|one| assignment(py, one)).collect::<PyResult<Vec<_>>>()?;
    Ok(dictionary!(py, folder: audit.folder, assignments: rows, running: found.running.name();
        found => model, sizes, length, texts, tolerance, measured, advice, report, verdicts,
                 full_attention_heads))
}

/// One thing, or a list of them that is not empty.
fn some<'py, T>(
    what: &'static str,
    given: Any<'py>,
    read: fn(&'static str, &Any<'py>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    if given.is_instance_of::<PyString>() || given.len().is_err() {
        return Ok(vec![read(what, &given)?]);
    }
    let several = numbers::list(what, &given, |one| read(what, one))?;
    if several.is_empty() {
        return Err(PyValueError::new_err(format!(
            "{what} is empty: expected one at least, or leave it out"
        )));
    }
    Ok(several)
}

fn whole(what: &'static str, value: &Any<'_>) -> PyResult<u64> {
    numbers::whole(what, value, 0..=i64::MAX as u64)
}

fn text(what: &'static str, value: &Any<'_>) -> PyResult<String> {
    value.extract().map_err(|_| numbers::wrong_type(what, "a text", value))
}

/// A name or a path.
fn path(what: &'static str, value: &Any<'_>) -> PyResult<String> {
    let read = value.extract::<PathBuf>().ok().and_then(|path| path.into_os_string().into_string().ok());
    match read {
        Some(path) if path.is_empty() => {
            Err(PyValueError::new_err(format!("{what} is empty: expected a name or a path")))
        }
        Some(path) => Ok(path),
        None => Err(numbers::wrong_type(what, "a name or a path", value)),
    }
}

/// Says what takes long. That it could not be said stops nothing.
fn tell(told: Option<&Py<PyAny>>, what: &str) {
    if let Some(told) = told {
        Python::attach(|py| {
            if let Err(raised) = told.call1(py, (what,)) {
                raised.write_unraisable(py, None);
            }
        });
    }
}

fn assignment<'py>(py: Python<'py>, found: &AssignmentFound) -> PyResult<Bound<'py, PyDict>> {
    Ok(dictionary!(py,
        name: found.role.to_string(),
        running: found.running.name(),
        cache_bytes: found.cache_bytes.1,
        cache_bytes_at_context: found.cache_bytes_at_context.1,
        loss: found.loss.mean,
        difference: found.difference.mean,
        standard_error: found.difference.standard_error.unwrap_or(f64::NAN),
        retrieval: found.retrieval.map_or(f64::NAN, |retrieval| retrieval.mean);
        found => heads, key_value_heads, cache_share, cache_share_at_context))
}
