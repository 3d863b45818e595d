//! Any question from Python: keyword arguments become a request, the answer comes back as columns and sentences.

use crate::heads::softmax_from;
use crate::measures::{PyMeasure, empirical};
use crate::prelude::*;
use crate::runs::{columns, sources};
use crate::watch::{UNKNOWN, Watch};
use esscher_core::measure::Law;
use esscher_lab::specification::{Mistake, Problem, Written};
use esscher_lab::{Experiment, Failure, Table};
use esscher_questions::asking::GivenTokens;
use esscher_questions::concentration::log_covariances;
use esscher_questions::conduct::{self, unknown};
use esscher_questions::{Planned, questions};
use esscher_report::{Block, plain};
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyFrozenSet, PyInt, PyMapping, PySet, PyString};
use std::path::PathBuf;
use std::sync::Arc;

export!(fn ask, study, schema);

/// Answers a question in memory: its columns, its sentences, and its rows as JSON.
#[pyfunction]
fn ask<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (answer, ()) =
        answered(py, &asked, |planned, watch| Ok(planned.answer(watch)?.map(|table| (table, ()))))?;
    Ok(answer)
}

/// The same for `concentration`, with what fits need beyond the rows: covariances of logarithms and numbers of trials.
#[pyfunction]
fn study<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (answer, joint) = answered(py, &asked, |planned, watch| {
        let Some(tables) = planned.unit_tables(watch)? else { return Ok(None) };
        let joint = log_covariances(planned, &tables)?;
        Ok(Some((planned.merge(tables)?, joint)))
    })?;
    let by_quantity = PyDict::new(py);
    for (quantity, covariance, trials) in joint {
        by_quantity.set_item(quantity.name(), (Array::from(covariance), trials))?;
    }
    answer.set_item("joint", by_quantity)?;
    Ok(answer)
}

/// Reads and plans `request`, a dictionary of the keys of `question`, and has it computed.
fn answered<'py, T: Send>(
    py: Python<'py>,
    asked: &Asked<'py>,
    compute: impl FnOnce(&Planned, &Watch) -> Result<Option<(Table, T)>, Failure> + Send,
) -> PyResult<(Bound<'py, PyDict>, T)> {
    let question = asked.text("question")?;
    let known = questions().iter().find(|known| known.name == question);
    let laws = known.map_or_else(Vec::new, |known| (known.properties)());
    let laws = laws.into_iter().filter(|(_, schema, _)| schema["format"] == "law");
    let laws: Vec<String> = laws.map(|(key, _, _)| key).collect();
    let mut exceptions = Vec::new();
    let mut entries = vec![("kind".to_string(), Written::Text(question.clone()))];
    for (key, value) in asked.get("request")?.cast::<PyDict>()?.iter() {
        let key = numbers::text("a key of the request", &key)?;
        if key == "kind" {
            let message =
                format!("there is no argument kind: the question is {question}, the first argument");
            return Err(PyValueError::new_err(message));
        }
        let is_law = laws.contains(&key);
        entries.extend(written(&key, is_law, &value, &mut exceptions)?.map(|value| (key, value)));
    }
    let (settings, exceptions) = (asked.settings()?, Exceptions::joined(&exceptions));
    let plan = move || esscher_questions::Asked::written(Written::table(entries), settings)?.plan(&sources());
    let planned = exceptions.by_size(py, UNKNOWN, plan);
    exceptions.or_raise(Ok(()))?;
    let planned = planned?;
    let planned = planned.map_err(|mistake| in_python(asked, &mistake))?;
    let found = asked.watched(|watch| compute(&planned, watch));
    let raised = exceptions.or_raise(Ok(()));
    let found = found?;
    raised?;
    let found = found.map_err(|error| match error.downcast::<esscher_core::Error>() {
        Ok(refused) => PyValueError::new_err(refused.to_string()),
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    })?;
    let (table, more) = found.ok_or_else(|| PyRuntimeError::new_err("stopped before an answer"))?;
    let sections = planned.sections(&table).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let blocks = sections.into_iter().flat_map(|section| section.blocks);
    let sentences: Vec<String> = blocks
        .filter_map(|block| if let Block::Prose(prose) = block { Some(plain(&prose)) } else { None })
        .collect();
    let answer = dictionary!(py, title: planned.title(), columns: columns(py, &table)?, sentences: sentences,
                             rows: table.to_json().to_string());
    Ok((answer, more))
}

/// The JSON Schema of specifications: of one question, or of all.
#[pyfunction]
fn schema(question: Option<&Any<'_>>) -> PyResult<String> {
    let names: Vec<&str> = questions().iter().map(|question| question.name).collect();
    let Some(name) = question.map(|name| numbers::text("question", name)).transpose()? else {
        return Ok(conduct::schema().to_string());
    };
    match questions().iter().find(|question| question.name == name) {
        Some(question) => Ok(question.schema().to_string()),
        None => Err(unknown("question", &name, "questions", &names)).or_raise(),
    }
}

