//! Reads a specification strictly: every key asked for by name, every mistake told with file, line and key.
//!
//! Reading and normalising are one pass: each value that is asked for, given or default, is written down, and the
//! text that results says everything that determines a run. Reading that text gives the same text again.
//!
//! ```
//! use esscher_lab::specification::{self, Bounds};
//! let text = "[tokens]\nsigma = 2";
//! let (sigma, normalised) = specification::read("mine.toml", text, |file| {
//!     file.table("tokens", |tokens| tokens.real("sigma", Bounds::Positive, None))
//! })?;
//! assert_eq!((sigma, normalised.as_str()), (2.0, "[tokens]\nsigma = 2.0\n"));
//! let mistake = specification::read("mine.toml", "[tokens]\nsgima = 2", |file| {
//!     file.table("tokens", |tokens| tokens.real("sigma", Bounds::Positive, Some(1.0)))
//! });
//! let mistake = mistake.unwrap_err();
//! assert_eq!(mistake.to_string(), "mine.toml:2:1: there is no key `tokens.sgima`");
//! assert_eq!(mistake.hint.as_deref(), Some("did you mean `sigma`?"));
//! # Ok::<(), specification::Mistake>(())
//! ```

mod normalised;
mod value;

pub use value::Form;

use normalised::Written;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use toml::de::DeTable;
use value::{Entry, Placed, Value};

/// A specification that makes no sense, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file's name as the caller gave it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong, naming the key, what was expected and what was found.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

type Result<T> = std::result::Result<T, Mistake>;

/// Which real numbers are meant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bounds {
    /// Any finite number.
    Any,
    /// Above 0.
    Positive,
    /// 0 or more.
    NotNegative,
    /// From the first to the second, both included.
    Between(f64, f64),
}

impl Bounds {
    fn contain(self, value: f64) -> bool {
        value.is_finite()
            && match self {
                Bounds::Any => true,
                Bounds::Positive => value > 0.0,
                Bounds::NotNegative => value >= 0.0,
                Bounds::Between(low, high) => (low..=high).contains(&value),
            }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bounds::Any => write!(formatter, "a finite number"),
            Bounds::Positive => write!(formatter, "a number above 0"),
            Bounds::NotNegative => write!(formatter, "a number of at least 0"),
            Bounds::Between(low, high) => write!(formatter, "a number from {low} to {high}"),
        }
    }
}

/// Reads a whole file with `reader` and returns what it made, with the normalised text.
///
/// # Errors
/// Text that is not TOML, and whatever the reader or the strict check of its keys finds.
pub fn read<T>(
    file: &str,
    text: &str,
    reader: impl FnOnce(&mut Section) -> Result<T>,
) -> Result<(T, String)> {
    let source = Rc::new(Source { file: file.to_string(), text: text.to_string() });
    let table = DeTable::parse(text).map_err(|error| {
        let place = error.span().unwrap_or(0..0);
        // The parser's messages may spread over lines; ours are sentences.
        source.mistake(place.start, error.message().split('\n').collect::<Vec<_>>().join("; "), None)
    })?;
    let mut section = Section::new(source, String::new(), table.span(), value::entries(table.get_ref()));
    let made = reader(&mut section)?;
    section.check_keys()?;
    let mut text = String::new();
    normalised::table(&mut text, "", &section.written);
    Ok((made, text))
}

#[derive(Debug)]
struct Source {
    file: String,
    text: String,
}

impl Source {
    fn mistake(&self, place: usize, message: String, hint: Option<String>) -> Mistake {
        let before = self.text.get(..place).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[start..].chars().count() + 1;
        Mistake { file: self.file.clone(), line, column, message, hint }
    }
}

/// A table of a specification while it is read.
#[derive(Debug)]
pub struct Section {
    source: Rc<Source>,
    /// The table's own key with a dot, empty for the file.
    prefix: String,
    place: Range<usize>,
    entries: Vec<Entry>,
    asked: Vec<&'static str>,
    written: Vec<(String, Written)>,
}

impl Section {
    fn new(source: Rc<Source>, prefix: String, place: Range<usize>, entries: Vec<Entry>) -> Self {
        Section { source, prefix, place, entries, asked: Vec::new(), written: Vec::new() }
    }

    /// The form of the value of this key, if it is given.
    pub fn form(&mut self, key: &'static str) -> Option<Form> {
        self.find(key).map(|entry| entry.value.value.form())
    }

    /// A real number; required if there is no default.
    pub fn real(&mut self, key: &'static str, bounds: Bounds, default: Option<f64>) -> Result<f64> {
        let value = match self.value(key, default.is_some())? {
            Some(given) => self.number(key, &given, bounds)?,
            None => default.unwrap_or_default(),
        };
        self.write(key, normalised::real(value));
        Ok(value)
    }

