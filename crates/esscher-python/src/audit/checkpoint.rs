//! Checkpoints: the list of those with a name, and the audit of any.

use crate::ask::{in_python, written};
use crate::prelude::*;
use crate::runs::{Watching, origin};
use esscher_lab::specification::{Form, Keys, Written};
use esscher_lab::{RunFolder, Share};
use esscher_questions::conduct::{self, AssignmentFound, AuditRequest};
use esscher_questions::{Planned, Sources};

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
    let request = request(&asked)?;
    let settings = asked.settings()?;
    let told = asked.given("told")?.map(Bound::unbind);
    let sources = Sources::of_user(move |what| tell(told.as_ref(), what));
    // The model is run as often as its heads are looked at, about.
    let parts = if request.heads_only { 1.0 } else { 2.0 };
    let audit = asked
        .watched(|watch| {
            let mut before = 0.0;
            let run = |_: &str, planned: &Planned, folder: &RunFolder| {
                let watcher = Watching::new(watch, before / parts, 1.0 / parts);
                before += 1.0;
                Ok(esscher_lab::run(planned, folder, Share::WHOLE, &origin("Python"), &watcher)?)
            };
            conduct::audit::<conduct::Error>(&request, settings, run, &sources)
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

/// The arguments under the names of the keys; one thing stands for a list of it.
fn request(asked: &Asked<'_>) -> PyResult<AuditRequest> {
    let mut entries = Vec::new();
    for (key, schema, _) in AuditRequest::properties() {
        let argument = if key == "models" { "model" } else { &key };
        let Some(value) = asked.given(argument)? else { continue };
        let mut given = written(asked, argument, false, &value, &mut Vec::new())?;
        if schema["type"] == "array" {
            given = given.map(|one| if one.form() == Form::List { one } else { Written::list([one]) });
        }
        entries.extend(given.map(|given| (key, given)));
    }
    AuditRequest::written(Written::table(entries)).map_err(|mistake| in_python(asked, &mistake))
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
