//! A run folder: spec.toml, provenance.json, shards/, result.parquet, figures/ and report.html of one run.

use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::provenance::Provenance;
use crate::shard::{self, Identity};
use crate::{Table, files};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

const SPECIFICATION: &str = "spec.toml";
const PROVENANCE: &str = "provenance.json";
const RESULT: &str = "result.parquet";
const SHARDS: &str = "shards";
const LOCK: &str = ".lock";

/// A run folder that this process alone works in, as long as the value lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// The operating system gives the lock back when the process ends, however it ends.
    _lock: File,
}

/// What can be read of a run without working in it.
#[derive(Debug, Clone)]
pub struct FinishedRun {
    /// The normalised specification.
    pub specification: String,
    /// Who worked on the run, where and when.
    pub provenance: Provenance,
    /// The merged rows of all units.
    pub result: Table,
}

impl RunFolder {
    /// Opens the folder for this experiment; makes it if there is none.
    ///
    /// # Errors
    /// Another process works in it; it holds another specification; it cannot be written.
    pub fn open(path: &Path, experiment: &dyn Experiment) -> Result<Self> {
        files::create_folder(path)?;
        let folder = RunFolder { path: path.to_path_buf(), _lock: lock(path)? };
        match files::read(&path.join(SPECIFICATION))? {
            Some(found) => check_specification(path, experiment.specification(), &found)?,
            None => {
                check_unused(path)?;
                folder.write(SPECIFICATION, experiment.specification().as_bytes())?;
            }
        }
        folder.sweep()?;
        files::create_folder(&path.join(SHARDS))?;
        Ok(folder)
    }

    /// Opens the folder of a run that is there, whatever its specification: to write its report again.
    ///
    /// # Errors
    /// No run there; another process works in it; it cannot be written.
    pub fn open_existing(path: &Path) -> Result<Self> {
        specification_of(path)?;
        let folder = RunFolder { path: path.to_path_buf(), _lock: lock(path)? };
        folder.sweep()?;
        Ok(folder)
    }

