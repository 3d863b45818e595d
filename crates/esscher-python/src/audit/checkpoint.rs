//! Checkpoints: the list of those with a name, and the audit of any.

use crate::failure::{self, OrRaise};
use crate::numbers;
use crate::runs::{Watching, origin, settings};
use crate::watch::watched;
use esscher_experiments::Planned;
use esscher_experiments::conduct::{self, AssignmentFound, AuditFound, AuditRequest, Criterion, Estimated};
use esscher_lab::{RunFolder, Share};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Name, summary, and what else is known.
type Listed = (&'static str, &'static str, Vec<(&'static str, String)>);

/// The checkpoints that have a name.
#[pyfunction]
pub(crate) fn audit_models() -> PyResult<Vec<Listed>> {
    let entries = conduct::entries(Some("models")).or_raise()?;
    Ok(entries.into_iter().map(|entry| (entry.name, entry.summary, entry.details)).collect())
}

/// Audits a checkpoint, or dumps of one model; what was found, and the files that hold the rest.
///
/// `told` is called with a sentence before what takes long beside the runs: a download.
#[pyfunction]
#[pyo3(signature = (models, *, text, test, lengths, tolerance, criterion, candidates, texts, heads_only, out, seed, told, progress))]
pub(crate) fn audit_model<'py>(
    py: Python<'py>,
    models: Vec<String>,
    text: Option<String>,
    test: Option<String>,
    lengths: &Bound<'py, PyAny>,
    tolerance: &Bound<'py, PyAny>,
    criterion: &str,
    candidates: Vec<String>,
    texts: Option<&Bound<'py, PyAny>>,
    heads_only: bool,
    out: PathBuf,
    seed: Option<u64>,
    told: Option<Py<PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let whole = |what, value: &Bound<'py, PyAny>| numbers::whole(what, value, 0..=i64::MAX as u64);
    let tolerance = numbers::real("tolerance", tolerance)?;
    if tolerance.is_nan() {
        return Err(PyValueError::new_err("tolerance is NaN: expected a relative error, such as 0.05"));
    }
    let request = AuditRequest {
        models,
        text,
        test,
        lengths: numbers::list("lengths", lengths, |length| whole("lengths", length))?,
        tolerance,
        criterion: failure::choice(
            "criterion",
            criterion,
            &[("output", Criterion::Output), ("residual", Criterion::Residual)],
        )?,
        candidates,
        texts: texts.map(|texts| whole("texts", texts)).transpose()?,
        heads_only,
        out,
        settings: settings(seed, None)?,
    };
    // The model is run as often as its heads are looked at, about.
    let parts = if heads_only { 1.0 } else { 2.0 };
    let audit = watched(py, progress.as_ref(), |watch| {
        let mut before = 0.0;
        let run = |_: &str, planned: &Planned, folder: &RunFolder| {
            let watcher = Watching::new(watch, before / parts, 1.0 / parts);
            before += 1.0;
            Ok(esscher_lab::run(planned, folder, Share::WHOLE, &origin("Python"), &watcher)?)
        };
        conduct::audit::<conduct::Error>(&request, run, |what| tell(told.as_ref(), what))
    })?
    .or_raise()?;
    match &audit.found {
        Some(found) => {
            let answer = in_python(py, found)?;
            answer.set_item("folder", audit.folder)?;
            Ok(answer)
        }
        // Asked to stop, the call has raised already.
        None => {
            Err(PyRuntimeError::new_err("stopped before it was finished; the same call goes on from here"))
        }
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

fn in_python<'py>(py: Python<'py>, found: &AuditFound) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    answer.set_item("model", &found.model)?;
    answer.set_item("sizes", found.sizes)?;
    answer.set_item("length", found.length)?;
    answer.set_item("texts", found.texts)?;
    answer.set_item("running", found.running)?;
    answer.set_item("tolerance", found.tolerance)?;
    answer.set_item("measured", found.measured)?;
    let assignments: Vec<Bound<'py, PyDict>> =
        found.assignments.iter().map(|one| assignment(py, one)).collect::<PyResult<_>>()?;
    answer.set_item("assignments", assignments)?;
    answer.set_item("advice", &found.advice)?;
    answer.set_item("report", &found.report)?;
    answer.set_item("verdicts", &found.verdicts)?;
    answer.set_item("full_attention_heads", &found.full_attention_heads)?;
    Ok(answer)
}

fn assignment<'py>(py: Python<'py>, found: &AssignmentFound) -> PyResult<Bound<'py, PyDict>> {
    let error = |estimated: &Estimated| estimated.standard_error.unwrap_or(f64::NAN);
    let row = PyDict::new(py);
    row.set_item("name", &found.name)?;
    row.set_item("running", found.running)?;
    row.set_item("heads", found.heads)?;
    row.set_item("key_value_heads", found.key_value_heads)?;
    row.set_item("cache_share", found.cache_share)?;
    row.set_item("cache_share_at_context", found.cache_share_at_context)?;
    row.set_item("cache_bytes", found.cache_bytes.1)?;
    row.set_item("cache_bytes_at_context", found.cache_bytes_at_context.1)?;
    row.set_item("loss", found.loss.mean)?;
    row.set_item("difference", found.difference.mean)?;
    row.set_item("standard_error", error(&found.difference))?;
    row.set_item("retrieval", found.retrieval.map_or(f64::NAN, |retrieval| retrieval.mean))?;
    Ok(row)
}
