//! What a write may replace: nothing, or a regular file of ours; a reader sees the old bytes or the new ones, never a part.
//!
//! Links are followed. Devices and pipes are written into. Files that somebody else made, and files of a run, stay as they are.

use super::{RUNS, TEMPORARY, copy_hashing, create_folder, digest, folder_of, kind_of, open_own, same_file};
use crate::error::{Error, Result};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Which regular file a write may replace. One without content may always be: it has nothing to lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// One that begins with these words, by which we know what we wrote.
    Marked(&'static str),
    /// Any: the user said so.
    Any,
}

/// Writes a file outside of run folders, whole or not at all; the folder is made if there is none.
///
/// # Errors
/// A target that may not be replaced, what the system refuses. The old file, if any, is then as it was.
pub fn write_file(path: &Path, bytes: &[u8], replace: Replace) -> Result<()> {
    let refused =
        |reason: String, is_foreign| Error::NotReplaced { path: path.to_path_buf(), reason, is_foreign };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(refused("it is a folder".to_string(), false)),
        // A name such as /dev/stdout leads to a file that is open already: in its place another would go unseen.
        Ok(found) if !found.is_file() || names_open_file(path) => return write_into(path, bytes, &found),
        _ => {}
    }
    let target = followed(path).map_err(|error| Error::file("write", path, error))?;
    let check = || match run_folder_around(&target) {
        Some(run) => Err(refused(format!("it would be a file of the run in {}", run.display()), false)),
        None => Ok(()),
    };
    check()?;
    if let Replace::Marked(mark) = replace
        && !is_ours(&target, mark)?
    {
        return Err(refused("there is a file that Esscher did not write".to_string(), true));
    }
    create_folder(folder_of(&target))?;
    // Again: where `..` leads is known once the folders before it are there.
    check()?;
    write_whole(&target, bytes).map_err(|error| Error::file("write", path, error))
}

/// Writes a file of a folder that this process holds. What is not a regular file was put there by somebody else and stays.
pub(crate) fn write_own(path: &Path, bytes: &[u8]) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let reason = format!("it is {}, expected a file that this run wrote", kind_of(&found));
            Err(Error::Foreign { path: path.to_path_buf(), reason })
        }
        _ => write_whole(path, bytes).map_err(|error| Error::file("write", path, error)),
    }
}

/// Makes a file of a stream of at most `most` bytes if its SHA-256 is the expected one: hashed while it is written beside its
/// place, then renamed, so that no reader ever sees another file there.
///
/// # Errors
/// What the system refuses, a stream that breaks off, another SHA-256. There is then no new file.
pub fn place_file(path: &Path, from: &mut dyn Read, most: u64, sha256: &str) -> Result<()> {
    create_folder(folder_of(path))?;
    let failed = |error| Error::file("write", path, error);
    let mut part = Part::beside(path).map_err(failed)?;
    // A byte more than expected is enough to make another sum.
    let found = copy_hashing(&mut from.take(most.saturating_add(1)), &mut part.file).map_err(failed)?;
    if found != sha256 {
        let (path, expected) = (path.to_path_buf(), sha256.to_string());
        return Err(Error::WrongSum { path, expected, found });
    }
    part.become_file(path).map_err(failed)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut part = Part::beside(path)?;
    part.file.write_all(bytes)?;
    part.become_file(path)
}

/// Files that are being written.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the files that are being written, for a program that ends now: no other is begun until it has ended.
pub fn abandon_writes() {
    let parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    for part in parts.iter() {
        let _ = fs::remove_file(part);
    }
    std::mem::forget(parts);
}

/// A file while it is written: beside its place, removed if it does not become whole.
///
/// Its name depends on that of the file alone, so that what a killed process left is used up when the file is written again; and it is
/// locked, so that two processes do not write into one. Where the file system has no locks, the name is one that nobody else uses.
struct Part {
    path: PathBuf,
    file: File,
    is_placed: bool,
}

impl Part {
    fn beside(path: &Path) -> io::Result<Self> {
        let part = Self::path_beside(path);
        loop {
            let file = open_part(&part)?;
            match file.lock() {
                Err(error) if has_no_locks(&error) => {
                    let _ = fs::remove_file(&part);
                    return Self::unlocked(path);
                }
                locked => locked?,
            }
            // Whoever held the lock before has renamed or removed what was opened here.
            if same_file(&part, &file) {
                return Self::emptied(part, file);
            }
        }
    }

