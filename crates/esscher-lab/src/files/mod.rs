//! The file layer: what may be read, what may be replaced, and folders that one process alone works in.
//!
//! Large files that others made (checkpoints, texts) are known by their SHA-256, and placed only if they have it.

mod exclusive;
mod reading;
mod writing;

pub(crate) use exclusive::Lock;
pub use exclusive::{Exclusive, TemporaryFolder};
pub use reading::{file_sha256, open_file, read_file, read_specification};
pub(crate) use reading::{read_history, read_own_specification, read_table};
pub(crate) use writing::write_own;
pub use writing::{Replace, place_file, write_file};

use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How temporary files begin; the run folder sweeps what a killed process left of them.
const TEMPORARY: &str = ".part-";

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

/// What something is that is not a file.
fn kind_of(found: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.file_type().is_fifo() {
            return "a pipe";
        }
    }
    match (found.is_dir(), found.is_symlink()) {
        (true, _) => "a folder",
        (_, true) => "a link",
        _ => "a device",
    }
}

/// Whether the file of this name is the one that is open.
#[cfg(unix)]
fn same_file(name: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |found: Metadata| (found.dev(), found.ino());
    let (named, opened) = (fs::symlink_metadata(name).map(identity), file.metadata().map(identity));
    named.ok().zip(opened.ok()).is_some_and(|(named, opened)| named == opened)
}

/// Elsewhere a file that is open cannot be moved or removed.
#[cfg(not(unix))]
fn same_file(name: &Path, _: &File) -> bool {
    name.exists()
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes a folder and those above it.
pub(crate) fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::file("create", path, error))
}

/// Makes the folder of a path inside a folder that must be there.
pub(crate) fn create_inside(folder: &Path, path: &Path) -> Result<()> {
    let inner = folder_of(path);
    if inner == folder {
        return Ok(());
    }
    match fs::create_dir(inner) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::file("create", inner, error))
        }
        _ => Ok(()),
    }
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
