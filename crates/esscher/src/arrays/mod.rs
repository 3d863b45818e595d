//! Arrays from the command line: numbers as they are typed, and files in NumPy's formats or as text.

mod numpy;
mod table;

use crate::ending::Trouble;
use esscher_core::measure::Empirical;
use esscher_lab::ErrorKind::{self, Usage};
use esscher_lab::specification::{NoDouble, double};
use esscher_questions::asking;
use std::fmt::Display;
use std::path::Path;

/// Rows of numbers, with the name that messages use.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    name: String,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Row after row.
    pub(crate) values: Vec<f64>,
    /// Given as a list, which may be a row or a column.
    is_list: bool,
}

/// Tokens are at most so many numbers: 4 GiB as doubles, which suits a workstation.
pub(crate) const MOST_IN_TOKENS: usize = 1 << 29;

/// An array that stands for an option has at most so many: it is checked entry by entry, which takes more memory than tokens do.
const MOST_IN_AN_OPTION: usize = 1 << 24;

/// A file of an array, known by its ending in small or capital letters.
pub(crate) struct ArrayFile<'a> {
    path: &'a str,
    format: Format<'a>,
}

enum Format<'a> {
    Npy,
    /// An archive, and the array of it that is meant.
    Npz(Option<&'a str>),
    Text,
    /// Text on standard input.
    Piped,
}

impl<'a> ArrayFile<'a> {
    /// The file that a text names, if it names one.
    pub(crate) fn named(text: &'a str) -> Option<Self> {
        if text == "-" {
            return Some(ArrayFile { path: "standard input", format: Format::Piped });
        }
        if let Some(place) = text.to_ascii_lowercase().rfind(".npz:") {
            let (path, array) = (&text[..place + 4], &text[place + 5..]);
            return Some(ArrayFile { path, format: Format::Npz(Some(array)) });
        }
        let ending = Path::new(text).extension()?.to_str()?.to_ascii_lowercase();
        let format = match ending.as_str() {
            "npy" => Format::Npy,
            "npz" => Format::Npz(None),
            "csv" | "tsv" | "txt" => Format::Text,
            _ => return None,
        };
        Some(ArrayFile { path: text, format })
    }

    /// Its array, of at most so many numbers.
    pub(crate) fn read(&self, most: usize) -> Result<Array, Trouble> {
        let array = match self.format {
            Format::Npy => numpy::file(self.path, most),
            Format::Npz(array) => numpy::archive(self.path, array, most),
            Format::Text => table::file(self.path, most),
            Format::Piped => table::piped(self.path, most),
        }?;
        array.finite()
    }
}

impl Array {
    /// An array that stands for an option: from a file if the text names one, else numbers, rows between `;`, entries between `,`.
    pub(crate) fn read(text: &str) -> Result<Self, Trouble> {
        match ArrayFile::named(text) {
            Some(file) => file.read(MOST_IN_AN_OPTION),
            None => typed(text)?.finite(),
        }
    }

    /// A prompt: one token per row; a list is tokens of dimension one.
    pub(crate) fn prompt(&self) -> Result<Empirical, Trouble> {
        let dimension = if self.is_list { 1 } else { self.columns };
        if dimension > asking::LARGEST_DIMENSION {
            let (name, most) = (&self.name, asking::LARGEST_DIMENSION);
            let message = format!("{name}: expected tokens of dimension up to {most}, found {dimension}");
            return Err(Trouble::with_hint(ErrorKind::Array, message, "a prompt has one token per row"));
        }
        Empirical::from_tokens(dimension, &self.values)
            .map_err(|error| Trouble::request(ErrorKind::Array, error.to_string()))
    }

    fn finite(self) -> Result<Self, Trouble> {
        match self.values.iter().position(|value| !value.is_finite()) {
            None => Ok(self),
            Some(index) => {
                let (row, column) = (index / self.columns, index % self.columns);
                let (name, value) = (&self.name, self.values[index]);
                let message = format!("{name}: entry [{row}, {column}] is {value}, expected a finite number");
                Err(Trouble::request(ErrorKind::Array, message))
            }
        }
    }
}

/// The beginning of what was typed, for messages.
fn shortened(text: &str) -> String {
    let begin: String = text.chars().take(40).collect();
    if text.chars().nth(40).is_some() { begin + "…" } else { begin }
}

fn refuse(name: &str, reason: impl Display) -> Trouble {
    Trouble::request(ErrorKind::Array, format!("cannot read {name}: {reason}"))
}

