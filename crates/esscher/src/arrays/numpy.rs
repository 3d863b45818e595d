//! Arrays in NumPy's formats: a single one (.npy), or one of an archive (.npz).

use super::{Array, open, refuse, refuse_with};
use crate::ending::Trouble;
use esscher_numpy::{Archive, ArchiveError, Header, HeaderError, NumberType};
use std::io::{self, BufReader, ErrorKind, Read};

pub(super) fn file(path: &str, most: usize) -> Result<Array, Trouble> {
    let file = open(path)?;
    let bytes = file.metadata().map_err(|error| refuse(path, error))?.len();
    array(path, BufReader::new(file), bytes, most)
}

/// Identities and masks of usual sizes shrink more, and may.
const FREE_EXPANSION: u64 = 64 << 20;

pub(super) fn archive(path: &str, array_name: Option<&str>, most: usize) -> Result<Array, Trouble> {
    let file = open(path)?;
    let bytes = file.metadata().map_err(|error| refuse(path, error))?.len();
    let mut archive = Archive::open(BufReader::new(file), bytes, FREE_EXPANSION)
        .map_err(|_| refuse(path, "it is no NumPy archive (.npz), or it is truncated"))?;
    let names = archive.names();
    let wanted = match (array_name, names.as_slice()) {
        (Some(name), _) if names.iter().any(|found| found == name) => name.to_string(),
        (None, [single]) => single.clone(),
        (_, []) => return Err(refuse(path, "it holds no arrays")),
        _ => {
            let some: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
            let more = if names.len() > 20 { ", …" } else { "" };
            let hint = format!("it holds {}{more}; write {path}:NAME", some.join(", "));
            let reason = match array_name {
                Some(array) => format!("it has no array `{array}`"),
                None => format!("it holds {} arrays", names.len()),
            };
            return Err(refuse_with(path, reason, hint));
        }
    };
    let name = format!("{path}:{wanted}");
    let member = archive.array(&wanted).map_err(|error| match error {
        ArchiveError::TooLarge { .. } => {
            refuse_with(&name, error, "write the archive with numpy.savez, uncompressed")
        }
        other => refuse(&name, other),
    })?;
    array(&name, member.stream, member.bytes, most)
}

/// An array of so many bytes with its header; nothing is reserved or read that does not fit these.
fn array(name: &str, mut reader: impl Read, bytes: u64, most: usize) -> Result<Array, Trouble> {
    let header = header(name, &mut reader, bytes)?;
    let shape = header.shape.as_slice();
    let number = Number::of(&header.number).ok_or_else(|| not_numbers(name, &header.number))?;
    let Some(entries) = header.entries().filter(|entries| *entries <= most as u64) else {
        let reason = format!("its shape {shape:?} is too large: expected at most {most} numbers");
        return Err(refuse(name, reason));
    };
    if entries == 0 {
        return Err(refuse(name, format!("its shape {shape:?} has no entries")));
    }
    let (rows, columns, is_list) = match shape {
        [] => (1, 1, false),
        [columns] => (1, *columns as usize, true),
        [rows, columns] => (*rows as usize, *columns as usize, false),
        _ => return Err(refuse(name, format!("expected one or two dimensions, found the shape {shape:?}"))),
    };
    let (expected, found) = (entries * number.size as u64, bytes.saturating_sub(header.bytes));
    if found < expected {
        return Err(truncated(name, format!("its shape {shape:?} needs {expected} bytes, there are fewer")));
    }
    let more = || refuse(name, format!("its shape {shape:?} needs {expected} bytes, there are more"));
    if found > expected {
        return Err(more());
    }
    let is_turned = header.is_fortran && !is_list;
    // Where the number of this place in the file belongs.
    let place = |index: usize| if is_turned { (index % rows) * columns + index / rows } else { index };
    // Asked for first: the numbers, the tokens that are made of them, and what is made of those. A refusal later would end the program.
    let room = Vec::<f64>::new().try_reserve_exact((rows * columns).saturating_mul(3));
    room.map_err(|_| {
        refuse(name, format!("its {} numbers do not fit into the memory at hand", rows * columns))
    })?;
    let mut values = vec![0.0; rows * columns];
    let mut piece = vec![0; PIECE * number.size];
    for first in (0..values.len()).step_by(PIECE) {
        let count = PIECE.min(values.len() - first);
        let piece = &mut piece[..count * number.size];
        reader.read_exact(piece).map_err(|error| unread(name, &error))?;
        for (index, written) in piece.chunks_exact_mut(number.size).enumerate() {
            let place = place(first + index);
            values[place] = number.read(written).map_err(|reason| {
                refuse(name, format!("entry [{}, {}] {reason}", place / columns, place % columns))
            })?;
        }
    }
    // At its end an archive compares the sum of what was read.
    match reader.read(&mut [0]).map_err(|error| unread(name, &error))? {
        0 => Ok(Array { name: name.to_string(), rows, columns, values, is_list }),
        _ => Err(more()),
    }
}

