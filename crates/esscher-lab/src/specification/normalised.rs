//! The text that says everything a reader asked for, defaults included.

use super::Written;
use std::fmt::Write;

/// What was written down for a key.
#[derive(Debug)]
pub(super) enum Normal {
    Value(String),
    Table(Vec<(String, Normal)>),
    Tables(Vec<Vec<(String, Normal)>>),
}

/// The shortest text that reads back as the same number.
pub(super) fn real(value: f64) -> String {
    // Adding 0 makes −0 the 0 that it equals.
    format!("{:?}", value + 0.0)
}

pub(super) fn reals(values: &[f64]) -> String {
    list(values.iter().map(|value| real(*value)))
}

pub(super) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A value as doors write it, on one line.
pub(super) fn written(value: &Written) -> String {
    match value {
        Written::Text(text) => quoted(text),
        Written::Number { whole: Some(whole), .. } => whole.to_string(),
        Written::Number { real: Ok(value), .. } => real(*value),
        Written::Truth(truth) => truth.to_string(),
        Written::List(items) => list(items.iter().map(|item| written(&item.value))),
        other => quoted(&other.form().to_string()),
    }
}

/// Values first, then the tables under their headings: the order that TOML asks for.
pub(super) fn table(text: &mut String, prefix: &str, entries: &[(String, Normal)]) {
    for (key, written) in entries {
        if let Normal::Value(value) = written {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    for (key, written) in entries {
        match written {
            Normal::Value(_) => {}
            Normal::Table(inner) => {
                under(text, &format!("[{prefix}{key}]"), &format!("{prefix}{key}."), inner)
            }
            Normal::Tables(all) => {
                for inner in all {
                    under(text, &format!("[[{prefix}{key}]]"), &format!("{prefix}{key}."), inner);
                }
            }
        }
    }
}

fn under(text: &mut String, heading: &str, prefix: &str, entries: &[(String, Normal)]) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{heading}");
    table(text, prefix, entries);
}