fn refuse_with(name: &str, reason: impl Display, hint: impl Into<String>) -> Trouble {
    Trouble::with_hint(ErrorKind::Array, format!("cannot read {name}: {reason}"), hint)
}

/// A file, open; what it is, is known before anything is read.
fn open(path: &str) -> Result<std::fs::File, Trouble> {
    esscher_lab::open_file(Path::new(path)).map_err(|error| Trouble::Request {
        kind: error.kind(),
        message: error.to_string(),
        hint: None,
    })
}

fn typed(text: &str) -> Result<Array, Trouble> {
    let name = format!("`{}`", shortened(text));
    let unbracketed = without_brackets(text);
    let text = unbracketed.as_deref().unwrap_or(text);
    let number = |entry: &str| {
        per_cent(entry).map_or_else(|| number(entry), Ok).map_err(|reason| {
            let hint = "give numbers like 0.5,-1 (rows between ;) or a file .npy, .npz:NAME, .csv";
            Trouble::with_hint(Usage, format!("{name}: {reason}"), hint)
        })
    };
    let refused = |reason: String| Trouble::request(Usage, format!("{name}: {reason}"));
    let mut rows = Rows::new(MOST_IN_AN_OPTION);
    for row in text.split(';') {
        for entries in row.split(',') {
            // Blanks part entries too.
            let mut entries = entries.split_whitespace().peekable();
            if entries.peek().is_none() && !text.trim().is_empty() {
                return Err(refused("an entry is empty, expected a number".to_string()));
            }
            for entry in entries {
                rows.values.push(number(entry)?);
            }
        }
        rows.end().map_err(refused)?;
    }
    rows.array(name.clone()).map_err(refused)
}

/// Rows in brackets, as Python writes them, `[0.5, -1]` or `[[1, 0], [0, 1]]`, with semicolons between them instead.
fn without_brackets(text: &str) -> Option<String> {
    fn inside(text: &str) -> Option<&str> {
        Some(text.trim().strip_prefix('[')?.strip_suffix(']')?.trim())
    }
    let inner = inside(text)?;
    let rows = match inside(inner) {
        None => inner.to_string(),
        Some(rows) => {
            let mut rows = rows.split(']').map(str::trim);
            let first = rows.next()?.to_string();
            rows.try_fold(first, |all, row| {
                let row = row.strip_prefix(',')?.trim_start().strip_prefix('[')?;
                Some(all + ";" + row)
            })?
        }
    };
    (!rows.contains(['[', ']'])).then_some(rows)
}

/// The number that is written, or the reason why a double is not that number.
fn number(entry: &str) -> Result<f64, String> {
    double(entry).map_err(|reason| match (reason, entry) {
        (_, "") => "an entry is empty, expected a number".to_string(),
        (NoDouble::NotANumber, _) => format!("`{}` {reason}", shortened(entry)),
        _ => format!("{} {reason}", shortened(entry)),
    })
}

/// The number behind a per cent that was typed: `1%` is 0.01, to the last digit.
pub(crate) fn per_cent(text: &str) -> Option<f64> {
    let digits = text.trim().strip_suffix('%')?.trim_end();
    let is_plain = !digits.contains(['e', 'E']);
    double(&format!("{digits}e-2")).ok().filter(|share| is_plain && share.is_finite())
}

/// Rows that are read one after the other.
struct Rows {
    values: Vec<f64>,
    rows: usize,
    columns: usize,
    /// Numbers, at most.
    most: usize,
}

impl Rows {
    fn new(most: usize) -> Self {
        Rows { values: Vec::new(), rows: 0, columns: 0, most }
    }

    /// Ends a row, which must be as long as the others; the reason if it is not.
    fn end(&mut self) -> Result<(), String> {
        let found = self.values.len() - self.rows * self.columns;
        if self.rows == 0 {
            self.columns = found;
        }
        self.rows += 1;
        if found != self.columns {
            return Err(format!("row {} has {found} entries, expected {}", self.rows, self.columns));
        }
        if self.values.len() > self.most {
            return Err(format!("it holds more than {} numbers", self.most));
        }
        Ok(())
    }

    fn array(self, name: String) -> Result<Array, String> {
        let Rows { values, rows, columns, .. } = self;
        if values.is_empty() {
            return Err("it holds no numbers".to_string());
        }
        Ok(Array { name, rows, columns, values, is_list: false })
    }
}