    /// A whole number; `1e6` is one too.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        default: Option<u64>,
    ) -> Result<u64> {
        let value = match self.value(key, default.is_some())? {
            Some(given) => self.whole(key, &given, &range)?,
            None => default.unwrap_or_default(),
        };
        self.write(key, value.to_string());
        Ok(value)
    }

    /// A whole number of the file, replaced by another: a choice made at the door, such as another seed.
    ///
    /// # Errors
    /// What the file says must make sense all the same.
    pub fn replaced_integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        replacement: u64,
    ) -> Result<u64> {
        self.integer(key, range, Some(replacement))?;
        self.written.pop();
        self.write(key, replacement.to_string());
        Ok(replacement)
    }

    /// True or false.
    pub fn truth(&mut self, key: &'static str, default: Option<bool>) -> Result<bool> {
        let value = match self.value(key, default.is_some())? {
            Some(Placed { value: Value::Truth(value), .. }) => value,
            Some(other) => return Err(self.expected(key, &other, "true or false")),
            None => default.unwrap_or_default(),
        };
        self.write(key, value.to_string());
        Ok(value)
    }

    /// Any text on one line.
    pub fn text(&mut self, key: &'static str, default: Option<&str>) -> Result<String> {
        let value = match self.value(key, default.is_some())? {
            Some(Placed { place, value: Value::Text(text) }) => {
                if text.chars().any(char::is_control) {
                    return Err(self.at(&place, key, "expected text on one line", None));
                }
                text
            }
            Some(other) => return Err(self.expected(key, &other, "text in quotes")),
            None => default.unwrap_or_default().to_string(),
        };
        self.write(key, normalised::quoted(&value));
        Ok(value)
    }

    /// A list of texts, each on one line.
    pub fn texts(
        &mut self,
        key: &'static str,
        count: RangeInclusive<usize>,
        default: Option<&[&str]>,
    ) -> Result<Vec<String>> {
        let texts = match self.list(key, &count, default.is_some())? {
            Some(items) => items
                .iter()
                .map(|item| match &item.value {
                    Value::Text(text) if !text.chars().any(char::is_control) => Ok(text.clone()),
                    _ => Err(self.expected(key, item, "text in quotes on one line")),
                })
                .collect::<Result<Vec<String>>>()?,
            None => default.unwrap_or_default().iter().map(|text| (*text).to_string()).collect(),
        };
        self.write(key, normalised::list(texts.iter().map(|text| normalised::quoted(text))));
        Ok(texts)
    }

    /// Any text on one line, written down under the name that `proper` gives it: a name that has another one.
    pub fn proper_text(
        &mut self,
        key: &'static str,
        default: Option<&str>,
        proper: impl FnOnce(&str) -> String,
    ) -> Result<String> {
        let value = proper(&self.text(key, default)?);
        self.written.pop();
        self.write(key, normalised::quoted(&value));
        Ok(value)
    }

    /// One of several words.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        options: &[(&'static str, T)],
        default: Option<&'static str>,
    ) -> Result<T> {
        let (word, value) = match (self.value(key, default.is_some())?, default) {
            (Some(given), _) => self.option(key, &given, options)?,
            (None, default) => self.default_option(key, default.unwrap_or_default(), options)?,
        };
        self.write(key, normalised::quoted(word));
        Ok(value)
    }

    /// A list of words, each one of the options.
    pub fn choices<T: Copy>(
        &mut self,
        key: &'static str,
        options: &[(&'static str, T)],
        default: Option<&[&'static str]>,
    ) -> Result<Vec<T>> {
        let found: Vec<(&str, T)> = match self.list(key, &(1..=options.len()), default.is_some())? {
            Some(items) => items.iter().map(|item| self.option(key, item, options)).collect::<Result<_>>()?,
            None => default
                .unwrap_or_default()
                .iter()
                .map(|word| self.default_option(key, word, options))
                .collect::<Result<_>>()?,
        };
        self.write(key, normalised::list(found.iter().map(|(word, _)| normalised::quoted(word))));
        Ok(found.into_iter().map(|(_, value)| value).collect())
    }

    /// A list of real numbers.
    pub fn reals(
        &mut self,
        key: &'static str,
        bounds: Bounds,
        count: RangeInclusive<usize>,
        default: Option<&[f64]>,
    ) -> Result<Vec<f64>> {
        let values = match self.list(key, &count, default.is_some())? {
            Some(items) => {
                items.iter().map(|item| self.number(key, item, bounds)).collect::<Result<Vec<f64>>>()?
            }
            None => default.unwrap_or_default().to_vec(),
        };
        self.write(key, normalised::reals(&values));
        Ok(values)
    }

    /// A list of whole numbers.
    pub fn integers(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        count: RangeInclusive<usize>,
        default: Option<&[u64]>,
    ) -> Result<Vec<u64>> {
        let values = match self.list(key, &count, default.is_some())? {
            Some(items) => {
                items.iter().map(|item| self.whole(key, item, &range)).collect::<Result<Vec<u64>>>()?
            }
            None => default.unwrap_or_default().to_vec(),
        };
        self.write(key, normalised::list(values.iter().map(u64::to_string)));
        Ok(values)
    }

    /// A matrix as a list of rows of equal length, at most `largest` of each; required.
    pub fn matrix(&mut self, key: &'static str, largest: usize) -> Result<Vec<Vec<f64>>> {
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for row in self.list(key, &(1..=largest), false)?.unwrap_or_default() {
            let Value::List(items) = &row.value else {
                return Err(self.expected(key, &row, "a list of rows, [[1, 0], [0, 1]]"));
            };
            let found = items.len();
            if !(1..=largest).contains(&found) {
                let message = format!("expected rows of 1 to {largest} numbers, found {found}");
                return Err(self.at(&row.place, key, &message, None));
            }
            if let Some(first) = rows.first()
                && first.len() != found
            {
                let message = format!("expected rows of equal length, found {found} after {}", first.len());
                return Err(self.at(&row.place, key, &message, None));
            }
            rows.push(items.iter().map(|item| self.number(key, item, Bounds::Any)).collect::<Result<_>>()?);
        }
        self.write(key, normalised::list(rows.iter().map(|row| normalised::reals(row))));
        Ok(rows)
    }

    /// A table; one that is not given is read as an empty one, so that its defaults apply.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        reader: impl FnOnce(&mut Section) -> Result<T>,
    ) -> Result<T> {
        let (place, entries) = match self.value(key, true)? {
            Some(Placed { place, value: Value::Table(entries) }) => (place, Some(entries)),
            Some(other) => return Err(self.expected(key, &other, "a table")),
            None => (self.place.clone(), None),
        };
        let given = entries.is_some();
        let made = self.inside(format!("{}{key}.", self.prefix), place, entries.unwrap_or_default(), reader);
        let (made, written) = made.map_err(|mistake| if given { mistake } else { self.misspelt(mistake) })?;
        self.written.push((key.to_string(), Written::Table(written)));
        Ok(made)
    }

    /// A list of tables, `[[key]]`; required.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        count: RangeInclusive<usize>,
        mut reader: impl FnMut(&mut Section) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (mut made, mut all) = (Vec::new(), Vec::new());
        let items = self.list(key, &count, false)?.unwrap_or_default();
        for (number, item) in items.into_iter().enumerate() {
            let Value::Table(entries) = item.value else {
                return Err(self.expected(key, &item, "a list of tables, [[...]]"));
            };
            let prefix = format!("{}{key}[{}].", self.prefix, number + 1);
            let (one, written) = self.inside(prefix, item.place, entries, &mut reader)?;
            made.push(one);
            all.push(written);
        }
        self.written.push((key.to_string(), Written::Tables(all)));
        Ok(made)
    }

    /// A mistake at this key, or at the table if the key is not given: for values that do not fit together.
    pub fn mistake(&mut self, key: &'static str, message: impl fmt::Display) -> Mistake {
        let place = self.find(key).map(|entry| entry.place.clone()).unwrap_or(self.place.clone());
        self.at(&place, key, &message.to_string(), None)
    }

    /// What a library refuses, as a mistake at this key.
    pub fn accept<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        made: std::result::Result<T, E>,
    ) -> Result<T> {
        made.map_err(|error| self.mistake(key, error))
    }

    fn inside<T>(
        &self,
        prefix: String,
        place: Range<usize>,
        entries: Vec<Entry>,
        reader: impl FnOnce(&mut Section) -> Result<T>,
    ) -> Result<(T, Vec<(String, Written)>)> {
        let mut section = Section::new(self.source.clone(), prefix, place, entries);
        let made = reader(&mut section)?;
        section.check_keys()?;
        Ok((made, section.written))
    }

    fn find(&mut self, key: &'static str) -> Option<&Entry> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// A table that is not there may be one whose name is misspelt: told at that name.
    fn misspelt(&self, mistake: Mistake) -> Mistake {
        let near = self.unknown().find_map(|entry| Some((entry, nearest(&entry.key, &self.asked)?)));
        match near {
            Some((entry, near)) => {
                let hint = format!("did you mean `{near}` where the file says `{}`?", short(&entry.key));
                self.source.mistake(entry.place.start, mistake.message, Some(hint))
            }
            None => mistake,
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !self.asked.contains(&entry.key.as_str()))
    }

    fn value(&mut self, key: &'static str, has_default: bool) -> Result<Option<Placed>> {
        if let Some(entry) = self.find(key) {
            return Ok(Some(entry.value.clone()));
        }
        if has_default {
            return Ok(None);
        }
        let unknown: Vec<&str> = self.unknown().map(|entry| entry.key.as_str()).collect();
        let near = nearest(key, &unknown);
        let place = self.unknown().find(|entry| Some(entry.key.as_str()) == near);
        let place = place.map_or(&self.place, |entry| &entry.place);
        let hint = near.map(|near| format!("did you mean `{key}` where the file says `{}`?", short(near)));
        Err(self.source.mistake(place.start, format!("key `{}{key}` is missing", self.prefix), hint))
    }

    fn list(
        &mut self,
        key: &'static str,
        count: &RangeInclusive<usize>,
        has_default: bool,
    ) -> Result<Option<Vec<Placed>>> {
        let Some(given) = self.value(key, has_default)? else {
            return Ok(None);
        };
        let Value::List(items) = given.value else {
            return Err(self.expected(key, &given, "a list"));
        };
        if !count.contains(&items.len()) {
            let (least, most, found) = (count.start(), count.end(), items.len());
            let message = format!("expected a list of {least} to {most} entries, found {found}");
            return Err(self.at(&given.place, key, &message, None));
        }
        Ok(Some(items))
    }

    fn number(&self, key: &str, given: &Placed, bounds: Bounds) -> Result<f64> {
        match &given.value {
            Value::Number { real, .. } if bounds.contain(*real) => Ok(*real),
            _ => Err(self.expected(key, given, &bounds.to_string())),
        }
    }

    fn whole(&self, key: &str, given: &Placed, range: &RangeInclusive<u64>) -> Result<u64> {
        match &given.value {
            Value::Number { whole: Some(whole), .. } if range.contains(whole) => Ok(*whole),
            _ => {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.expected(key, given, &expected))
            }
        }
    }

    fn option<T: Copy>(
        &self,
        key: &str,
        given: &Placed,
        options: &[(&'static str, T)],
    ) -> Result<(&'static str, T)> {
        let words: Vec<&str> = options.iter().map(|(word, _)| *word).collect();
        let expected = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let Value::Text(word) = &given.value else {
            return Err(self.expected(key, given, &format!("one of {expected}")));
        };
        options.iter().find(|(option, _)| option == word).copied().ok_or_else(|| {
            let hint = nearest(word, &words).map(|word| format!("did you mean \"{word}\"?"));
            let message = format!("expected one of {expected}, found \"{}\"", short(word));
            self.at(&given.place, key, &message, hint)
        })
    }

    fn default_option<T: Copy>(
        &self,
        key: &str,
        word: &str,
        options: &[(&'static str, T)],
    ) -> Result<(&'static str, T)> {
        let default = Placed { place: self.place.clone(), value: Value::Text(word.to_string()) };
        self.option(key, &default, options)
    }

    fn expected(&self, key: &str, given: &Placed, expected: &str) -> Mistake {
        let found = match &given.value {
            Value::Number { written, .. } => short(written),
            Value::Text(text) => format!("the text \"{}\"", short(text)),
            Value::Truth(truth) => truth.to_string(),
            other => other.form().to_string(),
        };
        self.at(&given.place, key, &format!("expected {expected}, found {found}"), None)
    }

    fn at(&self, place: &Range<usize>, key: &str, message: &str, hint: Option<String>) -> Mistake {
        self.source.mistake(place.start, format!("key `{}{key}`: {message}", self.prefix), hint)
    }

    fn check_keys(&self) -> Result<()> {
        let Some(unknown) = self.unknown().next() else {
            return Ok(());
        };
        let message = format!("there is no key `{}{}`", self.prefix, short(&unknown.key));
        let hint = match nearest(&unknown.key, &self.asked) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let keys: Vec<String> = self.asked.iter().map(|key| format!("`{key}`")).collect();
                format!("the keys here are {}", keys.join(", "))
            }
        };
        Err(self.source.mistake(unknown.place.start, message, Some(hint)))
    }

    fn write(&mut self, key: &str, value: String) {
        self.written.push((key.to_string(), Written::Value(value)));
    }
}

/// The candidate closest in spelling, if it is close.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), *candidate))
        .filter(|(distance, candidate)| 3 * distance <= candidate.chars().count().max(3) + 1)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// What a message shows of a word of any length.
fn short(word: &str) -> String {
    let mut shown: String = word.chars().take(40).flat_map(char::escape_debug).collect();
    if word.chars().count() > 40 {
        shown.push('…');
    }
    shown
}
