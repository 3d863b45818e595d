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
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySet, PyString,
};
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
        let value = written(asked, &key, is_law, &value, &mut exceptions)?;
        entries.extend(value.map(|value| (key, value)));
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

/// Numbers, words, lists and tables of one argument in all: two matrices of 1024 rows and columns, which a head has at most.
const MOST_ENTRIES: usize = 2_200_000;

/// Entries between two looks for signals.
const ENTRIES_PER_LOOK: usize = 1 << 14;

/// An argument as a door writes it down; None counts as not given.
pub(crate) fn written(
    asked: &Asked<'_>,
    key: &str,
    is_law: bool,
    value: &Any<'_>,
    exceptions: &mut Vec<Exceptions>,
) -> PyResult<Option<Written>> {
    Writing { asked, exceptions, entries: 0 }.nested(key, is_law, value, 0)
}

/// An argument that is being written down. Keys are whole names, `sampled.trials`.
struct Writing<'a, 'py> {
    asked: &'a Asked<'py>,
    exceptions: &'a mut Vec<Exceptions>,
    /// Those so far.
    entries: usize,
}

impl Writing<'_, '_> {
    /// The argument that a key is.
    fn named(&self, key: &str) -> String {
        named(self.asked, key)
    }

    /// Reads something, refused by the name of its argument.
    fn read<T>(&self, key: &str, read: impl Fn(&str) -> PyResult<T>) -> PyResult<T> {
        read(key).or_else(|_| read(&self.named(key)))
    }

    /// Counts an entry, with a look for signals now and then.
    fn count(&mut self, py: Python<'_>, key: &str) -> PyResult<()> {
        self.entries += 1;
        if self.entries.is_multiple_of(ENTRIES_PER_LOOK) {
            py.check_signals()?;
        }
        self.check_room(key, 0)
    }

    /// Refuses more entries in all than there may be.
    fn check_room(&self, key: &str, more: usize) -> PyResult<()> {
        if self.entries.saturating_add(more) <= MOST_ENTRIES {
            return Ok(());
        }
        let (key, found) = (self.named(key), if more == 0 { "more".to_string() } else { more.to_string() });
        Err(PyValueError::new_err(format!(
            "{key}: expected at most {MOST_ENTRIES} entries in all, found {found}"
        )))
    }

    fn nested(
        &mut self,
        key: &str,
        is_law: bool,
        value: &Any<'_>,
        depth: usize,
    ) -> PyResult<Option<Written>> {
        if depth > DEEPEST {
            let key = self.named(key);
            let message =
                format!("{key}: lists or tables are nested deeper than {DEEPEST}, or hold themselves");
            return Err(PyValueError::new_err(message));
        }
        if value.is_none() {
            return Ok(None);
        }
        self.count(value.py(), key)?;
        // Numbers first: there may be millions.
        if let Ok(number) = value.cast::<PyFloat>() {
            return Ok(Some(Written::number(number.extract()?)));
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            return Ok(Some(Written::Truth(truth.is_true())));
        }
        if value.is_instance_of::<PyString>() {
            let text = self.read(key, |key| numbers::text(key, value))?;
            return Ok(Some(Written::Text(text)));
        }
        if value.is_instance_of::<PyInt>() {
            // Its size is looked at first: the digits of a huge one fill pages. Enumerations print as words.
            self.read(key, |key| numbers::real(key, value))?;
            let digits = PyType::new::<PyInt>(value.py()).call_method1("__repr__", (value,))?.to_string();
            return Written::typed_number(&digits)
                .map(Some)
                .ok_or_else(|| numbers::wrong_type(&self.named(key), "a number", value));
        }
        if let Ok(measure) = value.cast::<PyMeasure>() {
            let measure = measure.get();
            self.exceptions.push(measure.exceptions.clone());
            return Ok(Some(Written::native::<Law>(measure.law.clone(), measure.law.family())));
        }
        if let Ok(head) = softmax_from(value) {
            return Ok(Some(Written::native(head, "a head")));
        }
        if let Ok(table) = value.cast::<PyMapping>() {
            let mut entries = Vec::new();
            for entry in table.items()?.iter() {
                let (name, value): (Any<'_>, Any<'_>) = entry.extract()?;
                let name = numbers::text(&format!("a key of {}", self.named(key)), &name)?;
                let value = self.nested(&format!("{key}.{name}"), false, &value, depth + 1)?;
                entries.extend(value.map(|value| (name, value)));
            }
            return Ok(Some(Written::table(entries)));
        }
        if value.hasattr("__fspath__")? {
            let path: PathBuf = value.extract()?;
            let text = path.to_str().ok_or_else(|| {
                let key = self.named(key);
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
            return Err(numbers::wrong_type(
                &self.named(key),
                "numbers, words, lists, arrays or tables",
                value,
            ));
        }
        // What is in a list is looked at one by one.
        if !(value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()) {
            self.read(key, |key| arrays::check_meant(key, value))?;
        }
        if value.hasattr("tolist")? {
            self.check_room(key, arrays::entries_of(value))?;
        }
        match value.call_method0("tolist") {
            // A number of NumPy's that Python has none for, such as longdouble, stays what it is.
            Ok(plain) if !plain.get_type().is(value.get_type()) => {
                return self.nested(key, false, &plain, depth + 1);
            }
            _ => {}
        }
        let Ok(items) = value.try_iter() else {
            let key = &self.named(key);
            let number = numbers::real(key, value).map(|number| Some(Written::number(number)));
            return number.map_err(|raised| match raised.is_instance_of::<PyTypeError>(value.py()) {
                true => numbers::wrong_type(key, "numbers, words, lists, arrays or tables", value),
                false => raised,
            });
        };
        let mut list = Vec::new();
        for item in items {
            let Some(item) = self.nested(key, false, &item?, depth + 1)? else {
                return Err(PyTypeError::new_err(format!("{}: expected no None in a list", self.named(key))));
            };
            list.push(item);
        }
        Ok(Some(Written::list(list)))
    }
}

/// The argument that a key is: some have a name of their own in `names`.
fn named(asked: &Asked<'_>, key: &str) -> String {
    let named = asked.get("names").and_then(|names| names.get_item(key)?.extract());
    named.unwrap_or_else(|_| key.to_string())
}

/// A mistake in the words of Python: keys are arguments here.
pub(crate) fn in_python(asked: &Asked<'_>, mistake: &Mistake) -> PyErr {
    let key = named(asked, &mistake.key);
    let message = match &mistake.problem {
        Problem::Wrong(message) if key.is_empty() => message.clone(),
        Problem::Wrong(message) => format!("{key}: {message}"),
        Problem::Unknown => format!("there is no argument {key}"),
        Problem::Missing => format!("the argument {key} is missing"),
    };
    let hint = mistake.hint.as_ref().map_or(String::new(), |hint| format!("\nhint: {hint}"));
    PyValueError::new_err(message + &hint)
}
