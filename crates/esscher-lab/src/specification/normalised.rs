//! The text that says everything a reader asked for, defaults included.

use std::fmt::Write;

/// What was written down for a key.
#[derive(Debug)]
pub(super) enum Written {
    Value(String),
    Table(Vec<(String, Written)>),
    Tables(Vec<Vec<(String, Written)>>),
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

/// Values first, then the tables under their headings: the order that TOML asks for.
pub(super) fn table(text: &mut String, prefix: &str, entries: &[(String, Written)]) {
    for (key, written) in entries {
        if let Written::Value(value) = written {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    for (key, written) in entries {
        match written {
            Written::Value(_) => {}
            Written::Table(inner) => {
                under(text, &format!("[{prefix}{key}]"), &format!("{prefix}{key}."), inner)
            }
            Written::Tables(all) => {
                for inner in all {
                    under(text, &format!("[[{prefix}{key}]]"), &format!("{prefix}{key}."), inner);
                }
            }
        }
    }
}

fn under(text: &mut String, heading: &str, prefix: &str, entries: &[(String, Written)]) {
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(text, "{heading}");
    table(text, prefix, entries);
}
