//! Folders that one process alone works in, and folders that vanish with what made them.

use super::{TEMPORARY, create_folder, open_own, same_file, sweep};
use crate::error::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The lock of a folder, which the operating system gives back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    name: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock of a folder; nothing if another process, or another thread of this one, has it.
    pub(crate) fn take(folder: &Path) -> Result<Option<Self>> {
        let lock = Self::opened(folder)?;
        match lock.file.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::file("lock", &lock.name, error)),
        }
    }

    /// Waits for the lock of a folder, saying so first.
    fn wait(folder: &Path, waiting: &dyn Fn()) -> Result<Self> {
        let mut taken = Self::take(folder)?;
        if taken.is_none() {
            waiting();
        }
        loop {
            // Somebody may have removed the file meanwhile: whoever comes next would lock another one.
            if let Some(lock) = taken.filter(Lock::is_there) {
                return Ok(lock);
            }
            let lock = Self::opened(folder)?;
            lock.file.lock().map_err(|error| Error::file("lock", &lock.name, error))?;
            taken = Some(lock);
        }
    }

    fn opened(folder: &Path) -> Result<Self> {
        let name = folder.join(".lock");
        if fs::symlink_metadata(&name).is_ok_and(|found| !found.is_file()) {
            let reason = "it is not a file, expected the lock of the folder".to_string();
            return Err(Error::Foreign { path: name, reason });
        }
        match open_own(&name) {
            Ok(file) => Ok(Lock { name, file }),
            Err(error) => Err(Error::file("write", &name, error)),
        }
    }

    /// Whether the folder is still where it was, with this lock in it.
    pub(crate) fn is_there(&self) -> bool {
        same_file(&self.name, &self.file)
    }
}

/// A folder that only one process, and one thread of it, works in while this lives; the operating system ends that when the
/// process ends, however it ends.
#[derive(Debug)]
pub struct Exclusive {
    _lock: Lock,
}

impl Exclusive {
    /// Waits until nobody else works in the folder, saying so first; the folder is made if there is none. What others left
    /// half done is removed.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn in_folder(folder: &Path, waiting: &dyn Fn()) -> Result<Self> {
        create_folder(folder)?;
        let lock = Lock::wait(folder, waiting)?;
        // What another user left cannot always be removed, and is in nobody's way.
        let _ = sweep(folder);
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
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A name that no other process and no other thread uses at the time.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
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
