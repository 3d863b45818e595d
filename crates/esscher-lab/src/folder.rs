//! A run folder: spec.toml, provenance.json, shards/, result.parquet, figures/ and report.html of one run; and a folder of several.

use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::provenance::Provenance;
use crate::shard::{self, Identity};
use crate::{Table, files};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SPECIFICATION: &str = "spec.toml";
const PROVENANCE: &str = "provenance.json";
const RESULT: &str = "result.parquet";
const SHARDS: &str = "shards";
const FIGURES: &str = "figures";

/// A run folder that this process alone works in, as long as the value lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: files::Lock,
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
    /// Another process works in it; it holds another specification; it cannot be written; a specification that is too long to be
    /// read again.
    pub fn open(path: &Path, experiment: &dyn Experiment) -> Result<Self> {
        files::check_own_specification(experiment.specification())?;
        files::create_folder(path)?;
        let check = || match files::read_own_specification(&path.join(SPECIFICATION))? {
            None => check_unused(path),
            Some(_) => Ok(()),
        };
        // Before the lock is made, so that a folder of somebody else stays as it is; and again when nobody else can change it.
        check()?;
        let folder = Self::locked(path)?;
        check()?;
        folder.keep_specification(experiment)?;
        folder.sweep()?;
        // Checked while it was swept.
        files::create_folder(&path.join(SHARDS))?;
        Ok(folder)
    }

    /// Opens the folder of a run that is there, whatever its specification: to write its report again.
    ///
    /// # Errors
    /// No run there; another process works in it; it cannot be written.
    pub fn open_existing(path: &Path) -> Result<Self> {
        specification_of(path)?;
        let folder = Self::locked(path)?;
        folder.sweep()?;
        Ok(folder)
    }

    fn locked(path: &Path) -> Result<Self> {
        let lock = files::Lock::take(path)?.ok_or_else(|| Error::InUse { folder: path.to_path_buf() })?;
        Ok(RunFolder { path: path.to_path_buf(), lock })
    }

    /// Removes what killed processes left half written.
    fn sweep(&self) -> Result<()> {
        let inner = [SHARDS, FIGURES].map(|name| self.path.join(name));
        inner.iter().try_for_each(|folder| files::check_own_folder(folder))?;
        files::sweep(&self.path)?;
        inner.iter().try_for_each(|folder| files::sweep(folder))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of the run whole or not at all; the folder in its name, if there is one, is made.
    ///
    /// # Errors
    /// The run folder is no longer there, or another one is in its place; something that is not a file is in the way; it cannot be
    /// written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.check_there()?;
        let path = self.path.join(name);
        let written = files::create_inside(&self.path, &path).and_then(|()| files::write_own(&path, bytes));
        // The folder may have gone in between: then that is the reason, whatever the system said.
        self.check_there().and(written)
    }

    /// Sees to it that the run's specification is still there: written again if it was removed meanwhile.
    ///
    /// # Errors
    /// Another one is in its place; it cannot be written.
    pub(crate) fn keep_specification(&self, experiment: &dyn Experiment) -> Result<()> {
        match files::read_own_specification(&self.path.join(SPECIFICATION))? {
            Some(found) => check_specification(&self.path, experiment.specification(), &found),
            None => self.write(SPECIFICATION, experiment.specification().as_bytes()),
        }
    }

    fn check_there(&self) -> Result<()> {
        if self.lock.is_there() { Ok(()) } else { Err(Error::Gone { folder: self.path.clone() }) }
    }

    /// Finished units by number.
    pub(crate) fn shards(&self, identity: &Identity, units: usize) -> Result<BTreeMap<usize, Table>> {
        let found = read_shards(&self.path, identity, units)?;
        Ok(found.into_iter().map(|(unit, shard)| (unit, shard.table)).collect())
    }

    pub(crate) fn write_shard(&self, identity: &Identity, unit: usize, table: &Table) -> Result<()> {
        let (name, bytes) = shard::encode(identity, unit, table)?;
        self.write_table(&format!("{SHARDS}/{name}"), &bytes)
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
        files::read_table(&self.path.join(RESULT))
    }

    pub(crate) fn write_result(&self, bytes: &[u8]) -> Result<()> {
        self.write_table(RESULT, bytes)
    }

    fn write_table(&self, name: &str, bytes: &[u8]) -> Result<()> {
        files::check_table(&self.path.join(name), bytes.len() as u64)?;
        self.write(name, bytes)
    }

    pub(crate) fn result_path(&self) -> PathBuf {
        self.path.join(RESULT)
    }

    pub(crate) fn provenance_path(&self) -> PathBuf {
        self.path.join(PROVENANCE)
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

/// A folder in which several runs have theirs, and what is written about all of them.
#[derive(Debug)]
pub struct RunsFolder {
    path: PathBuf,
}

impl RunsFolder {
    /// Takes a folder for runs of these names; it need not be there.
    ///
    /// # Errors
    /// A folder that is a run itself, or that holds files and none of the runs: they are not ours to replace.
    pub fn open(path: &Path, runs: &[&str]) -> Result<Self> {
        let foreign = |path: PathBuf, reason: &str| Err(Error::Foreign { path, reason: reason.to_string() });
        let specification = path.join(SPECIFICATION);
        if specification.exists() {
            return foreign(specification, "the folder is that of a single run");
        }
        // Our mark stays when all runs were deleted.
        let is_ours = path.join(files::RUNS).is_file()
            || runs.iter().any(|name| path.join(name).join(SPECIFICATION).exists());
        // A process that was killed before its first run has left their folders and nothing else.
        let is_run = |entry: &PathBuf| {
            entry.is_dir() && entry.file_name().is_some_and(|name| runs.iter().any(|run| *run == name))
        };
        match files::list(path)?.into_iter().find(|entry| !is_run(entry)) {
            Some(other) if !is_ours => foreign(other, "the folder holds files but none of the runs"),
            _ => Ok(RunsFolder { path: path.to_path_buf() }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file about all runs, whole or not at all.
    ///
    /// # Errors
    /// Something that is not a file is in the way; it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        // Nothing else tells it from a folder in which somebody keeps runs and pages about them.
        files::write_own(&self.path.join(files::RUNS), b"")?;
        files::write_own(&self.path.join(name), bytes)
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
        let (unit, table, bytes) = shard::read(identity, units, &path)?;
        if let Some(other) = found.insert(unit, Shard { path: path.clone(), bytes, table }) {
            return Err(Error::Conflict { first: other.path, second: path });
        }
    }
    Ok(found)
}

/// The instruction set of the first shard in a folder, if there is one.
pub(crate) fn instruction_set_of(folder: &Path) -> Option<String> {
    shard::note_of(&first_shard(folder)?, shard::INSTRUCTION_SET)
}

/// The checksum of the specification that made the result of a folder, or else its first shard.
fn specification_in_tables(folder: &Path) -> Option<String> {
    let result = files::read_table(&folder.join(RESULT)).ok().flatten();
    shard::note_of(&result.or_else(|| first_shard(folder))?, shard::SPECIFICATION)
}

fn first_shard(folder: &Path) -> Option<Vec<u8>> {
    let first = files::list(&folder.join(SHARDS)).ok()?.into_iter().next()?;
    files::read_table(&first).ok()?
}

/// The normalised specification in a folder.
///
/// # Errors
/// No run there, a specification or a history that is not what was written, or text that is not UTF-8.
pub fn specification_of(folder: &Path) -> Result<String> {
    let path = folder.join(SPECIFICATION);
    let bytes = files::read_own_specification(&path)?
        .ok_or_else(|| Error::NotARun { folder: folder.to_path_buf() })?;
    check_intact(folder, &bytes)?;
    String::from_utf8(bytes).map_err(|_| Error::Damaged { path, reason: "it is not UTF-8 text".to_string() })
}

/// Refuses a folder whose specification is not the one that its history knows.
fn check_intact(folder: &Path, specification: &[u8]) -> Result<()> {
    let digest = files::digest(specification);
    // A history that cannot be read is told where it is needed.
    match read_provenance(folder) {
        Ok(Some(history)) if history.specification_sha256 != digest => {}
        _ => return Ok(()),
    }
    // One of the two files is not what was written; the tables of the run know the other.
    if specification_in_tables(folder) == Some(digest) {
        return Err(foreign_history(folder.join(PROVENANCE)));
    }
    let reason = "its content does not match the checksum in provenance.json".to_string();
    Err(Error::Damaged { path: folder.join(SPECIFICATION), reason })
}

/// The history of another run in the place of this one's.
pub(crate) fn foreign_history(path: PathBuf) -> Error {
    let reason = "it is the history of a run of another specification".to_string();
    Error::Foreign { path, reason }
}

/// Refuses a folder whose specification is not this one.
pub(crate) fn check_specification(folder: &Path, expected: &str, found: &[u8]) -> Result<()> {
    if expected.as_bytes() == found {
        return Ok(());
    }
    check_intact(folder, found)?;
    let found = String::from_utf8_lossy(found);
    // With their ends, so that a file whose line endings were changed differs in its first line.
    let ours = expected.split_inclusive('\n').map(Some).chain([None]);
    let theirs = found.split_inclusive('\n').map(Some).chain([None]);
    let (index, (ours, theirs)) =
        ours.zip(theirs).enumerate().find(|(_, (ours, theirs))| ours != theirs).unwrap_or((0, (None, None)));
    let alike = |(ours, theirs): &(char, char)| ours == theirs;
    let same = ours.unwrap_or("").chars().zip(theirs.unwrap_or("").chars()).take_while(alike).count();
    Err(Error::OtherSpecification {
        folder: folder.to_path_buf(),
        line: index + 1,
        expected: in_words(ours, same),
        found: in_words(theirs, same),
    })
}

/// A line of a specification for a message, from a little before the character at which it differs from another one.
fn in_words(line: Option<&str>, differs_at: usize) -> String {
    const BEFORE: usize = 40;
    const MOST: usize = 80;
    let Some(line) = line else { return "nothing, because it ends there".to_string() };
    let (text, end) = match line.strip_suffix('\n') {
        Some("") => return "nothing, because the line is empty".to_string(),
        Some(text) => (text, ""),
        None => (line, " without the end of the line"),
    };
    let skipped = differs_at.saturating_sub(BEFORE);
    let shown: String = text.chars().skip(skipped).take(MOST).collect();
    let [before, after] = [skipped > 0, text.chars().count() > skipped + MOST];
    let dots = |is_cut| if is_cut { "…" } else { "" };
    format!("`{}{}{}`{end}", dots(before), esscher_core::visible(&shown), dots(after))
}

pub(crate) fn read_provenance(folder: &Path) -> Result<Option<Provenance>> {
    let path = folder.join(PROVENANCE);
    let Some(bytes) = files::read_history(&path)? else {
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
    let bytes = files::read_table(&path)?.ok_or_else(unfinished)?;
    // Killed between the result and its checksum: the run concludes when it is run again.
    let provenance =
        read_provenance(folder)?.filter(|known| known.result_sha256.is_some()).ok_or_else(unfinished)?;
    if provenance.result_sha256.as_deref() != Some(files::digest(&bytes).as_str()) {
        let reason = "its content does not match the checksum in provenance.json".to_string();
        return Err(Error::Damaged { path, reason });
    }
    let (result, _) = Table::from_parquet(&bytes)
        .map_err(|error| Error::Damaged { path: path.clone(), reason: error.to_string() })?;
    Ok(FinishedRun { specification, provenance, result })
}
