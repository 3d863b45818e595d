//! Options of quick questions, made from their keys: the same names, documentation, defaults and checks as everywhere.

use crate::arrays::Array;
use crate::ending::Trouble;
use clap::{Arg, ArgAction, ArgMatches, Command};
use esscher_core::measure::Law;
use esscher_lab::specification::Written;
use esscher_questions::asking::GivenTokens;
use esscher_questions::{Question, questions};
use serde_json::Value;
use std::sync::Arc;

/// The questions that are commands of their own.
pub(crate) fn quick() -> impl Iterator<Item = &'static Question> {
    questions().iter().filter(|question| ["attend", "horizon"].contains(&question.name))
}

/// An option: the tables that its key stands in, the key, and its schema.
struct QuestionOption {
    table: Option<String>,
    key: String,
    schema: Value,
    required: bool,
}

/// The options of a question; keys of a table that has only keys of its own come without it: `--score` for `head.score`.
fn options(question: &Question) -> Vec<QuestionOption> {
    let mut all = Vec::new();
    for (key, schema, required) in (question.properties)() {
        match schema["properties"].as_object().filter(|_| schema["type"] == "object") {
            Some(inner) => all.extend(inner.iter().map(|(inner, schema)| QuestionOption {
                table: Some(key.clone()),
                key: inner.clone(),
                schema: schema.clone(),
                required: false,
            })),
            None => all.push(QuestionOption { table: None, key, schema, required }),
        }
    }
    all
}

/// The command of a question.
pub(crate) fn command(question: &'static Question) -> Command {
    let mut command = Command::new(question.name).about(question.summary).after_help(VALUES);
    for option in options(question) {
        let mut help = option.schema["description"].as_str().unwrap_or_default().to_string();
        if let Some(words) = option.schema["enum"].as_array() {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            help += &format!(" [{}]", words.join(", "));
        }
        match &option.schema["default"] {
            Value::Null | Value::Array(_) => {}
            Value::String(word) => help += &format!(" [default: {word}]"),
            other => help += &format!(" [default: {other}]"),
        }
        let is_list = option.schema["type"] == "array" && option.schema["format"].is_null();
        command = command.arg(
            Arg::new(option.key.clone())
                .long(option.key.replace('_', "-"))
                .value_name(value_name(&option.schema))
                .required(option.required)
                .allow_hyphen_values(true)
                .action(if is_list { ArgAction::Append } else { ArgAction::Set })
                .help(help),
        );
    }
    command.arg(
        Arg::new("seed").long("seed").value_name("N").help("The seed of its random numbers [default: 0]"),
    )
}

const VALUES: &str = "\
    A LAW is `gaussian:4` for dimension 4, `rademacher:4:0.5` with standard deviation 0.5, or any table as in \
    specifications, '{family = \"gaussian\", dimension = 2, mean = [0, 1]}'; tokens may also be an array of L rows in a \
    file: FILE.npy, FILE.npz:NAME, FILE.csv. A MATRIX is a number (times the identity), rows like `1,0;0,1`, or a file.";

fn value_name(schema: &Value) -> &'static str {
    match (schema["format"].as_str(), schema["type"].as_str()) {
        (Some("law"), _) => "LAW",
        (Some("matrix"), _) => "MATRIX",
        (Some("vectors"), _) => "NUMBERS|FILE",
        (_, Some("integer" | "array")) => "N",
        (_, Some("number")) => "NUMBER",
        _ => "WORD",
    }
}

/// What was typed, as a request.
pub(crate) fn written(question: &'static Question, given: &ArgMatches) -> Result<Written, Trouble> {
    let mut entries = vec![("kind".to_string(), Written::Text(question.name.to_string()))];
    let mut tables: Vec<(String, Vec<(String, Written)>)> = Vec::new();
    for option in options(question) {
        let Some(texts) = given.get_many::<String>(&option.key) else { continue };
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        let value = value(&option, &texts)?;
        match option.table {
            None => entries.push((option.key, value)),
            Some(table) => match tables.iter_mut().find(|(name, _)| *name == table) {
                Some((_, inner)) => inner.push((option.key, value)),
                None => tables.push((table, vec![(option.key, value)])),
            },
        }
    }
    if let Some(seed) = given.get_one::<String>("seed") {
        entries.push(("seed".to_string(), number(seed)));
    }
    entries.extend(tables.into_iter().map(|(name, inner)| (name, Written::table(inner))));
    Ok(Written::table(entries))
}

/// A number, or what was typed instead, which the rule of the key refuses.
fn number(text: &str) -> Written {
    Written::typed_number(text).unwrap_or_else(|| Written::Text(text.to_string()))
}

fn value(option: &QuestionOption, texts: &[&str]) -> Result<Written, Trouble> {
    let text = texts.first().copied().unwrap_or_default();
    Ok(match (option.schema["format"].as_str(), option.schema["type"].as_str()) {
        (Some("law"), _) => law(&option.key, text)?,
        (Some("matrix"), _) => match Written::typed_number(text) {
            Some(number) => number,
            None => match Array::read(text)? {
                // One number in a file stands for a multiple of the identity too.
                array if array.values.len() == 1 => Written::number(array.values[0]),
                array => rows(&array),
            },
        },
        (Some("vectors"), _) => {
            let array = Array::read(text)?;
            if array.rows == 1 { list(&array.values) } else { rows(&array) }
        }
        (_, Some("array")) => Written::list(texts.iter().map(|text| number(text))),
        (_, Some("number" | "integer")) => number(text),
        _ => Written::Text(text.to_string()),
    })
}

fn list(values: &[f64]) -> Written {
    Written::list(values.iter().map(|value| Written::number(*value)))
}

fn rows(array: &Array) -> Written {
    Written::list(array.values.chunks(array.columns).map(list))
}

/// A law: a table as in specifications, its short form, or an array of tokens in a file.
fn law(key: &str, text: &str) -> Result<Written, Trouble> {
    let is_file = [".npy", ".npz", ".csv", ".tsv", ".txt"].iter().any(|ending| text.ends_with(ending))
        || text.contains(".npz:");
    if is_file {
        let prompt = Arc::new(Array::read(text)?.prompt()?);
        return Ok(match key {
            "tokens" => Written::native(GivenTokens(prompt), text),
            _ => Written::native::<Law>(prompt, text),
        });
    }
    if text.trim_start().starts_with('{') {
        return Written::from_toml(text).map_err(|reason| Trouble::request(format!("--{key}: {reason}")));
    }
    Ok(Written::Text(text.to_string()))
}
