//! The file layer: whole files read, and written so that a reader sees the old bytes or the new ones, never a part.
//!
//! Large files that others made (checkpoints, texts) are read with a bound, known by their SHA-256, and placed only if they have it.

use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How temporary files begin; the run folder sweeps what a killed process left of them.
const TEMPORARY: &str = ".part-";

/// Writes a file whole or not at all: to a temporary file beside it, synced, renamed, and the folder synced; the folder is
/// made if there is none.
///
/// # Errors
/// What the system refuses; the old file, if any, is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = folder_of(path);
    create_folder(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = folder.join(format!("{TEMPORARY}{}-{name}", std::process::id()));
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)?;
        // Not every file system can sync a folder; the rename is then as durable as the system makes it.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    });
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        Error::file("write", path, error)
    })
}

/// Specifications larger than this are not read: ours have a few hundred bytes.
const LARGEST_SPECIFICATION: u64 = 16 << 20;

/// The text of a specification's file.
///
/// # Errors
/// A file that cannot be read, is not UTF-8 text, or is far too large.
pub fn read_specification(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read =
        File::open(file).and_then(|opened| opened.take(LARGEST_SPECIFICATION + 1).read_to_string(&mut text));
    read.map_err(|source| Error::NoSpecification { file: file.to_path_buf(), source })?;
    if text.len() as u64 > LARGEST_SPECIFICATION {
        return Err(Error::LargeSpecification { file: file.to_path_buf() });
    }
    Ok(text)
}

/// A file of any size, to be read in pieces.
///
/// # Errors
/// What the system refuses, and anything that is not a file: a folder, a device that never ends.
pub fn open_file(path: &Path) -> Result<File> {
    let opened = File::open(path).and_then(|file| match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    });
    opened.map_err(|error| Error::file("read", path, error))
}

/// The bytes of a file of at most so many.
///
/// # Errors
/// What the system refuses, a file that is larger.
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_file(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::file("read", path, error))?;
    if bytes.len() as u64 > most {
        return Err(Error::TooLarge { path: path.to_path_buf(), most });
    }
    Ok(bytes)
}

/// The SHA-256 of a file in hexadecimal; the file need not fit into memory.
///
/// # Errors
/// What the system refuses.
pub fn file_sha256(path: &Path) -> Result<String> {
    let copied = copy_hashing(&mut open_file(path)?, &mut io::sink());
    copied.map_err(|error| Error::file("read", path, error))
}

/// Makes a file of a stream of at most `most` bytes if its SHA-256 is the expected one: hashed while it is written beside its
/// place, then renamed, so that no reader ever sees another file there.
///
/// # Errors
/// What the system refuses, a stream that breaks off, another SHA-256. There is then no new file.
pub fn place_file(path: &Path, from: &mut dyn Read, most: u64, sha256: &str) -> Result<()> {
    let folder = folder_of(path);
    create_folder(folder)?;
    let part = folder.join(temporary_name());
    let placed = (|| {
        let failed = |error| Error::file("write", path, error);
        let mut file = File::create(&part).map_err(failed)?;
        // A byte more than expected is enough to make another sum.
        let found = copy_hashing(&mut from.take(most.saturating_add(1)), &mut file).map_err(failed)?;
        if found != sha256 {
            let (path, expected) = (path.to_path_buf(), sha256.to_string());
            return Err(Error::WrongSum { path, expected, found });
        }
        file.sync_all().and_then(|()| fs::rename(&part, path)).map_err(failed)
    })();
    if placed.is_err() {
        let _ = fs::remove_file(&part);
    }
    placed
}

/// Copies all bytes and returns their SHA-256.
fn copy_hashing(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<String> {
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(hexadecimal(&hasher.finalize())),
            Ok(count) => {
                hasher.update(&piece[..count]);
                to.write_all(&piece[..count])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A folder that only one process, and one thread of it, works in while this lives; the operating system ends that when the
/// process ends, however it ends.
#[derive(Debug)]
pub struct Exclusive {
    _lock: File,
}

impl Exclusive {
    /// Waits until nobody else works in the folder, saying so first; the folder is made if there is none. What others left
    /// half done is removed.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn in_folder(folder: &Path, waiting: &dyn Fn()) -> Result<Self> {
        create_folder(folder)?;
        let name = folder.join(".lock");
        let failed = |error| Error::file("lock", &name, error);
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&name).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                lock.lock().map_err(failed)?;
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        for path in all(folder)?.into_iter().filter(|path| hidden(path, TEMPORARY)) {
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
        Ok(Exclusive { _lock: lock })
    }
}

/// An empty folder that is removed with all that is in it when this goes.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Makes one inside a folder, which is made if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn inside(folder: &Path) -> Result<Self> {
        let path = folder.join(temporary_name());
        create_folder(&path)?;
        Ok(TemporaryFolder { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A name that no other process and no other thread uses at the time.
fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{TEMPORARY}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The bytes of a file, or nothing if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", path, error)),
    }
}

/// Makes a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::file("create", path, error))
}

/// The files of a folder in the order of their names, hidden ones left out; none if there is no such folder.
///
/// # Errors
/// What the system refuses.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(all(folder)?.into_iter().filter(|path| !hidden(path, ".")).collect())
}

/// Removes temporary files that a killed process left.
pub(crate) fn sweep(folder: &Path) -> Result<()> {
    for path in all(folder)?.into_iter().filter(|path| hidden(path, TEMPORARY)) {
        fs::remove_file(&path).map_err(|error| Error::file("remove", &path, error))?;
    }
    Ok(())
}

fn all(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file("list", folder, error)),
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()
        .map_err(|error| Error::file("list", folder, error))?;
    paths.sort();
    Ok(paths)
}

fn hidden(path: &Path, prefix: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
}

/// The SHA-256 of some bytes in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