/// Tables and lists inside each other: what holds itself would exhaust the stack.
const DEEPEST: usize = 32;

/// An argument as a door writes it down; None counts as not given.
pub(crate) fn written(
    key: &str,
    is_law: bool,
    value: &Any<'_>,
    exceptions: &mut Vec<Exceptions>,
) -> PyResult<Option<Written>> {
    nested(key, is_law, value, exceptions, 0)
}

fn nested(
    key: &str,
    is_law: bool,
    value: &Any<'_>,
    exceptions: &mut Vec<Exceptions>,
    depth: usize,
) -> PyResult<Option<Written>> {
    if depth > DEEPEST {
        let message = format!("{key}: lists or tables are nested deeper than {DEEPEST}, or hold themselves");
        return Err(PyValueError::new_err(message));
    }
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
    if value.is_instance_of::<PyString>() {
        return Ok(Some(Written::Text(numbers::text(key, value)?)));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Some(Written::number(number.extract()?)));
    }
    if value.is_instance_of::<PyInt>() {
        // Its size is looked at first: the digits of a huge one fill pages. Enumerations print as words.
        numbers::real(key, value)?;
        let digits = PyType::new::<PyInt>(value.py()).call_method1("__repr__", (value,))?.to_string();
        return Written::typed_number(&digits)
            .map(Some)
            .ok_or_else(|| numbers::wrong_type(key, "a number", value));
    }
    if let Ok(table) = value.cast::<PyMapping>() {
        let mut entries = Vec::new();
        for entry in table.items()?.iter() {
            let (name, value): (Any<'_>, Any<'_>) = entry.extract()?;
            let name = numbers::text(&format!("a key of {key}"), &name)?;
            entries.extend(nested(&name, false, &value, exceptions, depth + 1)?.map(|value| (name, value)));
        }
        return Ok(Some(Written::table(entries)));
    }
    if value.hasattr("__fspath__")? {
        let path: PathBuf = value.extract()?;
        let text = path.to_str().ok_or_else(|| {
            PyValueError::new_err(format!("{key}: the path {} is not UTF-8; rename it", path.display()))
        })?;
        return Ok(Some(Written::Text(text.to_string())));
    }
    // Where a law is asked for, an array is given tokens, or the law of a draw of one of its rows.
    if is_law && (key == "tokens" || key == "queries") {
        let is_tokens = key == "tokens";
        let given = Arc::new(empirical(if is_tokens { "tokens" } else { "queries" }, value)?);
        let shown = format!("an array of {} rows", given.len());
        return Ok(Some(match is_tokens {
            true => Written::native(GivenTokens(given), shown),
            false => Written::native::<Law>(given, shown),
        }));
    }
    // Bytes would pass for a list of numbers, and a set has no order.
    if value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
    {
        return Err(numbers::wrong_type(key, "numbers, words, lists, arrays or tables", value));
    }
    arrays::check_meant(key, value)?;
    match value.call_method0("tolist") {
        // A number of NumPy's that Python has none for, such as longdouble, stays what it is.
        Ok(plain) if !plain.get_type().is(value.get_type()) => {
            return nested(key, false, &plain, exceptions, depth + 1);
        }
        _ => {}
    }
    let Ok(items) = value.try_iter() else {
        let number = numbers::real(key, value).map(|number| Some(Written::number(number)));
        return number.map_err(|raised| match raised.is_instance_of::<PyTypeError>(value.py()) {
            true => numbers::wrong_type(key, "numbers, words, lists, arrays or tables", value),
            false => raised,
        });
    };
    let mut list = Vec::new();
    for item in items {
        if list.len() == numbers::LONGEST_LIST {
            let most = numbers::LONGEST_LIST;
            return Err(PyValueError::new_err(format!("{key}: a list of more than {most} entries")));
        }
        let none = || PyTypeError::new_err(format!("{key}: expected no None in a list"));
        list.push(nested(key, false, &item?, exceptions, depth + 1)?.ok_or_else(none)?);
    }
    Ok(Some(Written::list(list)))
}

/// A mistake in the words of Python: keys are arguments here, some by a name of their own in `names`.
pub(crate) fn in_python(asked: &Asked<'_>, mistake: &Mistake) -> PyErr {
    let named = asked.get("names").and_then(|names| names.get_item(&mistake.key)?.extract::<String>());
    let key = named.as_ref().unwrap_or(&mistake.key);
    let message = match &mistake.problem {
        Problem::Wrong(message) if key.is_empty() => message.clone(),
        Problem::Wrong(message) => format!("{key}: {message}"),
        Problem::Unknown => format!("there is no argument {key}"),
        Problem::Missing => format!("the argument {key} is missing"),
    };
    let hint = mistake.hint.as_ref().map_or(String::new(), |hint| format!("\nhint: {hint}"));
    PyValueError::new_err(message + &hint)
}
