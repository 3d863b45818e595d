//! Options of quick questions and of the audit, made from their keys: the same names, documentation, defaults and checks as everywhere.

use crate::arguments::{ATTEND_EXAMPLES, HORIZON_EXAMPLES};
use crate::arrays::{Array, ArrayFile, MOST_IN_TOKENS, per_cent};
use crate::ending::Trouble;
use clap::{Arg, ArgAction, ArgMatches, Command};
use esscher_core::measure::Law;
use esscher_lab::ErrorKind;
#[cfg(feature = "audit")]
use esscher_lab::specification::Keys;
use esscher_lab::specification::Written;
use esscher_questions::asking::{FAMILIES, GivenTokens};
#[cfg(feature = "audit")]
use esscher_questions::conduct::AuditRequest;
use esscher_questions::{Question, questions};
use serde_json::Value;
use std::path::Path;
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

/// The options of keys; keys of a table that has only keys of its own come without it: `--score` for `head.score`.
fn options(properties: Vec<(String, Value, bool)>) -> Vec<QuestionOption> {
    let mut all = Vec::new();
    for (key, schema, required) in properties {
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
    let examples = match question.name {
        "horizon" => HORIZON_EXAMPLES,
        _ => ATTEND_EXAMPLES,
    };
    let command = Command::new(question.name).about(question.summary);
    let command = command.after_help(format!("{VALUES}\n\n{examples}"));
    with_options(command, (question.properties)())
}

/// The options of `esscher audit`: its models come without a name.
#[cfg(feature = "audit")]
pub(crate) fn audit(command: Command) -> Command {
    let command = with_options(command, AuditRequest::properties());
    let open =
        Arg::new("open").long("open").action(ArgAction::SetTrue).help("Open the report in the browser");
    command.arg(open).mut_arg("models", |named| {
        let help = named.get_help().cloned().unwrap_or_default();
        Arg::new("models").value_name("MODEL").num_args(1..).required(true).help(help)
    })
}

fn with_options(mut command: Command, properties: Vec<(String, Value, bool)>) -> Command {
    for option in options(properties) {
        let mut help = option.schema["description"].as_str().unwrap_or_default().to_string();
        if let Some(words) = option.schema["enum"].as_array() {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            help += &format!(" [{}]", words.join(", "));
        }
        match &option.schema["default"] {
            Value::Null | Value::Array(_) | Value::Bool(_) => {}
            Value::String(word) => help += &format!(" [default: {word}]"),
            other => help += &format!(" [default: {other}]"),
        }
        let mut argument = Arg::new(option.key.clone()).long(option.key.replace('_', "-")).help(help);
        argument = match (option.schema["type"].as_str(), option.schema["format"].is_null()) {
            (Some("boolean"), _) => argument.action(ArgAction::SetTrue),
            // Several values after one name, or the name before each; `--length` is `--lengths` too. Words come with commas, so
            // that a word without a name after them is not taken for one more.
            (Some("array"), true) => {
                let one = option.key.strip_suffix('s').map(str::to_string);
                let most = if option.schema["items"]["type"] == "string" { 1 } else { usize::MAX };
                let several = argument.action(ArgAction::Append).num_args(1..=most).value_delimiter(',');
                several.allow_negative_numbers(true).visible_aliases(one)
            }
            _ => argument.allow_hyphen_values(true),
        };
        if !argument.get_action().takes_values() {
            command = command.arg(argument);
            continue;
        }
        command = command.arg(argument.value_name(value_name(&option.schema)).required(option.required));
    }
    let seed = Arg::new("seed").long("seed").value_name("N").allow_hyphen_values(true);
    command.arg(seed.help("The seed of its random numbers [default: 0]"))
}

const VALUES: &str = "\
    A LAW is `gaussian:4` for dimension 4, `rademacher:4:0.5` with standard deviation 0.5, or any table as in \
    specifications, '{family = \"gaussian\", dimension = 2, mean = [0, 1]}'; `esscher list measures` names the families. \
    Tokens may also be an array of L rows: numbers like `1,0;0,1` or [[1,0],[0,1]], a file FILE.npy, FILE.npz:NAME, FILE.csv, \
    or `-` for text on standard input. A MATRIX is a number (times the identity), rows of numbers, or a file. \
    Numbers may be per cents: 1%.";

fn value_name(schema: &Value) -> &'static str {
    match (schema["format"].as_str(), schema["type"].as_str()) {
        (Some("law"), _) => "LAW",
        (Some("matrix"), _) => "MATRIX",
        (Some("vectors"), _) => "NUMBERS|FILE",
        (_, Some("array")) if schema["items"]["type"] == "string" => "NAME,NAME",
        (_, Some("integer" | "array")) => "N",
        (_, Some("string")) => "NAME|PATH",
        (_, Some("number")) => "NUMBER",
        _ => "WORD",
    }
}

