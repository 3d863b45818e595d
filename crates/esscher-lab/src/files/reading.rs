//! What may be read: a regular file of at most so many bytes, both known before any of it is read.
//!
//! A pipe that nobody writes into and a device that never ends are refused before they are opened, so that no program waits for them.

use super::{copy_hashing, kind_of};
use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Specifications larger than this are not read: ours have a few hundred bytes, and a list of numbers takes a hundred times its text.
const LARGEST_SPECIFICATION: u64 = 4 << 20;

/// The same for normal forms, which are longer than what was written: defaults are written out, and `1,` becomes `1.0, `.
const LARGEST_OWN_SPECIFICATION: u64 = 64 << 20;

/// Histories larger than this are not read: a session is some hundred bytes.
const LARGEST_HISTORY: u64 = 64 << 20;

/// Tables larger than this are not read: they would not fit the memory of a workstation beside their values.
const LARGEST_TABLE: u64 = 4 << 30;

/// A regular file of any size, to be read in pieces.
///
/// # Errors
/// What the system refuses, and anything that is not a file: a folder, a pipe, a device.
pub fn open_file(path: &Path) -> Result<File> {
    open(path).map_err(|error| Error::file("read", path, error))
}

/// Looked at before it is opened, because opening a pipe waits and opening a device may do something; and once more after, because it
/// may have been replaced in between.
fn open(path: &Path) -> io::Result<File> {
    refuse_unless_file(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    refuse_unless_file(&file.metadata()?)?;
    Ok(file)
}

fn refuse_unless_file(found: &fs::Metadata) -> io::Result<()> {
    match found.is_file() {
        true => Ok(()),
        false => {
            let message = format!("it is {}, expected a file", kind_of(found));
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

/// The bytes of a file of at most so many.
///
/// # Errors
/// What the system refuses, what is not a file, a file that is larger.
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_opened(open_file(path)?, path, most)
}

fn read_opened(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let failed = |error| Error::file("read", path, error);
    let too_large = || Error::TooLarge { path: path.to_path_buf(), most };
    if file.metadata().map_err(failed)?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
}

/// The text of a specification's file.
///
/// # Errors
/// A file that cannot be read, is not UTF-8 text, or is far too large.
pub fn read_specification(file: &Path) -> Result<String> {
    let unreadable = |source| Error::NoSpecification { file: file.to_path_buf(), source };
    let bytes = read_file(file, LARGEST_SPECIFICATION).map_err(|error| match error {
        Error::File { source, .. } => unreadable(source),
        Error::TooLarge { path, .. } => Error::LargeSpecification { file: path },
        other => other,
    })?;
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(bytes).map_err(|error| unreadable(not_text(error)))
}

/// The normalised specification in a run folder, or nothing if there is none.
pub(crate) fn read_own_specification(path: &Path) -> Result<Option<Vec<u8>>> {
    optional(read_file(path, LARGEST_OWN_SPECIFICATION))
}

/// Refuses a normalised specification that could not be read again.
pub(crate) fn check_own_specification(text: &str) -> Result<()> {
    let (bytes, most) = (text.len() as u64, LARGEST_OWN_SPECIFICATION);
    if bytes > most { Err(Error::LongSpecification { bytes, most }) } else { Ok(()) }
}

/// The history in a run folder, or nothing if there is none.
pub(crate) fn read_history(path: &Path) -> Result<Option<Vec<u8>>> {
    optional(read_file(path, LARGEST_HISTORY))
}

/// The bytes of a Parquet file, or nothing if there is none; what does not begin and end like one is not read.
pub(crate) fn read_table(path: &Path) -> Result<Option<Vec<u8>>> {
    let Some(mut file) = optional(open_file(path))? else { return Ok(None) };
    let mut mark = [0; 4];
    let mut is_mark = |place| {
        let read = file.seek(place).and_then(|_| file.read_exact(&mut mark));
        read.is_ok() && &mark == b"PAR1"
    };
    if !(is_mark(SeekFrom::Start(0)) && is_mark(SeekFrom::End(-4))) {
        let reason = "it does not begin and end like a Parquet file".to_string();
        return Err(Error::Damaged { path: path.to_path_buf(), reason });
    }
    file.rewind().map_err(|error| Error::file("read", path, error))?;
    read_opened(file, path, LARGEST_TABLE).map(Some)
}

/// Refuses a table of so many bytes that could not be read again.
pub(crate) fn check_table(path: &Path, bytes: u64) -> Result<()> {
    let most = LARGEST_TABLE;
    if bytes > most { Err(Error::LargeTable { path: path.to_path_buf(), bytes, most }) } else { Ok(()) }
}

/// Nothing if there is no such file.
fn optional<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::File { source, .. })
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The SHA-256 of a file in hexadecimal; the file need not fit into memory.
///
/// # Errors
/// What the system refuses.
pub fn file_sha256(path: &Path) -> Result<String> {
    let copied = copy_hashing(&mut open_file(path)?, &mut io::sink());
    copied.map_err(|error| Error::file("read", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of its length alone: a table of 4 GiB is no matter for a test.
    #[test]
    fn a_table_that_could_not_be_read_again_is_refused() {
        let path = Path::new("run/result.parquet");
        check_table(path, LARGEST_TABLE).unwrap();
        assert_eq!(
            check_table(path, LARGEST_TABLE + 1).unwrap_err().to_string(),
            "run/result.parquet is not written: its table has 4294967297 bytes, expected at most 4294967296, which is what is \
             read again"
        );
    }
}