    fn unlocked(path: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut name = Self::path_beside(path).into_os_string();
        name.push(format!("-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let part = PathBuf::from(name);
        let file = open_part(&part)?;
        Self::emptied(part, file)
    }

    fn path_beside(path: &Path) -> PathBuf {
        // A checksum: the name with more letters might be longer than the system allows.
        let sum = digest(path.file_name().unwrap_or_default().as_encoded_bytes());
        folder_of(path).join(format!("{TEMPORARY}{}", &sum[..16]))
    }

    fn emptied(path: PathBuf, file: File) -> io::Result<Self> {
        PARTS.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        file.set_len(0)?;
        Ok(Part { path, file, is_placed: false })
    }

    fn become_file(mut self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        self.is_placed = true;
        // Not every file system can sync a folder; the rename is then as durable as the system makes it.
        let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = fs::remove_file(&self.path);
        }
        PARTS.lock().unwrap_or_else(PoisonError::into_inner).retain(|part| *part != self.path);
    }
}

/// What is in the place of a part and is no file goes.
fn open_part(part: &Path) -> io::Result<File> {
    if fs::symlink_metadata(part).is_ok_and(|found| !found.is_file()) {
        fs::remove_file(part)?;
    }
    open_own(part)
}

/// Whether the file system has no locks, as network ones may.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOLCK) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Writes into what cannot be replaced: a terminal, a pipe, /dev/null.
fn write_into(path: &Path, bytes: &[u8], found: &Metadata) -> Result<()> {
    let mut file = open_into(path, found)?;
    let written = write_waiting(&mut file, bytes).and_then(|()| file.flush());
    written.map_err(|error| Error::file("write", path, error))
}

/// Whether a path is a name that the system gives to an open file.
fn names_open_file(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder))
}

#[cfg(unix)]
fn open_into(path: &Path, found: &Metadata) -> Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let refused = |reason: &str| {
        Err(Error::NotReplaced { path: path.to_path_buf(), reason: reason.to_string(), is_foreign: false })
    };
    let kind = found.file_type();
    if kind.is_block_device() || kind.is_socket() {
        return refused("it is a disk or a socket");
    }
    // Opening a pipe waits for a reader; opening it in this way does not, and fails if there is none.
    let flags = if kind.is_fifo() { libc::O_NONBLOCK } else { 0 };
    // Behind what is in an open file already.
    match OpenOptions::new().append(found.is_file()).write(true).custom_flags(flags).open(path) {
        Err(error) if kind.is_fifo() && error.raw_os_error() == Some(libc::ENXIO) => {
            refused("it is a pipe that nobody reads")
        }
        opened => opened.map_err(|error| Error::file("write", path, error)),
    }
}

#[cfg(not(unix))]
fn open_into(path: &Path, _: &Metadata) -> Result<File> {
    OpenOptions::new().write(true).open(path).map_err(|error| Error::file("write", path, error))
}

/// Writes all bytes, waiting while a pipe that was opened without waiting is full.
fn write_waiting(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Where links lead, even if nothing is there.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_path_buf();
    // As many as systems follow.
    for _ in 0..40 {
        match fs::read_link(&place) {
            Ok(next) => place = folder_of(&place).join(next),
            // It is no link, or nothing is there.
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("too many links follow one another"))
}

/// Whether there is no file, an empty one, or one that begins with the mark.
fn is_ours(target: &Path, mark: &str) -> Result<bool> {
    let file = match super::open_file(target) {
        Ok(file) => file,
        Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut beginning = Vec::new();
    let most = mark.len() as u64;
    file.take(most).read_to_end(&mut beginning).map_err(|error| Error::file("read", target, error))?;
    Ok(beginning.is_empty() || beginning == mark.as_bytes())
}

/// The folder of a run, or of several, that a file lies in or would lie in, at most three folders deep.
fn run_folder_around(target: &Path) -> Option<PathBuf> {
    // Folders that are not there yet would be made inside of one that is.
    let there =
        |folder: &Path| fs::canonicalize(if folder == Path::new("") { Path::new(".") } else { folder }).ok();
    let folder = folder_of(target).ancestors().find_map(there)?;
    let is_run = |folder: &&Path| {
        let is_one = folder.join("spec.toml").is_file()
            && (folder.join("shards").is_dir() || folder.join("provenance.json").is_file());
        is_one || folder.join(RUNS).is_file()
    };
    folder.ancestors().take(3).find(is_run).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_locks_every_write_has_a_part_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report.html");
        let mut parts = [Part::unlocked(&path).unwrap(), Part::unlocked(&path).unwrap()];
        assert_ne!(parts[0].path, parts[1].path);
        for (part, bytes) in parts.iter_mut().zip([b"first ", b"second"]) {
            part.file.write_all(bytes).unwrap();
        }
        let [first, second] = parts;
        second.become_file(&path).unwrap();
        drop(first);
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        assert!(has_no_locks(&io::ErrorKind::Unsupported.into()));
        assert!(!has_no_locks(&io::ErrorKind::PermissionDenied.into()));
    }
}