/// What was typed, as a request.
pub(crate) fn written(question: &'static Question, given: &ArgMatches) -> Result<Written, Trouble> {
    let mut entries = entries((question.properties)(), given)?;
    entries.push(("kind".to_string(), Written::Text(question.name.to_string())));
    if let Some(seed) = given.get_one::<String>("seed") {
        entries.push(("seed".to_string(), number(seed)));
    }
    Ok(Written::table(entries))
}

/// What is to be audited.
#[cfg(feature = "audit")]
pub(crate) fn audit_request(given: &ArgMatches) -> Result<Written, Trouble> {
    Ok(Written::table(entries(AuditRequest::properties(), given)?))
}

/// The keys that were typed.
fn entries(
    properties: Vec<(String, Value, bool)>,
    given: &ArgMatches,
) -> Result<Vec<(String, Written)>, Trouble> {
    let mut entries = Vec::new();
    let mut tables: Vec<(String, Vec<(String, Written)>)> = Vec::new();
    let options = options(properties);
    let is_piped = |option: &&QuestionOption| {
        let takes_arrays = !option.schema["format"].is_null();
        takes_arrays && given.get_one::<String>(&option.key).is_some_and(|text| text == "-")
    };
    let piped: Vec<String> =
        options.iter().filter(is_piped).map(|option| format!("--{}", option.key)).collect();
    if piped.len() > 1 {
        let message = format!("standard input is given to {}: expected one `-` at most", piped.join(" and "));
        return Err(Trouble::with_hint(ErrorKind::Usage, message, "write the other arrays into files"));
    }
    for option in options {
        if option.schema["type"] == "boolean" {
            entries.extend(given.get_flag(&option.key).then(|| (option.key, Written::Truth(true))));
            continue;
        }
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
    entries.extend(tables.into_iter().map(|(name, inner)| (name, Written::table(inner))));
    Ok(entries)
}

/// A number, or what was typed instead, which the rule of the key refuses.
fn number(text: &str) -> Written {
    Written::typed_number(text).unwrap_or_else(|| Written::Text(text.to_string()))
}

/// A real number, which may be written as a per cent.
fn share(text: &str) -> Written {
    per_cent(text).map_or_else(|| number(text), Written::number)
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
        (_, Some("array")) if option.schema["items"]["type"] == "string" => {
            Written::list(texts.iter().map(|text| Written::Text((*text).to_string())))
        }
        (_, Some("array")) => Written::list(texts.iter().map(|text| number(text))),
        (_, Some("number")) => share(text),
        (_, Some("integer")) => number(text),
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
    // No law begins as a number does.
    let is_typed =
        text.trim_start().starts_with(['[', '+', '-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    let array = match ArrayFile::named(text) {
        Some(file) => Some(file.read(MOST_IN_TOKENS)?),
        None if is_typed && !Path::new(text).exists() => Some(Array::read(text)?),
        None => None,
    };
    if let Some(array) = array {
        let prompt = Arc::new(array.prompt()?);
        return Ok(match key {
            "tokens" => Written::native(GivenTokens(prompt), text),
            _ => Written::native::<Law>(prompt, text),
        });
    }
    if text.trim_start().starts_with('{') {
        let refused = |reason| Trouble::request(ErrorKind::Usage, format!("--{key}: {reason}"));
        return Written::from_toml(text).map_err(refused);
    }
    // Every law has a colon.
    if !text.contains(':') || Path::new(text).exists() {
        let message = format!("--{key}: `{text}` is neither a law nor an array");
        let is_family = |text: &str| FAMILIES.iter().any(|family| family.name == text);
        let hint = match text {
            "mixture" => {
                "write its parts: '{family = \"mixture\", dimension = 2, component = [{weight = 0.5, mean = [1, 0], scale = 1}, \
                 {weight = 0.5, mean = [-1, 0], scale = 1}]}'"
                    .to_string()
            }
            "points" => "write the points as an array: [[1, 2], [3, 4]]".to_string(),
            family if is_family(family) => format!("write its dimension, too: {family}:4"),
            _ => "a law is written like gaussian:4 or rademacher:4:0.5; an array is numbers like [[1, 2], [3, 4]], or a file whose \
                  name ends in .npy, .npz, .csv, .tsv or .txt"
                .to_string(),
        };
        return Err(Trouble::with_hint(ErrorKind::Usage, message, hint));
    }
    Ok(Written::Text(text.to_string()))
}
