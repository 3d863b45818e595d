//! What was written, whichever door it came through: a tree of values, which know their places if they come from a file.

use super::mistake::short;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashSet;
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
        /// The double that it is, or why there is none.
        real: Result<f64, NoDouble>,
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

/// Why no double stands for a text, as the rest of a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoDouble {
    /// Words, two numbers, nothing.
    #[error("is not a number")]
    NotANumber,
    /// Not zero, but a double would be.
    #[error("is too small for a double, which would hold 0 instead")]
    TooSmall,
    /// Finite, but a double would not be.
    #[error("is too large for a double, which holds numbers up to 1.8e308")]
    TooLarge,
    /// All digits are written, as of a whole number, but a double would hold others.
    #[error(
        "is a whole number that a double cannot hold exactly: expected at most 2^53, or a number with an exponent (1e20), which is rounded"
    )]
    NotExact,
}

/// The double that a text stands for: the one rule for what is typed, and for the numbers of files.
///
/// Fractions and numbers with an exponent are rounded to the nearest double, but not to zero or infinity; whole numbers that
/// are written with all their digits are not rounded at all.
///
/// # Errors
/// Why there is none.
pub fn double(text: &str) -> Result<f64, NoDouble> {
    /// So many digits of a whole number always fit.
    const ALWAYS_EXACT: usize = 15;
    let real: f64 = text.parse().map_err(|_| NoDouble::NotANumber)?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    if real == 0.0 && mantissa.contains(|digit| ('1'..='9').contains(&digit)) {
        return Err(NoDouble::TooSmall);
    }
    if real.is_infinite() && text.contains(|digit: char| digit.is_ascii_digit()) {
        return Err(NoDouble::TooLarge);
    }
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let is_whole = digits.len() > ALWAYS_EXACT && digits.bytes().all(|digit| digit.is_ascii_digit());
    if is_whole && format!("{:.0}", real.abs()) != digits {
        return Err(NoDouble::NotExact);
    }
    Ok(real)
}

/// Below 2⁵³ a float is the whole number that it shows: 1e6 is a prompt length. From there on others round to it.
fn whole(real: f64) -> Option<u64> {
    let is_whole = (0.0..9_007_199_254_740_992.0).contains(&real) && real.fract() == 0.0;
    is_whole.then_some(real as u64)
}

impl Written {
    /// A real number, whole if it is one.
    pub fn number(real: f64) -> Self {
        Written::Number { written: real.to_string(), real: Ok(real), whole: whole(real) }
    }

    /// A number as somebody typed it; nothing if it is none.
    pub fn typed_number(text: &str) -> Option<Self> {
        let text = text.trim();
        let real = double(text);
        let exact = text.parse().ok().or_else(|| whole(real.ok()?));
        (real != Err(NoDouble::NotANumber)).then(|| Written::Number {
            written: text.to_string(),
            real,
            whole: exact,
        })
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

    /// The value that a text of JSON holds. Reading is strict: a key that stands twice is refused, as in TOML, and numbers are
    /// those that are written.
    ///
    /// # Errors
    /// Text that is no JSON, with the parser's reason.
    pub fn from_json_text(text: &str) -> Result<Self, String> {
        let numbers = numbers_of_json(text);
        // The parser's own sentence says neither which nor why.
        let is_too_large = |number: &&&str| double(number) == Err(NoDouble::TooLarge);
        if let Some(number) = numbers.iter().find(is_too_large) {
            return Err(format!("{} {}", short(number), NoDouble::TooLarge));
        }
        let numbers = RefCell::new(numbers.into_iter());
        let mut parser = serde_json::Deserializer::from_str(text);
        let value = Json(&numbers).deserialize(&mut parser).and_then(|value| parser.end().map(|()| value));
        Ok(value.map_err(|error| error.to_string())?.unwrap_or_else(|| Written::table([])))
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
                let whole = i128::from_str_radix(integer.as_str(), integer.radix());
                let real = match (&whole, integer.radix()) {
                    (_, 10) => double(integer.as_str()),
                    (Ok(whole), _) => double(&whole.to_string()),
                    (Err(_), _) => Err(NoDouble::NotExact),
                };
                let whole = whole.ok().and_then(|whole| whole.try_into().ok());
                Written::Number { written: integer.to_string(), real, whole }
            }
            DeValue::Float(float) => {
                let real = double(float.as_str());
                Written::Number { written: float.to_string(), real, whole: real.ok().and_then(whole) }
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

/// The numbers of a text of JSON as they are written, in their order: the parser hands on doubles that may be others.
fn numbers_of_json(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(|sign: char| matches!(sign, '"' | '-' | '0'..='9')) {
        rest = &rest[begin..];
        let end = if let Some(inside) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let closes = |sign| {
                let closes = sign == '"' && !is_escaped;
                is_escaped = sign == '\\' && !is_escaped;
                closes
            };
            inside.find(closes).map(|quote| quote + 2)
        } else {
            let end = rest.find(|sign| !matches!(sign, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
            found.push(&rest[..end.unwrap_or(rest.len())]);
            end
        };
        rest = end.map_or("", |end| &rest[end..]);
    }
    found
}

/// Reads a value of JSON in which no key stands twice, where serde_json would keep the last and say nothing; null is none. What is
/// handed in are the texts of its numbers.
#[derive(Clone, Copy)]
struct Json<'a, 'text>(&'a RefCell<std::vec::IntoIter<&'text str>>);

impl Json<'_, '_> {
    fn number<E: serde::de::Error>(self) -> Result<Option<Written>, E> {
        let number = self.0.borrow_mut().next().and_then(Written::typed_number);
        number.map(Some).ok_or_else(|| E::custom("a number was expected"))
    }
}

impl<'de> DeserializeSeed<'de> for Json<'_, '_> {
    type Value = Option<Written>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Option<Written>, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json<'_, '_> {
    type Value = Option<Written>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Option<Written>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Option<Written>, E> {
        Ok(Some(Written::Truth(truth)))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Option<Written>, E> {
        self.number()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Option<Written>, E> {
        self.number()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Option<Written>, E> {
        self.number()
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<Written>, E> {
        Ok(Some(Written::Text(text.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<Written>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item.ok_or_else(|| A::Error::custom("null is no entry of a list"))?);
        }
        Ok(Some(Written::list(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<Written>, A::Error> {
        let mut keys = HashSet::new();
        let mut table = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
            table.extend(value.map(|value| (key, value)));
        }
        Ok(Some(Written::table(table)))
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