    /// Removes what killed processes left half written.
    fn sweep(&self) -> Result<()> {
        ["", SHARDS, "figures"].iter().try_for_each(|name| files::sweep(&self.path.join(name)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of the run whole or not at all; folders in its name are made.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::write(&self.path.join(name), bytes)
    }

    /// Finished units by number.
    pub(crate) fn shards(&self, identity: &Identity, units: usize) -> Result<BTreeMap<usize, Table>> {
        let found = read_shards(&self.path, identity, units)?;
        Ok(found.into_iter().map(|(unit, shard)| (unit, shard.table)).collect())
    }

    pub(crate) fn write_shard(&self, identity: &Identity, unit: usize, table: &Table) -> Result<()> {
        let (name, bytes) = shard::encode(identity, unit, table)?;
        self.write(&format!("{SHARDS}/{name}"), &bytes)
    }

    /// Where the shard of a unit with this table is.
    pub(crate) fn shard_path(&self, identity: &Identity, unit: usize, table: &Table) -> Result<PathBuf> {
        let (name, _) = shard::encode(identity, unit, table)?;
        Ok(self.path.join(SHARDS).join(name))
    }

    pub(crate) fn provenance(&self) -> Result<Option<Provenance>> {
        read_provenance(&self.path)
    }

    pub(crate) fn write_provenance(&self, provenance: &Provenance) -> Result<()> {
        let text = serde_json::to_string_pretty(provenance).map_err(|error| Error::Result(error.into()))?;
        self.write(PROVENANCE, (text + "\n").as_bytes())
    }

    pub(crate) fn result(&self) -> Result<Option<Vec<u8>>> {
        files::read(&self.path.join(RESULT))
    }

    pub(crate) fn write_result(&self, bytes: &[u8]) -> Result<()> {
        self.write(RESULT, bytes)
    }

    pub(crate) fn result_path(&self) -> PathBuf {
        self.path.join(RESULT)
    }

    pub(crate) fn provenance_path(&self) -> PathBuf {
        self.path.join(PROVENANCE)
    }
}

/// Takes the folder's lock, which the operating system gives back when the process ends, however it ends.
fn lock(folder: &Path) -> Result<File> {
    let name = folder.join(LOCK);
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(|error| Error::file("write", &name, error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { folder: folder.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(Error::file("lock", &name, error)),
    }
}

/// Refuses a folder that holds files but no specification: they are not ours to replace.
fn check_unused(folder: &Path) -> Result<()> {
    match files::list(folder)?.into_iter().next() {
        Some(path) => {
            let reason = "the folder holds files but no spec.toml".to_string();
            Err(Error::Foreign { path, reason })
        }
        None => Ok(()),
    }
}

/// A unit's table with the file that holds it.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    pub(crate) table: Table,
}

/// The units in a folder's shards, each file checked.
pub(crate) fn read_shards(
    folder: &Path,
    identity: &Identity,
    units: usize,
) -> Result<BTreeMap<usize, Shard>> {
    let mut found: BTreeMap<usize, Shard> = BTreeMap::new();
    for path in files::list(&folder.join(SHARDS))? {
        let bytes = files::read(&path)?.unwrap_or_default();
        let (unit, table) = shard::decode_file(identity, units, &path, &bytes)?;
        if let Some(other) = found.insert(unit, Shard { path: path.clone(), bytes, table }) {
            return Err(Error::Conflict { first: other.path, second: path });
        }
    }
    Ok(found)
}

/// The instruction set of the first shard in a folder, if there is one.
pub(crate) fn instruction_set_of(folder: &Path) -> Option<String> {
    let first = files::list(&folder.join(SHARDS)).ok()?.into_iter().next()?;
    shard::instruction_set_of(&files::read(&first).ok()??)
}

/// The normalised specification in a folder.
///
/// # Errors
/// No run there, or text that is not UTF-8.
pub fn specification_of(folder: &Path) -> Result<String> {
    let path = folder.join(SPECIFICATION);
    let bytes = files::read(&path)?.ok_or_else(|| Error::NotARun { folder: folder.to_path_buf() })?;
    String::from_utf8(bytes).map_err(|_| Error::Damaged { path, reason: "it is not UTF-8 text".to_string() })
}

/// Refuses a folder whose specification is not this one.
pub(crate) fn check_specification(folder: &Path, expected: &str, found: &[u8]) -> Result<()> {
    if expected.as_bytes() == found {
        return Ok(());
    }
    let found = String::from_utf8_lossy(found);
    // With their ends, so that a file whose line endings were changed differs in its first line.
    let ours = expected.split_inclusive('\n').map(Some).chain([None]);
    let theirs = found.split_inclusive('\n').map(Some).chain([None]);
    let (index, (ours, theirs)) =
        ours.zip(theirs).enumerate().find(|(_, (ours, theirs))| ours != theirs).unwrap_or((0, (None, None)));
    let text = |line: Option<&str>| match line {
        Some(line) => {
            let line = line.strip_suffix('\n').unwrap_or(line);
            esscher_core::visible(&line.chars().take(80).collect::<String>())
        }
        None => "nothing".to_string(),
    };
    Err(Error::OtherSpecification {
        folder: folder.to_path_buf(),
        line: index + 1,
        expected: text(ours),
        found: text(theirs),
    })
}

pub(crate) fn read_provenance(folder: &Path) -> Result<Option<Provenance>> {
    let path = folder.join(PROVENANCE);
    let Some(bytes) = files::read(&path)? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::Damaged {
        path,
        reason: format!("it is not the JSON that was written: {error}"),
    })
}

/// Reads a finished run, checking the result against its checksum.
///
/// # Errors
/// No run, a run without result, damaged files.
pub fn read_finished(folder: &Path) -> Result<FinishedRun> {
    let specification = specification_of(folder)?;
    let path = folder.join(RESULT);
    let unfinished = || Error::Unfinished { folder: folder.to_path_buf() };
    let bytes = files::read(&path)?.ok_or_else(unfinished)?;
    // Killed between the result and its checksum: the run concludes when it is run again.
    let provenance =
        read_provenance(folder)?.filter(|known| known.result_sha256.is_some()).ok_or_else(unfinished)?;
    if provenance.result_sha256.as_deref() != Some(files::digest(&bytes).as_str()) {
        let reason = "its content does not match the checksum in provenance.json".to_string();
        return Err(Error::Damaged { path, reason });
    }
    if provenance.specification_sha256 != files::digest(specification.as_bytes()) {
        let path = folder.join(SPECIFICATION);
        let reason = "its content does not match the checksum in provenance.json".to_string();
        return Err(Error::Damaged { path, reason });
    }
    let (result, _) = Table::from_parquet(&bytes)
        .map_err(|error| Error::Damaged { path: path.clone(), reason: error.to_string() })?;
    Ok(FinishedRun { specification, provenance, result })
}
