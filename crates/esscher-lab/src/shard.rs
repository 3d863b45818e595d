//! A shard: the result of one unit as a Parquet file that knows which run it belongs to.
//!
//! The file's name is the unit and the beginning of the SHA-256 of its bytes, so damage shows; the notes inside say which
//! specification, program version and instruction set made it, so that nothing foreign is merged.

use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::{Table, files};
use esscher_core::Monitor;
use std::path::{Path, PathBuf};

/// What results of one run share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// SHA-256 of the normalised specification.
    pub(crate) specification: String,
    pub(crate) instruction_set: String,
    pub(crate) version: String,
}

pub(crate) const SPECIFICATION: &str = "esscher.specification";
pub(crate) const INSTRUCTION_SET: &str = "esscher.instruction_set";

/// Hexadecimal digits of the digest in a file's name.
const SHOWN: usize = 16;

impl Identity {
    pub(crate) fn new(experiment: &dyn Experiment) -> Self {
        Identity {
            specification: specification_sha256(experiment),
            instruction_set: experiment.instruction_set(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        }
    }

    pub(crate) fn notes(&self) -> Vec<(&'static str, &str)> {
        vec![
            (SPECIFICATION, &self.specification),
            (INSTRUCTION_SET, &self.instruction_set),
            ("esscher.version", &self.version),
        ]
    }

    /// Refuses a file whose notes are of another run.
    pub(crate) fn check(&self, path: &Path, notes: &[(String, String)]) -> Result<()> {
        let ours = self.notes();
        let names = ["specification", "instruction set", "version of esscher"];
        for ((key, expected), name) in ours.into_iter().zip(names) {
            let found =
                notes.iter().find(|(note, _)| note == key).map_or("none", |(_, value)| value.as_str());
            if found != expected {
                let (found, expected) = (shown(found), shown(expected));
                let reason = format!("its {name} is {found}, this run's is {expected}");
                return Err(Error::Foreign { path: path.to_path_buf(), reason });
            }
        }
        Ok(())
    }
}

/// The folder of the whole run that a folder named like a shard's, `NAME.shard-0-of-3`, has a share of.
pub fn run_of_shard(folder: &Path) -> Option<PathBuf> {
    let name = folder.file_name()?.to_str()?;
    name.rsplit_once(".shard-").map(|(whole, _)| folder.with_file_name(whole))
}

/// The SHA-256 of an experiment's normalised specification, in hexadecimal.
pub fn specification_sha256(experiment: &dyn Experiment) -> String {
    files::digest(experiment.specification().as_bytes())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

/// A note of a shard or a result, as far as it can be read.
pub(crate) fn note_of(bytes: &[u8], name: &str) -> Option<String> {
    let (_, notes) = Table::from_parquet(bytes).ok()?;
    notes.into_iter().find(|(note, _)| note == name).map(|(_, value)| value)
}

/// The bytes of a unit's file, and its name.
pub(crate) fn encode(identity: &Identity, unit: usize, table: &Table) -> Result<(String, Vec<u8>)> {
    let number = unit.to_string();
    let mut notes = identity.notes();
    notes.push(("esscher.unit", &number));
    let bytes = table.to_parquet(&notes).map_err(|error| Error::Result(error.into()))?;
    Ok((format!("{unit:05}-{}.parquet", &files::digest(&bytes)[..SHOWN]), bytes))
}

/// Computes a unit anywhere: its shard's bytes, for [`crate::Session::accept`] on the machine that has the run folder.
///
/// Nothing if the monitor asked to stop before it was finished.
///
/// # Errors
/// What the unit refuses, with its label; a number that is not in the plan.
pub fn compute_shard(
    experiment: &dyn Experiment,
    unit: usize,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<u8>>> {
    let units = experiment.units();
    let Some(described) = units.get(unit) else {
        return Err(Error::Result(
            format!("the plan has {} units, there is no unit {unit}", units.len()).into(),
        ));
    };
    let table = experiment
        .run_unit(unit, monitor)
        .map_err(|source| Error::Unit { unit: described.label.clone(), source })?;
    table.map(|table| Ok(encode(&Identity::new(experiment), unit, &table)?.1)).transpose()
}

/// Reads the file of a unit, its bytes too; refuses what is damaged or of another run.
pub(crate) fn read(identity: &Identity, units: usize, path: &Path) -> Result<(usize, Table, Vec<u8>)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parts = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-'));
    let Some((unit, digest)) = parts.and_then(|(unit, digest)| Some((unit.parse::<usize>().ok()?, digest)))
    else {
        let reason = "its name is not that of a unit: expected a number, a hyphen and a checksum".to_string();
        return Err(Error::Foreign { path: path.to_path_buf(), reason });
    };
    let bytes = files::read_table(path)?.unwrap_or_default();
    if digest != &files::digest(&bytes)[..SHOWN] {
        let reason = "its content does not match the checksum in its name".to_string();
        return Err(Error::Damaged { path: path.to_path_buf(), reason });
    }
    let (stated, table) = decode(identity, units, path, &bytes)?;
    if stated != unit {
        let reason = format!("its name says unit {unit}, its content says unit {stated}");
        return Err(Error::Foreign { path: path.to_path_buf(), reason });
    }
    Ok((unit, table, bytes))
}

/// Reads the bytes of a unit, wherever they come from; refuses what is damaged or of another run.
pub(crate) fn decode(
    identity: &Identity,
    units: usize,
    source: &Path,
    bytes: &[u8],
) -> Result<(usize, Table)> {
    let (table, notes) = Table::from_parquet(bytes)
        .map_err(|error| Error::Damaged { path: source.to_path_buf(), reason: error.to_string() })?;
    identity.check(source, &notes)?;
    let stated = notes.iter().find(|(note, _)| note == "esscher.unit").map(|(_, value)| value.as_str());
    match stated.and_then(|unit| unit.parse().ok()).filter(|unit| *unit < units) {
        Some(unit) => Ok((unit, table)),
        None => {
            let reason = "it names no unit of this run".to_string();
            Err(Error::Foreign { path: source.to_path_buf(), reason })
        }
    }
}
