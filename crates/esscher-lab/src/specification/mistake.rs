//! A request that makes no sense: which key, where it stands, what was expected.

use std::fmt;

/// A request that makes no sense, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it stands, if it was read from a file.
    pub place: Option<Place>,
    /// The whole name of the key, `tokens.scale`; empty if the text could not be read at all.
    pub key: String,
    /// What is wrong with it.
    pub problem: Problem,
    /// What to try.
    pub hint: Option<String>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file's name as the caller gave it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There is no such key.
    Unknown,
    /// The key is needed and not given.
    Missing,
    /// Its value does not fit: what was expected and what was found.
    Wrong(String),
}

impl Mistake {
    /// A mistake of a whole request, which no single key is to blame for.
    pub fn whole(message: impl fmt::Display) -> Self {
        Mistake { place: None, key: String::new(), problem: Problem::Wrong(message.to_string()), hint: None }
    }

    /// The same with what to do.
    pub fn hinted(self, hint: impl Into<String>) -> Self {
        Mistake { hint: Some(hint.into()), ..self }
    }

    /// The sentence without the place.
    pub fn message(&self) -> String {
        let key = &self.key;
        match &self.problem {
            Problem::Unknown => format!("there is no key `{key}`"),
            Problem::Missing => format!("key `{key}` is missing"),
            Problem::Wrong(message) if key.is_empty() => message.clone(),
            Problem::Wrong(message) => format!("key `{key}`: {message}"),
        }
    }

    /// The line of the file, 0 where there is none.
    pub fn line(&self) -> usize {
        self.place.as_ref().map_or(0, |place| place.line)
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { file, line, column }) = &self.place {
            write!(formatter, "{file}:{line}:{column}: ")?;
        }
        formatter.write_str(&self.message())
    }
}

impl std::error::Error for Mistake {}

/// What a message shows of a word of any length.
pub(super) fn short(word: &str) -> String {
    let mut shown = esscher_core::visible(&word.chars().take(40).collect::<String>());
    if word.chars().count() > 40 {
        shown.push('…');
    }
    shown
}
