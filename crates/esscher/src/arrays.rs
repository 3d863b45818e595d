//! Arrays from the command line: numbers as they are typed, .npy, .npz and CSV files.

use crate::ending::Trouble;
use esscher_core::measure::Empirical;
use esscher_questions::asking;
use npyz::{DType, NpyFile, NpyHeader, Order};
use std::fs;
use std::io::Read;
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

/// Files larger than this are refused before they fill the memory.
const LARGEST_FILE: u64 = 16 << 30;

impl Array {
    /// Reads a file if the text names one by its ending, else numbers: rows between `;`, entries between `,`.
    pub(crate) fn read(text: &str) -> Result<Self, Trouble> {
        let (path, array) = match text.rsplit_once(".npz:") {
            Some((stem, array)) => (format!("{stem}.npz"), Some(array)),
            None => (text.to_string(), None),
        };
        let array = match Path::new(&path).extension().and_then(|ending| ending.to_str()) {
            Some("npy") => npy(&path, open(&path)?),
            Some("npz") => npz(&path, array),
            Some("csv" | "tsv" | "txt") => csv(&path),
            _ => typed(text),
        }?;
        if let Some(index) = array.values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (index / array.columns, index % array.columns);
            let value = array.values[index];
            return Err(Trouble::request(format!(
                "{}: entry [{row}, {column}] is {value}, expected a finite number",
                array.name
            )));
        }
        Ok(array)
    }

    /// A prompt: one token per row; a list is tokens of dimension one.
    pub(crate) fn prompt(&self) -> Result<Empirical, Trouble> {
        let dimension = if self.is_list { 1 } else { self.columns };
        if dimension > asking::LARGEST_DIMENSION {
            return Err(Trouble::with_hint(
                format!(
                    "{}: expected tokens of dimension up to {}, found {dimension}",
                    self.name,
                    asking::LARGEST_DIMENSION
                ),
                "a prompt has one token per row",
            ));
        }
        Empirical::from_tokens(dimension, &self.values).map_err(|error| Trouble::request(error.to_string()))
    }
}

/// The beginning of what was typed, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

fn refuse(name: &str, reason: impl std::fmt::Display) -> Trouble {
    Trouble::request(format!("cannot read {name}: {reason}"))
}

fn open(path: &str) -> Result<fs::File, Trouble> {
    fs::File::open(path).map_err(|error| refuse(path, error))
}

fn bytes(path: &str) -> Result<Vec<u8>, Trouble> {
    let mut content = Vec::new();
    open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut content).map_err(|error| refuse(path, error))?;
    if content.len() as u64 > LARGEST_FILE {
        return Err(refuse(path, format!("it has more than {LARGEST_FILE} bytes")));
    }
    Ok(content)
}

fn typed(text: &str) -> Result<Array, Trouble> {
    let name = format!("`{}`", shortened(text));
    let number = |entry: &str| {
        entry.parse::<f64>().map_err(|_| {
            Trouble::with_hint(
                format!("{name}: `{}` is not a number", shortened(entry)),
                "give numbers like 0.5,-1 (rows between ;) or a file .npy, .npz:NAME, .csv",
            )
        })
    };
    let row = |row: &str| row.split([',', ' ']).filter(|entry| !entry.is_empty()).map(&number).collect();
    let rows = text.split(';').map(row).collect::<Result<Vec<Vec<f64>>, Trouble>>()?;
    shaped(name, rows)
}

/// Lines of numbers between commas, semicolons, tabs or spaces; a first line of words is a heading, `#` begins a comment.
fn csv(path: &str) -> Result<Array, Trouble> {
    let text = String::from_utf8(bytes(path)?).map_err(|_| refuse(path, "it is not UTF-8 text"))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut delimiter = None;
    let mut rows = Vec::new();
    for (index, (number, line)) in lines.enumerate() {
        if index == 0 {
            delimiter = ['\t', ';', ','].into_iter().find(|mark| line.contains(*mark));
        }
        let entries: Vec<&str> = match delimiter {
            Some(mark) => line.split(mark).map(|entry| entry.trim().trim_matches('"')).collect(),
            None => line.split_whitespace().collect(),
        };
        let numbers: Vec<Result<f64, &str>> =
            entries.into_iter().map(|entry| entry.parse().map_err(|_| entry)).collect();
        if index == 0 && numbers.iter().all(Result::is_err) {
            continue;
        }
        rows.push(numbers.into_iter().collect::<Result<Vec<f64>, &str>>().map_err(|entry| {
            refuse(path, format!("line {number}: `{}` is not a number", shortened(entry)))
        })?);
    }
    shaped(path.to_string(), rows)
}

fn shaped(name: String, rows: Vec<Vec<f64>>) -> Result<Array, Trouble> {
    let columns = rows.first().map_or(0, Vec::len);
    if columns == 0 {
        return Err(refuse(&name, "it holds no numbers"));
    }
    if let Some((index, row)) = rows.iter().enumerate().find(|(_, row)| row.len() != columns) {
        return Err(refuse(
            &name,
            format!("row {} has {} entries, expected {columns}", index + 1, row.len()),
        ));
    }
    Ok(Array { name, rows: rows.len(), columns, values: rows.concat(), is_list: false })
}

