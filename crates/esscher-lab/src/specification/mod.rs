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

mod keys;
mod mistake;
mod normalised;
mod rules;
mod settings;
mod written;

pub use keys::{Keys, schema_of};
pub use mistake::{Mistake, Place, Problem};
pub use rules::{
    Kind, Rule, choice, choices, integer, integers, one_of, own, real, reals, shared, some_of, table, tables,
    text, texts, truth,
};
pub use settings::settings;
pub use written::{Form, Native, NoDouble, Written, double};

use mistake::short;
use normalised::Normal;
use std::any::Any;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::rc::Rc;
use std::sync::Arc;
use toml::de::DeTable;
use written::{Entry, Placed};

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
    let source = Source { file: file.to_string(), text: text.to_string() };
    let table = DeTable::parse(text).map_err(|error| {
        let place = source.place(error.span().unwrap_or(0..0).start);
        // The parser's messages may spread over lines; ours are sentences.
        let message = error.message().split('\n').collect::<Vec<_>>().join("; ");
        let is_json = text.trim_start().starts_with('{');
        let hint =
            is_json.then(|| "this is read as TOML and looks like JSON: write `key = value`".to_string());
        Mistake { place: Some(place), key: String::new(), problem: Problem::Wrong(message), hint }
    })?;
    let entries = written::entries(table.get_ref());
    read_section(Section::new(Some(Rc::new(source)), String::new(), table.span(), entries), reader)
}

/// Reads what a door has written down itself: no file, so mistakes name the key alone.
///
/// # Errors
/// As [`read`], and anything but a table.
pub fn read_written<T>(
    written: Written,
    reader: impl FnOnce(&mut Section) -> Result<T>,
) -> Result<(T, String)> {
    match written {
        Written::Table(entries) => read_section(Section::new(None, String::new(), 0..0, entries), reader),
        other => {
            let problem = Problem::Wrong(format!("expected keys with their values, found {}", other.form()));
            Err(Mistake { place: None, key: String::new(), problem, hint: None })
        }
    }
}

fn read_section<T>(
    mut section: Section,
    reader: impl FnOnce(&mut Section) -> Result<T>,
) -> Result<(T, String)> {
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
    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        Place { file: self.file.clone(), line, column: before[start..].chars().count() + 1 }
    }
}

/// A table of a specification while it is read.
#[derive(Debug)]
pub struct Section {
    /// The file, if there is one.
    source: Option<Rc<Source>>,
    /// The table's own key with a dot, empty for the file.
    prefix: String,
    place: Range<usize>,
    entries: Vec<Entry>,
    asked: Vec<&'static str>,
    written: Vec<(String, Normal)>,
    /// What readers may use beside the keys, and their tables too.
    provided: Option<Rc<dyn Any>>,
}

impl Section {
    fn new(source: Option<Rc<Source>>, prefix: String, place: Range<usize>, entries: Vec<Entry>) -> Self {
        Section { source, prefix, place, entries, asked: Vec::new(), written: Vec::new(), provided: None }
    }

    /// Hands readers something beside the keys, such as a store of files; tables inside get it too.
    pub fn provide<T: Any>(&mut self, provided: T) {
        self.provided = Some(Rc::new(provided));
    }

    /// What was handed over beside the keys, if it is of this type.
    pub fn provided<T: Any>(&self) -> Option<Rc<T>> {
        self.provided.clone()?.downcast().ok()
    }

    /// The form of the value of this key, if it is given.
    pub fn form(&mut self, key: &'static str) -> Option<Form> {
        self.find(key).map(|entry| entry.value.value.form())
    }

    /// The value of this key if a door handed over an object of this type; it is written down as `shown` says.
    pub fn native<T: Any + Send + Sync>(&mut self, key: &'static str) -> Option<Arc<T>> {
        let native = match &self.find(key)?.value.value {
            Written::Native(native) => native.clone(),
            _ => return None,
        };
        let made = native.object.downcast().ok()?;
        self.write(key, normalised::quoted(&native.shown));
        Some(made)
    }

    /// The value of this key, if it is given: for short forms, which stand for a longer one.
    pub fn written(&mut self, key: &'static str) -> Option<&Written> {
        self.find(key).map(|entry| &entry.value.value)
    }

