//! A parsed file as a tree of values that know their places.

use std::fmt;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A value and where it stands, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) place: Range<usize>,
    pub(super) value: Value,
}

/// An entry of a table.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Of the key.
    pub(super) place: Range<usize>,
    pub(super) value: Placed,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    /// A number as it is written, with the whole number that it is, if it is one.
    Number {
        written: String,
        real: f64,
        whole: Option<u64>,
    },
    Truth(bool),
    Time,
    List(Vec<Placed>),
    Table(Vec<Entry>),
}

/// The form of a value, for keys that may be written in more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Quoted text.
    Text,
    /// A number.
    Number,
    /// true or false.
    Truth,
    /// A date or time, which no key takes.
    Time,
    /// A list in brackets.
    List,
    /// A table, inline or under a heading.
    Table,
}

impl Value {
    pub(super) fn form(&self) -> Form {
        match self {
            Value::Text(_) => Form::Text,
            Value::Number { .. } => Form::Number,
            Value::Truth(_) => Form::Truth,
            Value::Time => Form::Time,
            Value::List(_) => Form::List,
            Value::Table(_) => Form::Table,
        }
    }

    fn new(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => {
                let whole = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
                let real =
                    i128::from_str_radix(integer.as_str(), integer.radix()).map_or(f64::NAN, |it| it as f64);
                Value::Number { written: integer.to_string(), real, whole }
            }
            DeValue::Float(float) => {
                let real = float.as_str().parse().unwrap_or(f64::NAN);
                // Up to 2⁵³ a float is the whole number that it shows: 1e6 is a prompt length.
                let is_whole = (0.0..=9_007_199_254_740_992.0).contains(&real) && real.fract() == 0.0;
                Value::Number { written: float.to_string(), real, whole: is_whole.then_some(real as u64) }
            }
            DeValue::Boolean(truth) => Value::Truth(*truth),
            DeValue::Datetime(_) => Value::Time,
            DeValue::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| Placed { place: item.span(), value: Value::new(item.get_ref()) })
                    .collect(),
            ),
            DeValue::Table(table) => Value::Table(entries(table)),
        }
    }
}

/// The entries of a table.
pub(super) fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            place: key.span(),
            value: Placed { place: value.span(), value: Value::new(value.get_ref()) },
        })
        .collect()
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Form::Text => "text",
            Form::Number => "a number",
            Form::Truth => "true or false",
            Form::Time => "a date",
            Form::List => "a list",
            Form::Table => "a table",
        })
    }
}
