//! Any question from Python: keyword arguments become a request, the answer comes back as columns and sentences.

use crate::heads::softmax_from;
use crate::measures::PyMeasure;
use crate::prelude::*;
use crate::runs::{columns, settings, sources};
use crate::watch::watched;
use esscher_core::measure::{Empirical, Law};
use esscher_lab::specification::{Mistake, Problem, Written};
use esscher_questions::asking::GivenTokens;
use esscher_questions::conduct::{self, unknown};
use esscher_questions::questions;
use esscher_report::Block;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString};
use std::sync::Arc;

export!(fn ask, schema);

/// Answers a question in memory: its columns, its sentences, and its rows as JSON.
#[pyfunction]
fn ask<'py>(
    py: Python<'py>,
    question: &str,
    request: &Bound<'py, PyDict>,
    seed: Option<u64>,
    instruction_set: Option<&str>,
    progress: Option<&Any<'py>>,
) -> PyResult<Bound<'py, PyDict>> {
    let known = questions().iter().find(|known| known.name == question);
    let laws = known.map_or_else(Vec::new, |known| (known.properties)());
    let laws = laws.into_iter().filter(|(_, schema, _)| schema["format"] == "law");
    let laws: Vec<String> = laws.map(|(key, _, _)| key).collect();
    let mut exceptions = Vec::new();
    let mut entries = vec![("kind".to_string(), Written::Text(question.to_string()))];
    for (key, value) in request.iter() {
        let key: String = key.extract()?;
        let is_law = laws.contains(&key);
        entries.extend(written(&key, is_law, &value, &mut exceptions)?.map(|value| (key, value)));
    }
    let asked = esscher_questions::Asked::written(Written::table(entries), settings(seed, instruction_set)?);
    let planned = asked.and_then(|asked| asked.plan(&sources())).map_err(|mistake| in_python(&mistake))?;
    let found = watched(py, progress, |watch| planned.answer(watch))?;
    Exceptions::joined(&exceptions).or_raise(Ok(()))?;
    let found = found.map_err(|error| match error.downcast::<esscher_core::Error>() {
        Ok(refused) => PyValueError::new_err(refused.to_string()),
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    })?;
    let found = found.ok_or_else(|| PyRuntimeError::new_err("stopped before an answer"))?;
    let sections = planned.sections(&found).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let blocks = sections.into_iter().flat_map(|section| section.blocks);
    let sentences: Vec<String> =
        blocks.filter_map(|block| if let Block::Prose(prose) = block { Some(prose) } else { None }).collect();
    Ok(dictionary!(py, title: planned.title(), columns: columns(py, &found)?, sentences: sentences,
                   rows: found.to_json().to_string()))
}

/// The JSON Schema of specifications: of one question, or of all.
#[pyfunction]
fn schema(question: Option<&str>) -> PyResult<String> {
    let names: Vec<&str> = questions().iter().map(|question| question.name).collect();
    match question {
        None => Ok(conduct::schema().to_string()),
        Some(name) => match questions().iter().find(|question| question.name == name) {
            Some(question) => Ok(question.schema().to_string()),
            None => Err(unknown("question", name, "questions", &names)).or_raise(),
        },
    }
}

/// An argument as a door writes it down; None counts as not given.
fn written(
    key: &str,
    is_law: bool,
    value: &Any<'_>,
    exceptions: &mut Vec<Exceptions>,
) -> PyResult<Option<Written>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(measure) = value.cast::<PyMeasure>() {
        let measure = measure.get();
        exceptions.push(measure.exceptions.clone());
        return Ok(Some(Written::native::<Law>(measure.law.clone(), measure.law.family())));
    }
    if let Ok(head) = softmax_from(value) {
        return Ok(Some(Written::native(head, "a head")));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Some(Written::Truth(truth.is_true())));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(Written::Text(text.to_string())));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Some(Written::number(number.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Written::typed_number(&value.str()?.to_string()));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let mut entries = Vec::new();
        for (key, value) in table.iter() {
            let key: String = key.extract()?;
            entries.extend(written(&key, false, &value, exceptions)?.map(|value| (key, value)));
        }
        return Ok(Some(Written::table(entries)));
    }
    // Where a law is asked for, an array is given tokens, or the law of a draw of one of its rows.
    if is_law && (key == "tokens" || key == "queries") {
        let what = if key == "tokens" { "tokens" } else { "queries" };
        let rows = Reals::read(what, value)?;
        arrays::check_dimension(what, rows.matrix()?.ncols())?;
        let given = Arc::new(Empirical::from_tokens(rows.shape()[1], rows.entries()).or_raise()?);
        let shown = format!("an array of {} rows", given.len());
        return Ok(Some(match key {
            "tokens" => Written::native(GivenTokens(given), shown),
            _ => Written::native::<Law>(given, shown),
        }));
    }
    if let Ok(plain) = value.call_method0("tolist") {
        return written(key, false, &plain, exceptions);
    }
    let items = match value.cast::<PyList>() {
        Ok(list) => list.iter().collect::<Vec<_>>(),
        Err(_) => match value.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => {
                let kind = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!("{key}: {kind} is nothing that a question takes")));
            }
        },
    };
    let items: Vec<Option<Written>> =
        items.iter().map(|item| written("", false, item, exceptions)).collect::<PyResult<_>>()?;
    Ok(Some(Written::list(items.into_iter().flatten())))
}

/// A mistake in the words of Python: keys are arguments here.
fn in_python(mistake: &Mistake) -> PyErr {
    let key = &mistake.key;
    let message = match &mistake.problem {
        Problem::Wrong(message) if key.is_empty() => message.clone(),
        Problem::Wrong(message) => format!("{key}: {message}"),
        Problem::Unknown => format!("there is no argument {key}"),
        Problem::Missing => format!("the argument {key} is missing"),
    };
    let hint = mistake.hint.as_ref().map_or(String::new(), |hint| format!("\nhint: {hint}"));
    PyValueError::new_err(message + &hint)
}