    /// Puts the longer form of a value in its place.
    pub fn replace(&mut self, key: &'static str, longer: Written) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            entry.value.value = longer;
        }
    }

    /// Writes down what stands for a key that may be left out and was: a default that is known only after all keys are read.
    /// What is written down is then in the order in which keys were asked for.
    ///
    /// ```
    /// use esscher_lab::specification::{self, Written};
    /// let (_, text) = specification::read("mine.toml", "size = 2", |file| {
    ///     let given = file.form("count");
    ///     let size = file.integer("size", 1..=9, None)?;
    ///     if given.is_none() {
    ///         file.fill("count", &Written::number(10.0 / size as f64));
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!(text, "count = 5\nsize = 2\n");
    /// # Ok::<(), specification::Mistake>(())
    /// ```
    pub fn fill(&mut self, key: &'static str, value: &Written) {
        self.find(key);
        self.write(key, normalised::written(value));
        let asked = &self.asked;
        self.written.sort_by_key(|(key, _)| asked.iter().position(|known| known == key));
    }

    /// Takes back what was written down for keys that have no part here after all.
    pub fn omit(&mut self, keys: &[&'static str]) {
        self.written.retain(|(key, _)| !keys.contains(&key.as_str()));
    }

    /// Every key that is given here.
    pub fn given(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.key.as_str())
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
        self.write(key, replacement.to_string());
        Ok(replacement)
    }

    /// True or false.
    pub fn truth(&mut self, key: &'static str, default: Option<bool>) -> Result<bool> {
        let value = match self.value(key, default.is_some())? {
            Some(Placed { value: Written::Truth(value), .. }) => value,
            Some(other) => return Err(self.expected(key, &other, "true or false")),
            None => default.unwrap_or_default(),
        };
        self.write(key, value.to_string());
        Ok(value)
    }

    /// Any text on one line.
    pub fn text(&mut self, key: &'static str, default: Option<&str>) -> Result<String> {
        let value = match self.value(key, default.is_some())? {
            Some(Placed { value: Written::Text(text), .. }) if !text.chars().any(char::is_control) => text,
            Some(other @ Placed { value: Written::Text(_), .. }) => {
                return Err(self.expected(key, &other, "text on one line"));
            }
            Some(other) => return Err(self.expected(key, &other, "text in quotes")),
            None => default.unwrap_or_default().to_string(),
        };
        self.write(key, normalised::quoted(&value));
        Ok(value)
    }

    /// A name of at most so many characters, on one line, of which something can be seen.
    pub fn name(&mut self, key: &'static str, default: Option<&str>, longest: usize) -> Result<String> {
        let name = self.text(key, default)?;
        let count = name.chars().count();
        let found = match name.trim().is_empty() {
            true if count > 0 => "only white space".to_string(),
            _ if (1..=longest).contains(&count) => return Ok(name),
            _ => count.to_string(),
        };
        Err(self.mistake(key, format!("expected a name of 1 to {longest} characters, found {found}")))
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
                    Written::Text(text) if !text.chars().any(char::is_control) => Ok(text.clone()),
                    Written::Text(_) => Err(self.expected(key, item, "text on one line")),
                    _ => Err(self.expected(key, item, "text in quotes")),
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
        let is_again =
            |(index, (word, _)): &(usize, &(&str, T))| found[..*index].iter().any(|(other, _)| other == word);
        if let Some((_, (word, _))) = found.iter().enumerate().find(is_again) {
            return Err(self.mistake(key, format_args!("{word} is named twice; name each once")));
        }
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
            let Written::List(items) = &row.value else {
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
            Some(Placed { place, value: Written::Table(entries) }) => (place, Some(entries)),
            Some(other) => return Err(self.expected(key, &other, "a table")),
            None => (self.place.clone(), None),
        };
        let given = entries.is_some();
        let made = self.inside(format!("{}{key}.", self.prefix), place, entries.unwrap_or_default(), reader);
        let (made, written) = made.map_err(|mistake| if given { mistake } else { self.misspelt(mistake) })?;
        self.set(key, Normal::Table(written));
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
            let Written::Table(entries) = item.value else {
                return Err(self.expected(key, &item, "a list of tables, [[...]]"));
            };
            let prefix = format!("{}{key}[{}].", self.prefix, number + 1);
            let (one, written) = self.inside(prefix, item.place, entries, &mut reader)?;
            made.push(one);
            all.push(written);
        }
        self.set(key, Normal::Tables(all));
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
    ) -> Result<(T, Vec<(String, Normal)>)> {
        let mut section = Section::new(self.source.clone(), prefix, place, entries);
        section.provided.clone_from(&self.provided);
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
                let hint = format!("did you mean `{near}` where you wrote `{}`?", short(&entry.key));
                Mistake { place: self.place_of(&entry.place), hint: Some(hint), ..mistake }
            }
            None => mistake,
        }
    }

    fn unknown(&self) -> impl Iterator<Item = &Entry> {
        // By this key of a file editors find its schema.
        let is_of_editors = |entry: &Entry| self.prefix.is_empty() && entry.key == "$schema";
        self.entries
            .iter()
            .filter(move |entry| !self.asked.contains(&entry.key.as_str()) && !is_of_editors(entry))
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
        let hint = near.map(|near| format!("did you mean `{key}` where you wrote `{}`?", short(near)));
        Err(self.told(place, key, Problem::Missing, hint))
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
        let Written::List(items) = given.value else {
            return Err(self.expected(key, &given, "a list"));
        };
        if !count.contains(&items.len()) {
            let (least, most, found) = (count.start(), count.end(), items.len());
            let expected = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            let message = format!("expected a list of {expected} entries, found {found}");
            return Err(self.at(&given.place, key, &message, None));
        }
        Ok(Some(items))
    }

    fn number(&self, key: &str, given: &Placed, bounds: Bounds) -> Result<f64> {
        match &given.value {
            Written::Number { real: Ok(real), .. } if bounds.contain(*real) => Ok(*real),
            Written::Number { real: Ok(real), .. }
                if real.is_infinite() && !matches!(bounds, Bounds::Between(..)) =>
            {
                Err(self.expected(key, given, &Bounds::Any.to_string()))
            }
            Written::Number { written, real: Err(reason), .. } => {
                Err(self.at(&given.place, key, &format!("{} {reason}", short(written)), None))
            }
            _ => Err(self.expected(key, given, &bounds.to_string())),
        }
    }

    fn whole(&self, key: &str, given: &Placed, range: &RangeInclusive<u64>) -> Result<u64> {
        match &given.value {
            Written::Number { whole: Some(whole), .. } if range.contains(whole) => Ok(*whole),
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
        let Written::Text(word) = &given.value else {
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
        let default = Placed { place: self.place.clone(), value: Written::Text(word.to_string()) };
        self.option(key, &default, options)
    }

    fn expected(&self, key: &str, given: &Placed, expected: &str) -> Mistake {
        let found = match &given.value {
            Written::Number { written, .. } => short(written),
            Written::Text(text) => format!("the text \"{}\"", short(text)),
            Written::Truth(truth) => truth.to_string(),
            other => other.form().to_string(),
        };
        self.at(&given.place, key, &format!("expected {expected}, found {found}"), None)
    }

    fn at(&self, place: &Range<usize>, key: &str, message: &str, hint: Option<String>) -> Mistake {
        self.told(place, key, Problem::Wrong(message.to_string()), hint)
    }

    fn told(&self, place: &Range<usize>, key: &str, problem: Problem, hint: Option<String>) -> Mistake {
        Mistake { place: self.place_of(place), key: format!("{}{key}", self.prefix), problem, hint }
    }

    fn place_of(&self, place: &Range<usize>) -> Option<Place> {
        self.source.as_ref().map(|source| source.place(place.start))
    }

    fn check_keys(&self) -> Result<()> {
        let Some(unknown) = self.unknown().next() else {
            return Ok(());
        };
        let hint = match nearest(&unknown.key, &self.asked) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let keys: Vec<String> = self.asked.iter().map(|key| format!("`{key}`")).collect();
                format!("the keys here are {}", keys.join(", "))
            }
        };
        Err(self.told(&unknown.place, &short(&unknown.key), Problem::Unknown, Some(hint)))
    }

    fn write(&mut self, key: &str, value: String) {
        self.set(key, Normal::Value(value));
    }

    /// Writes a key down; one that is read again is written again in its place.
    fn set(&mut self, key: &str, value: Normal) {
        match self.written.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.written.push((key.to_string(), value)),
        }
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
