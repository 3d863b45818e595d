//! The file layer: whole files read, and written so that a reader sees the old bytes or the new ones, never a part.

use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How temporary files begin; the run folder sweeps what a killed process left of them.
const TEMPORARY: &str = ".part-";

/// Writes a file whole or not at all: to a temporary file beside it, synced, renamed, and the folder synced; the folder is
/// made if there is none.
///
/// # Errors
/// What the system refuses; the old file, if any, is then as it was.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
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
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
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
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
