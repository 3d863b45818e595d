//! What was written, whichever door it came through: a tree of values, which know their places if they come from a file.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// A value and where it stands, in bytes.
#[derive(Debug, Clone)]
pub struct Placed {
    pub(super) place: Range<usize>,
    pub(super) value: Written,
}

impl Placed {
    /// The form of the value.
    pub fn form(&self) -> Form {
        self.value.form()
    }
}

impl From<Written> for Placed {
    fn from(value: Written) -> Self {
        Placed { place: 0..0, value }
    }
}

/// An entry of a table.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(super) key: String,
    /// Where the key stands in the text.
    pub(super) place: Range<usize>,
    pub(super) value: Placed,
}

/// What stands for a key.
#[derive(Debug, Clone)]
pub enum Written {
    /// Quoted text.
    Text(String),
    /// A number.
    Number {
        /// As it was written.
        written: String,
        /// The number as a double.
        real: f64,
        /// The whole number that it is, if it is one.
        whole: Option<u64>,
    },
    /// true or false.
    Truth(bool),
    /// A date or time, which no key takes.
    Time,
    /// A list.
    List(Vec<Placed>),
    /// Keys with their values.
    Table(Vec<Entry>),
    /// An object that a door hands over as it is: a measure from Python, an array from a file.
    Native(Native),
}

/// An object that was not written as text.
#[derive(Clone)]
pub struct Native {
    /// The object; the rule that reads the key knows its type.
    pub object: Arc<dyn Any + Send + Sync>,
    /// What stands for it in messages and in the normal form.
    pub shown: String,
}

impl fmt::Debug for Native {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
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
    /// An object that a door handed over.
    Native,
}

/// Up to 2⁵³ a float is the whole number that it shows: 1e6 is a prompt length.
fn whole(real: f64) -> Option<u64> {
    let is_whole = (0.0..=9_007_199_254_740_992.0).contains(&real) && real.fract() == 0.0;
    is_whole.then_some(real as u64)
}

impl Written {
    /// A real number, whole if it is one.
    pub fn number(real: f64) -> Self {
        Written::Number { written: real.to_string(), real, whole: whole(real) }
    }

    /// A number as somebody typed it; nothing if it is none.
    pub fn typed_number(text: &str) -> Option<Self> {
        let text = text.trim();
        let real: f64 = text.parse().ok()?;
        let exact = text.parse().ok().or_else(|| whole(real));
        Some(Written::Number { written: text.to_string(), real, whole: exact })
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Written>) -> Self {
        Written::List(items.into_iter().map(Placed::from).collect())
    }

    /// Keys with their values.
    pub fn table(entries: impl IntoIterator<Item = (String, Written)>) -> Self {
        let entry = |(key, value)| Entry { key, place: 0..0, value: Placed::from(value) };
        Written::Table(entries.into_iter().map(entry).collect())
    }

    /// An object that is handed over as it is.
    pub fn native<T: Any + Send + Sync>(object: T, shown: impl Into<String>) -> Self {
        Written::Native(Native { object: Arc::new(object), shown: shown.into() })
    }

    /// A value of TOML, such as an inline table.
    ///
    /// # Errors
    /// Text that is none, with the parser's reason.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let text = format!("it = {text}");
        let table = DeTable::parse(&text).map_err(|error| error.message().replace('\n', "; "))?;
        let mut entries = entries(table.get_ref()).into_iter();
        match (entries.next(), entries.next()) {
            (Some(entry), None) => Ok(entry.value.value),
            // Another line would be another key.
            _ => Err("expected one value on one line".to_string()),
        }
    }

    /// The value that a text of JSON holds. Reading is strict: a key that stands twice is refused, as in TOML.
    ///
    /// # Errors
    /// Text that is no JSON, with the parser's reason.
    pub fn from_json_text(text: &str) -> Result<Self, String> {
        let Strict(value) = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Written::from_json(&value).unwrap_or_else(|| Written::table([])))
    }

    /// A value of JSON; null counts as a key that is not given.
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        Some(match value {
            serde_json::Value::Null => return None,
            serde_json::Value::Bool(truth) => Written::Truth(*truth),
            serde_json::Value::Number(number) => Written::typed_number(&number.to_string())?,
            serde_json::Value::String(text) => Written::Text(text.clone()),
            serde_json::Value::Array(items) => Written::list(items.iter().filter_map(Written::from_json)),
            serde_json::Value::Object(entries) => Written::table(
                entries.iter().filter_map(|(key, value)| Some((key.clone(), Written::from_json(value)?))),
            ),
        })
    }

    /// Whether it is text, a number, a list or another form.
    pub fn form(&self) -> Form {
        match self {
            Written::Text(_) => Form::Text,
            Written::Number { .. } => Form::Number,
            Written::Truth(_) => Form::Truth,
            Written::Time => Form::Time,
            Written::List(_) => Form::List,
            Written::Table(_) => Form::Table,
            Written::Native(_) => Form::Native,
        }
    }

    fn new(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Written::Text(text.to_string()),
            DeValue::Integer(integer) => {
                let whole = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
                let real =
                    i128::from_str_radix(integer.as_str(), integer.radix()).map_or(f64::NAN, |it| it as f64);
                Written::Number { written: integer.to_string(), real, whole }
            }
            DeValue::Float(float) => {
                let real = float.as_str().parse().unwrap_or(f64::NAN);
                Written::Number { written: float.to_string(), real, whole: whole(real) }
            }
            DeValue::Boolean(truth) => Written::Truth(*truth),
            DeValue::Datetime(_) => Written::Time,
            DeValue::Array(items) => Written::List(
                items
                    .iter()
                    .map(|item| Placed { place: item.span(), value: Written::new(item.get_ref()) })
                    .collect(),
            ),
            DeValue::Table(table) => Written::Table(entries(table)),
        }
    }
}

/// A value of JSON in which no key stands twice: serde_json would keep the last and say nothing.
struct Strict(serde_json::Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(serde_json::Value::Null))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Strict, E> {
        Ok(Strict(truth.into()))
    }

    fn visit_i64<E>(self, whole: i64) -> Result<Strict, E> {
        Ok(Strict(whole.into()))
    }

    fn visit_u64<E>(self, whole: u64) -> Result<Strict, E> {
        Ok(Strict(whole.into()))
    }

    fn visit_f64<E>(self, real: f64) -> Result<Strict, E> {
        Ok(Strict(real.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Strict, E> {
        Ok(Strict(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Strict(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Strict, A::Error> {
        let mut table = serde_json::Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            if table.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
        }
        Ok(Strict(table.into()))
    }
}

/// The entries of a table.
pub(super) fn entries(table: &DeTable<'_>) -> Vec<Entry> {
    table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            place: key.span(),
            value: Placed { place: value.span(), value: Written::new(value.get_ref()) },
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
            Form::Native => "an object",
        })
    }
}