fn npz(path: &str, array: Option<&str>) -> Result<Array, Trouble> {
    let content = bytes(path)?;
    let mut archive =
        npyz::npz::NpzArchive::new(std::io::Cursor::new(content)).map_err(|error| refuse(path, error))?;
    let names: Vec<String> = archive.array_names().map(str::to_string).collect();
    let wanted = match (array, names.as_slice()) {
        (Some(name), _) if names.iter().any(|found| found == name) => name.to_string(),
        (None, [single]) => single.clone(),
        _ => {
            let hint = format!("it holds {}; write {path}:NAME", names.join(", "));
            let message = match array {
                Some(array) => format!("{path} has no array `{array}`"),
                None => format!("{path} holds {} arrays", names.len()),
            };
            return Err(Trouble::with_hint(message, hint));
        }
    };
    let file = npyz::npz::file_name_from_array_name(&wanted);
    let entry = archive.zip_archive().by_name(&file).map_err(|error| refuse(path, error))?;
    npy(&format!("{path}:{wanted}"), entry)
}

/// An array in NumPy's format, read no further than its header promises.
fn npy(name: &str, mut reader: impl Read) -> Result<Array, Trouble> {
    let header = npy_header(name, &mut reader)?;
    let shape = header.shape().to_vec();
    let DType::Plain(kind) = header.dtype() else {
        return Err(refuse(name, "its entries are records, expected numbers"));
    };
    let size = kind.num_bytes().unwrap_or(0) as u64;
    let entries = shape.iter().try_fold(1_u64, |product, side| product.checked_mul(*side));
    let expected =
        entries.and_then(|entries| entries.checked_mul(size)).filter(|bytes| *bytes <= LARGEST_FILE);
    let Some(expected) = expected else {
        return Err(refuse(name, format!("its shape {shape:?} is too large")));
    };
    if expected == 0 {
        return Err(refuse(name, format!("its shape {shape:?} has no entries")));
    }
    // Nothing is reserved on the header's word.
    let mut content = Vec::new();
    reader.take(expected + 1).read_to_end(&mut content).map_err(|error| refuse(name, error))?;
    if content.len() as u64 != expected {
        let found = if content.len() as u64 > expected { "more" } else { "fewer" };
        return Err(refuse(name, format!("its shape {shape:?} needs {expected} bytes, there are {found}")));
    }
    let (rows, columns, is_list) = match shape.as_slice() {
        [] => (1, 1, false),
        [columns] => (1, *columns as usize, true),
        [rows, columns] => (*rows as usize, *columns as usize, false),
        _ => return Err(refuse(name, format!("expected one or two dimensions, found the shape {shape:?}"))),
    };
    let order = header.order();
    let values = numbers(name, NpyFile::with_header(header, content.as_slice()))?;
    let values = if order == Order::Fortran && !is_list {
        (0..rows * columns).map(|index| values[(index % columns) * rows + index / columns]).collect()
    } else {
        values
    };
    Ok(Array { name: name.to_string(), rows, columns, values, is_list })
}

/// Headers of real files have some hundred bytes.
const LARGEST_HEADER: usize = 1 << 20;

fn npy_header(name: &str, reader: &mut impl Read) -> Result<NpyHeader, Trouble> {
    let mut start = vec![0; 10];
    reader.read_exact(&mut start).map_err(|error| refuse(name, error))?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(refuse(name, "it does not begin like a NumPy array"));
    }
    let mut length = usize::from(u16::from_le_bytes([start[8], start[9]]));
    if start[6] > 1 {
        let mut more = [0; 2];
        reader.read_exact(&mut more).map_err(|error| refuse(name, error))?;
        length |= usize::from(u16::from_le_bytes(more)) << 16;
        start.extend(more);
    }
    if length > LARGEST_HEADER {
        return Err(refuse(name, format!("its header would have {length} bytes")));
    }
    let begun = start.len();
    start.resize(begun + length, 0);
    reader.read_exact(&mut start[begun..]).map_err(|error| refuse(name, error))?;
    NpyHeader::from_reader(start.as_slice()).map_err(|error| {
        let reason: String = error.to_string().lines().next().unwrap_or_default().chars().take(100).collect();
        refuse(name, format!("its header makes no sense: {reason}"))
    })
}

/// The entries as doubles, whatever number type they have.
fn numbers(name: &str, mut file: NpyFile<&[u8]>) -> Result<Vec<f64>, Trouble> {
    macro_rules! try_types {
        ($($kind:ty),*) => {$(
            match file.try_data::<$kind>() {
                Ok(data) => {
                    let values = data.map(|value| value.map(|value| value as f64));
                    return values.collect::<std::io::Result<_>>().map_err(|error| refuse(name, error));
                }
                Err(other) => file = other,
            }
        )*};
    }
    try_types!(f64, f32, i64, i32, i16, u8);
    let kind = file.dtype().descr();
    let message = format!("cannot read {name}: its entries have the type {kind}, expected numbers");
    Err(Trouble::with_hint(message, "save it with .astype(float)"))
}
