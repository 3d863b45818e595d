//! The header of an array: the type of its numbers, its shape and its order, written as a Python dictionary.

use std::fmt;
use std::io::{self, ErrorKind, Read};

/// What an array says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The type of its entries.
    pub number: NumberType,
    /// Its sides; none of a single number.
    pub shape: Vec<u64>,
    /// Whether the first index runs fastest.
    pub is_fortran: bool,
    /// The bytes before the first entry.
    pub bytes: u64,
}

/// A type of NumPy such as `<f8`: byte order, letter, size in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberType {
    written: String,
    /// Its kind: `f` of floating-point numbers, `i`, `u`, `b`, `c`, `U`, `O`, `M`, `m` and others.
    pub letter: char,
    /// Bytes of an entry; of a text, its letters.
    pub size: u64,
    /// Whether the most significant byte comes first.
    pub is_big_endian: bool,
}

/// Why bytes are no array.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// Other first bytes.
    #[error("it is no NumPy array: it does not begin like one")]
    Other,
    /// Of the future.
    #[error("its format has the version {0}, expected 1 to 3")]
    Version(u8),
    /// The bytes end too early.
    #[error("it is truncated: it ends inside its header")]
    Truncated,
    /// Longer than any that NumPy writes for numbers.
    #[error("its header would have {0} bytes")]
    Long(u64),
    /// No dictionary of the three keys.
    #[error("its header makes no sense: {0}")]
    Senseless(String),
    /// Entries of several fields.
    #[error("its entries are records, expected numbers")]
    Records,
    /// The stream failed.
    #[error(transparent)]
    Stream(#[from] io::Error),
}

/// How every array begins.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers of real files have some hundred bytes.
const LONGEST: u64 = 1 << 16;

impl Header {
    /// Reads the header of an array of so many bytes, and nothing behind it.
    ///
    /// # Errors
    /// Bytes that are no array of numbers, or end inside the header.
    pub fn read(stream: &mut impl Read, bytes: u64) -> Result<Self, HeaderError> {
        if bytes == 0 {
            return Err(HeaderError::Empty);
        }
        let mut start = [0; 12];
        let known = bytes.min(MAGIC.len() as u64) as usize;
        stream.read_exact(&mut start[..known]).map_err(ended)?;
        if !MAGIC.starts_with(&start[..known]) {
            return Err(HeaderError::Other);
        }
        stream.read_exact(&mut start[known..10]).map_err(ended)?;
        // Since version 2 the length of the header has four bytes instead of two.
        let (begun, length) = match start[6] {
            1 => (10, u64::from(u16::from_le_bytes([start[8], start[9]]))),
            2 | 3 => {
                stream.read_exact(&mut start[10..]).map_err(ended)?;
                (12, u64::from(u32::from_le_bytes([start[8], start[9], start[10], start[11]])))
            }
            version => return Err(HeaderError::Version(version)),
        };
        if length > LONGEST {
            return Err(HeaderError::Long(length));
        }
        let mut text = vec![0; length as usize];
        stream.read_exact(&mut text).map_err(ended)?;
        let mut words = Words { text: &text };
        let (number, shape, is_fortran) = words.dictionary()?;
        Ok(Header { number, shape, is_fortran, bytes: begun + length })
    }

    /// The number of entries, if it is one.
    pub fn entries(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |product, side| product.checked_mul(*side))
    }
}

fn ended(error: io::Error) -> HeaderError {
    match error.kind() {
        ErrorKind::UnexpectedEof => HeaderError::Truncated,
        _ => HeaderError::Stream(error),
    }
}

impl NumberType {
    fn read(written: &str) -> Option<Self> {
        let mut letters = written.chars();
        let order = letters.next().filter(|order| "<>|=".contains(*order))?;
        let letter = letters.next().filter(char::is_ascii_alphabetic)?;
        // Dates have their unit behind the size.
        let digits = letters.as_str().split('[').next().unwrap_or_default();
        let size = match (letter, digits) {
            ('O', "") => 8,
            _ => digits.parse().ok()?,
        };
        let is_big_endian = order == '>' || order == '=' && cfg!(target_endian = "big");
        Some(NumberType { written: written.to_string(), letter, size, is_big_endian })
    }
}

impl fmt::Display for NumberType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

/// The part of Python's language in which NumPy writes headers.
struct Words<'a> {
    text: &'a [u8],
}

impl<'a> Words<'a> {
    fn dictionary(&mut self) -> Result<(NumberType, Vec<u64>, bool), HeaderError> {
        let (mut number, mut shape, mut is_fortran) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key = self.quoted()?;
            self.expect(b':')?;
            match key {
                "descr" if number.is_none() => number = Some(self.number()?),
                "shape" if shape.is_none() => shape = Some(self.sides()?),
                "fortran_order" if is_fortran.is_none() => is_fortran = Some(self.truth()?),
                _ => return Err(senseless("a key that is unknown or there twice")),
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        if !self.text.trim_ascii().is_empty() {
            return Err(senseless("text behind its dictionary"));
        }
        match (number, shape, is_fortran) {
            (Some(number), Some(shape), Some(is_fortran)) => Ok((number, shape, is_fortran)),
            _ => Err(senseless("expected `descr`, `fortran_order` and `shape`")),
        }
    }

    fn number(&mut self) -> Result<NumberType, HeaderError> {
        self.skip_spaces();
        if self.text.starts_with(b"[") {
            return Err(HeaderError::Records);
        }
        let written = self.quoted()?;
        NumberType::read(written).ok_or_else(|| senseless("expected a type such as '<f8'"))
    }

    fn sides(&mut self) -> Result<Vec<u64>, HeaderError> {
        let mut sides = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            self.skip_spaces();
            let length = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, rest) = self.text.split_at(length);
            let side = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            sides.push(side.ok_or_else(|| senseless("a side of its shape is no whole number below 2^64"))?);
            // Python 2 wrote long numbers so.
            self.text = rest.strip_prefix(b"L").unwrap_or(rest);
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        // NumPy knows no more.
        if sides.len() > 64 {
            return Err(senseless("more than 64 dimensions"));
        }
        Ok(sides)
    }