/// Numbers that are read at a time.
const PIECE: usize = 1 << 14;

/// The header, with advice where there is some.
fn header(name: &str, stream: &mut impl Read, bytes: u64) -> Result<Header, Trouble> {
    Header::read(stream, bytes).map_err(|error| match error {
        HeaderError::Records => refuse_with(name, error, "save the fields as columns of one array"),
        other => refuse(name, other),
    })
}

fn truncated(name: &str, how: impl std::fmt::Display) -> Trouble {
    refuse(name, format!("it is truncated: {how}"))
}

fn unread(name: &str, error: &io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::UnexpectedEof => truncated(name, "it ends before its last entry"),
        _ => refuse(name, error),
    }
}

fn not_numbers(name: &str, kind: &NumberType) -> Trouble {
    let (what, hint) = match kind.letter {
        'M' | 'm' => {
            ("dates or times", "make numbers of them, for example (t - t[0]) / numpy.timedelta64(1, 's')")
        }
        'O' => ("Python objects", "save it with .astype(float)"),
        'c' => ("complex numbers", "save the real part, or real and imaginary parts as columns"),
        _ => ("of another type", "save it with .astype(float)"),
    };
    refuse_with(name, format!("its entries have the type `{kind}` ({what}), expected real numbers"), hint)
}

/// How a number is written.
struct Number {
    kind: Kind,
    size: usize,
    is_big_endian: bool,
}

enum Kind {
    Truth,
    Signed,
    Unsigned,
    Float,
}

impl Number {
    /// The types that a double can hold.
    fn of(written: &NumberType) -> Option<Self> {
        let size = usize::try_from(written.size).ok()?;
        let kind = match (written.letter, size) {
            ('b', 1) => Kind::Truth,
            ('i', 1 | 2 | 4 | 8) => Kind::Signed,
            ('u', 1 | 2 | 4 | 8) => Kind::Unsigned,
            ('f', 2 | 4 | 8) => Kind::Float,
            _ => return None,
        };
        Some(Number { kind, size, is_big_endian: written.is_big_endian })
    }

    /// The number in these bytes, which may be turned round; the reason if a double is another number.
    fn read(&self, bytes: &mut [u8]) -> Result<f64, String> {
        if self.is_big_endian {
            bytes.reverse();
        }
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(all);
        let whole = match self.kind {
            Kind::Float => {
                return Ok(match self.size {
                    2 => half::f16::from_bits(bits as u16).to_f64(),
                    4 => f64::from(f32::from_bits(bits as u32)),
                    _ => f64::from_bits(bits),
                });
            }
            Kind::Truth if bits > 1 => return Err(format!("is the byte {bits}, expected 0 or 1")),
            Kind::Truth | Kind::Unsigned => i128::from(bits),
            Kind::Signed => {
                let unused = 64 - 8 * self.size as u32;
                i128::from(((bits << unused) as i64) >> unused)
            }
        };
        let value = whole as f64;
        if value as i128 == whole {
            Ok(value)
        } else {
            Err(format!("is {whole}, which a double cannot hold exactly: expected at most 2^53"))
        }
    }
}
