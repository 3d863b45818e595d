//! The file layer: what may be read, what may be replaced, and folders that one process alone works in.
//!
//! Large files that others made (checkpoints, texts) are known by their SHA-256, and placed only if they have it.

mod exclusive;
mod reading;
mod writing;

pub(crate) use exclusive::Lock;
pub use exclusive::{Exclusive, TemporaryFolder};
pub(crate) use reading::{
    check_own_specification, check_table, read_history, read_own_specification, read_table,
};
pub use reading::{file_sha256, open_file, read_file, read_specification};
pub(crate) use writing::write_own;
pub use writing::{Replace, abandon_writes, place_file, write_file};

use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How temporary files and folders begin; what a killed process left of them is swept.
const TEMPORARY: &str = ".part-";

/// Marks a folder of several runs: what lies in it is theirs.
pub(crate) const RUNS: &str = ".runs";

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

/// What something is, for messages.
fn kind_of(found: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.file_type().is_fifo() {
            return "a pipe";
        }
    }
    match found.file_type() {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a link",
        kind if kind.is_file() => "a file",
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
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_own_folder(inner),
        made => made.map_err(|error| Error::file("create", inner, error)),
    }
}

/// Refuses what stands in the place of a folder of a run and is none: a link would lead to files of somebody else.
pub(crate) fn check_own_folder(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => {
            let reason = format!("it is {}, expected a folder that this run made", kind_of(&found));
            Err(Error::Foreign { path: path.to_path_buf(), reason })
        }
        _ => Ok(()),
    }
}

/// Opens a file of ours to be written, as it is; makes it if there is none. Not through a link, which would lead elsewhere.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    options.open(path)
}

/// The files of a folder in the order of their names, hidden ones left out; none if there is no such folder.
///
/// # Errors
/// What the system refuses.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(all(folder)?.into_iter().filter(|path| !hidden(path, ".")).collect())
}

/// Removes temporary files and folders that a killed process left.
pub(crate) fn sweep(folder: &Path) -> Result<()> {
    for path in all(folder)?.into_iter().filter(|path| hidden(path, TEMPORARY)) {
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| Error::file("remove", &path, error))?;
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