    fn truth(&mut self) -> Result<bool, HeaderError> {
        self.skip_spaces();
        for (word, truth) in [("True", true), ("False", false)] {
            if let Some(rest) = self.text.strip_prefix(word.as_bytes()) {
                self.text = rest;
                return Ok(truth);
            }
        }
        Err(senseless("expected True or False as its order"))
    }

    fn quoted(&mut self) -> Result<&'a str, HeaderError> {
        self.skip_spaces();
        let unquoted = || senseless("expected a text in quotes");
        let (quote, rest) =
            self.text.split_first().filter(|(quote, _)| b"'\"".contains(quote)).ok_or_else(unquoted)?;
        let end = rest.iter().position(|byte| byte == quote).ok_or_else(unquoted)?;
        let (inside, rest) = rest.split_at(end);
        self.text = &rest[1..];
        let is_plain = inside.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\');
        str::from_utf8(inside).ok().filter(|_| is_plain).ok_or_else(|| senseless("letters that no type has"))
    }

    fn expect(&mut self, byte: u8) -> Result<(), HeaderError> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(senseless(&format!("expected `{}`", char::from(byte)))),
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let rest = self.text.strip_prefix(&[byte]);
        self.text = rest.unwrap_or(self.text);
        rest.is_some()
    }

    fn skip_spaces(&mut self) {
        self.text = self.text.trim_ascii_start();
    }
}

fn senseless(reason: &str) -> HeaderError {
    HeaderError::Senseless(reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of version 1 around a dictionary, and two bytes behind it.
    fn file(dictionary: &str) -> Vec<u8> {
        let length = (dictionary.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, dictionary.as_bytes(), b"xx"].concat()
    }

    fn read(bytes: &[u8]) -> Result<Header, HeaderError> {
        Header::read(&mut &*bytes, bytes.len() as u64)
    }

    #[test]
    fn what_numpy_writes_is_understood() {
        let written = "{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }      \n";
        let bytes = file(written);
        let header = read(&bytes).unwrap();
        assert_eq!((header.shape.as_slice(), header.is_fortran), ([3, 4].as_slice(), true));
        assert_eq!((header.number.letter, header.number.size, header.number.is_big_endian), ('f', 4, true));
        assert_eq!((header.entries(), header.bytes as usize), (Some(12), bytes.len() - 2));
        for (shape, sides) in [("()", vec![]), ("(7,)", vec![7]), ("(5L, 2L)", vec![5, 2])] {
            let header =
                read(&file(&format!("{{\"shape\":{shape},'fortran_order':False,'descr':'<M8[ns]'}}")))
                    .unwrap();
            assert_eq!((header.shape, header.number.to_string().as_str()), (sides, "<M8[ns]"));
        }
    }

    #[test]
    fn anything_else_is_refused_by_its_reason() {
        let plain = "'fortran_order': False, 'shape': (3,)}";
        for (dictionary, reason) in [
            (format!("{{'descr': [('a', '<f8')], {plain}"), "records"),
            (format!("{{'descr': 'f8', {plain}"), "a type such as"),
            (format!("{{'descr': '<f8', 'descr': '<f8', {plain}"), "there twice"),
            (format!("{{'descr': '<f8', {plain} more"), "behind its dictionary"),
            ("{'descr': '<f8'}".to_string(), "expected `descr`"),
            ("{'descr': '<f8', 'fortran_order': 0, 'shape': ()}".to_string(), "True or False"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}".to_string(), "whole number"),
            (
                "{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551616,)}".to_string(),
                "whole number",
            ),
            ("((((".to_string(), "expected `{`"),
        ] {
            let refused = read(&file(&dictionary)).unwrap_err().to_string();
            assert!(refused.contains(reason), "{dictionary}: {refused}");
        }
        let huge = read(&file("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"))
            .unwrap();
        assert_eq!(huge.entries(), None);
    }

    #[test]
    fn bytes_that_end_early_are_truncated_wherever_they_end() {
        let whole = file("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}");
        for length in 1..whole.len() - 2 {
            assert!(matches!(read(&whole[..length]), Err(HeaderError::Truncated)), "{length}");
        }
        assert!(matches!(read(b""), Err(HeaderError::Empty)));
        assert!(matches!(read(b"PK\x03\x04"), Err(HeaderError::Other)));
        assert!(matches!(read(b"\x93NUMPY\x04\x00\x00\x00"), Err(HeaderError::Version(4))));
        assert!(matches!(read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"), Err(HeaderError::Long(_))));
    }
}
