//! Arrays as text: a row of numbers on each line, between commas, semicolons, tabs or spaces.

use super::{Array, Rows, number, open, refuse, refuse_with};
use crate::ending::Trouble;
use std::borrow::Cow;
use std::io::{BufRead, BufReader, IsTerminal, Read};

/// Reads a file of text: `#` begins a comment unless the line has quotes, a first line of words is a heading, entries may stand in
/// quotes (RFC 4180).
pub(super) fn file(path: &str, most: usize) -> Result<Array, Trouble> {
    read(path, open(path)?, most)
}

/// Reads what is piped in, as a file of text; a stream without an end is not followed for ever.
pub(super) fn piped(name: &str, most: usize) -> Result<Array, Trouble> {
    // So many bytes for a number are more than anybody writes.
    const LONGEST_NUMBER: u64 = 32;
    let stream = std::io::stdin();
    if stream.is_terminal() {
        crate::output::tell("reading tokens from the terminal: a row on each line, Ctrl-D at the end");
    }
    read(name, stream.lock().take(LONGEST_NUMBER.saturating_mul(most as u64)), most)
}

fn read(path: &str, source: impl Read, most: usize) -> Result<Array, Trouble> {
    let mut records = Records { reader: BufReader::new(source), line: 1, is_after_return: false };
    let mut delimiter = None;
    let mut rows = Rows::new(most);
    let mut is_first = true;
    while let Some((line, record)) = records.next().map_err(|reason| refuse(path, reason))? {
        let at = |reason: &str| refuse(path, format!("line {line}: {reason}"));
        let mut bytes = record.as_slice();
        if line == 1 {
            if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
                return Err(refuse_with(path, "it is UTF-16 text, expected UTF-8", "save it as CSV UTF-8"));
            }
            // Excel begins UTF-8 with a mark.
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        let record = std::str::from_utf8(bytes).map_err(|_| at("it is not UTF-8 text"))?;
        // Tabs stay: between two of them, or beside one, an entry may be missing.
        let record = record.trim_matches([' ', '\u{a0}']);
        if record.contains('\0') {
            return Err(at("it holds a zero byte, expected text"));
        }
        let record = match record.find('#') {
            Some(comment) if record[..comment].trim().is_empty() => "",
            Some(comment) if !record.contains('"') => record[..comment].trim_end_matches([' ', '\u{a0}']),
            _ => record,
        };
        if record.trim().is_empty() {
            continue;
        }
        if is_first {
            delimiter = ['\t', ';', ','].into_iter().find(|mark| split(record, Some(*mark)).len() > 1);
        }
        let entries = split(record, delimiter);
        if std::mem::take(&mut is_first) && is_heading(&entries) {
            continue;
        }
        for entry in &entries {
            rows.values.push(number(entry.trim()).map_err(|reason| at(&reason))?);
        }
        rows.end().map_err(|reason| refuse(path, reason))?;
    }
    rows.array(path.to_string()).map_err(|reason| refuse(path, reason))
}

/// Whether the entries of the first line are words, of which some may be left out; a number that went wrong, such as 1,000 or $5, is none.
fn is_heading(entries: &[Cow<'_, str>]) -> bool {
    let begin = |entry: &str| entry.chars().find(|letter| letter.is_alphanumeric());
    let is_word = |entry: &str| {
        entry.trim().parse::<f64>().is_err() && begin(entry).is_some_and(|letter| !letter.is_numeric())
    };
    entries.iter().any(|entry| is_word(entry))
        && entries.iter().all(|entry| is_word(entry) || entry.trim().is_empty())
}

/// The entries of a line; between quotes a delimiter is a character as any other, and two quotes stand for one.
fn split(record: &str, delimiter: Option<char>) -> Vec<Cow<'_, str>> {
    if !record.contains('"') {
        return match delimiter {
            Some(mark) => record.split(mark).map(Cow::from).collect(),
            None => record.split_whitespace().map(Cow::from).collect(),
        };
    }
    let is_mark = |letter: &char| delimiter.map_or(letter.is_whitespace(), |mark| *letter == mark);
    let is_blank = |letter: &char| letter.is_whitespace() && Some(*letter) != delimiter;
    let mut entries = Vec::new();
    let mut letters = record.chars().peekable();
    loop {
        while letters.next_if(is_blank).is_some() {}
        let mut entry = String::new();
        let is_quoted = letters.next_if_eq(&'"').is_some();
        if is_quoted {
            while let Some(letter) = letters.next() {
                if letter == '"' && letters.next_if_eq(&'"').is_none() {
                    break;
                }
                entry.push(letter);
            }
        }
        let mut rest = String::new();
        while let Some(letter) = letters.next_if(|letter| !is_mark(letter)) {
            rest.push(letter);
        }
        // What follows a closing quote belongs to no number: "1"2 is not 12.
        entries.push(Cow::from(match (is_quoted, rest.trim()) {
            (true, "") => entry,
            (true, rest) => format!("\"{entry}\"{rest}"),
            (false, rest) => rest.to_string(),
        }));
        if letters.next().is_none() {
            return entries;
        }
    }
}

/// A row of the largest dimension takes some kilobytes.
const LONGEST_RECORD: usize = 16 << 20;

/// The lines of a file, ended in any of the three ways; an end between quotes does not count.
struct Records<R> {
    reader: BufReader<R>,
    /// The line that is read next, from 1.
    line: usize,
    /// A line feed that follows belongs to the line before.
    is_after_return: bool,
}

impl<R: Read> Records<R> {
    /// The number of the line and its bytes; nothing at the end of the file.
    fn next(&mut self) -> Result<Option<(usize, Vec<u8>)>, String> {
        let first = self.line;
        let mut record = Vec::new();
        let mut is_quoted = false;
        loop {
            let buffer = self.reader.fill_buf().map_err(|error| error.to_string())?;
            if buffer.is_empty() {
                return match (is_quoted, record.is_empty()) {
                    (true, _) => Err(format!("line {first}: a quote is not closed")),
                    (false, true) => Ok(None),
                    (false, false) => Ok(Some((first, record))),
                };
            }
            let mut used = 0;
            let mut is_whole = false;
            for byte in buffer {
                used += 1;
                let is_second = std::mem::take(&mut self.is_after_return) && *byte == b'\n';
                if is_second {
                    continue;
                }
                let is_end = matches!(byte, b'\n' | b'\r');
                self.line += usize::from(is_end);
                self.is_after_return = *byte == b'\r';
                if is_end && !is_quoted {
                    is_whole = true;
                    break;
                }
                if *byte == b'"' && !record.trim_ascii_start().starts_with(b"#") {
                    is_quoted = !is_quoted && opens(&record);
                }
                record.push(*byte);
            }
            self.reader.consume(used);
            if is_whole {
                return Ok(Some((first, record)));
            }
            if record.len() > LONGEST_RECORD {
                return Err(format!("line {first} has more than {LONGEST_RECORD} bytes"));
            }
        }
    }
}

/// Whether a quote after this opens an entry, or goes on in one after a quote that stood for itself.
fn opens(before: &[u8]) -> bool {
    before.last().is_none_or(|byte| b",;\t \"".contains(byte))
}
