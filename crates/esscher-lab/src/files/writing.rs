//! What a write may replace: nothing, or a regular file of ours; a reader sees the old bytes or the new ones, never a part.
//!
//! Links are followed. Devices and pipes are written into. Files that somebody else made, and files of a run, stay as they are.

use super::{TEMPORARY, copy_hashing, create_folder, digest, folder_of, kind_of, same_file};
use crate::error::{Error, Result};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Which regular file a write may replace. One without content may always be: it has nothing to lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// One whose beginning holds these words, by which we know what we wrote.
    Marked(&'static str),
    /// Any: the user said so.
    Any,
}

/// How far into a file its mark may stand.
const BEGINNING: u64 = 4096;

/// Writes a file outside of run folders, whole or not at all; the folder is made if there is none.
///
/// # Errors
/// A target that may not be replaced, what the system refuses. The old file, if any, is then as it was.
pub fn write_file(path: &Path, bytes: &[u8], replace: Replace) -> Result<()> {
    let refused =
        |reason: String, is_foreign| Error::NotReplaced { path: path.to_path_buf(), reason, is_foreign };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(refused("it is a folder".to_string(), false)),
        Ok(found) if !found.is_file() => return write_into(path, bytes, &found),
        _ => {}
    }
    let target = followed(path).map_err(|error| Error::file("write", path, error))?;
    if let Some(run) = run_folder_around(&target) {
        return Err(refused(format!("it would be a file of the run in {}", run.display()), false));
    }
    if replace != Replace::Any && !is_replaceable(&target, replace)? {
        return Err(refused("there is a file that Esscher did not write".to_string(), true));
    }
    create_folder(folder_of(&target))?;
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

/// A file while it is written: beside its place, removed if it does not become whole.
///
/// Its name depends on that of the file alone, so that what a killed process left is used up when the file is written again; and it is
/// locked, so that two processes do not write into one.
struct Part {
    path: PathBuf,
    file: File,
    is_placed: bool,
}

impl Part {
    fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default();
        // A checksum: the name with more letters might be longer than the system allows.
        let sum = digest(name.as_encoded_bytes());
        let part = folder_of(path).join(format!("{TEMPORARY}{}", &sum[..16]));
        loop {
            let file = open_part(&part)?;
            file.lock()?;
            // Whoever held the lock before has renamed or removed what was opened here.
            if same_file(&part, &file) {
                file.set_len(0)?;
                return Ok(Part { path: part, file, is_placed: false });
            }
        }
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
    }
}

/// Not through a link, which would lead elsewhere.
fn open_part(part: &Path) -> io::Result<File> {
    if fs::symlink_metadata(part).is_ok_and(|found| !found.is_file()) {
        fs::remove_file(part)?;
    }
    OpenOptions::new().create(true).truncate(false).write(true).open(part)
}

/// Writes into what cannot be replaced: a terminal, a pipe, /dev/null.
fn write_into(path: &Path, bytes: &[u8], found: &Metadata) -> Result<()> {
    let failed = |error| Error::file("write", path, error);
    #[cfg(unix)]
    let _held = {
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
        let refused = |reason: &str| Error::NotReplaced {
            path: path.to_path_buf(),
            reason: reason.to_string(),
            is_foreign: false,
        };
        let kind = found.file_type();
        if kind.is_block_device() || kind.is_socket() {
            return Err(refused("it is a disk or a socket"));
        }
        // Opening a pipe waits for a reader; opening it in this way does not, and fails if there is none. It is held until the pipe is
        // open to be written, because a reader leaves with the last writer.
        let probe = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
        match kind.is_fifo().then(probe) {
            Some(Err(error)) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(refused("it is a pipe that nobody reads"));
            }
            held => held,
        }
    };
    let _ = found;
    let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(failed)
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

fn is_replaceable(target: &Path, replace: Replace) -> Result<bool> {
    let file = match super::open_file(target) {
        Ok(file) => file,
        Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut beginning = Vec::new();
    file.take(BEGINNING).read_to_end(&mut beginning).map_err(|error| Error::file("read", target, error))?;
    Ok(match replace {
        Replace::Any => true,
        Replace::Marked(_) if beginning.is_empty() => true,
        Replace::Marked(mark) => beginning.windows(mark.len()).any(|words| words == mark.as_bytes()),
    })
}

/// The run folder that a file lies in, directly or in one of its folders.
fn run_folder_around(target: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder_of(target)).ok()?;
    let is_run = |folder: &&Path| {
        folder.join("spec.toml").is_file()
            && (folder.join("shards").is_dir() || folder.join("provenance.json").is_file())
    };
    folder.ancestors().take(2).find(is_run).map(Path::to_path_buf)
}
