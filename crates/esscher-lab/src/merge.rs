//! Merges the shards that several machines made into the bytes of a single run.

use crate::Table;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::folder::{self, RunFolder};
use crate::provenance::{Origin, Provenance, WorkSession};
use crate::session::{conclude, finished, history};
use crate::shard::Identity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Merges the shards of other folders into this one and concludes the run.
///
/// # Errors
/// Shards of another specification, instruction set or version; damaged ones; units that no folder has.
pub fn merge(
    experiment: &dyn Experiment,
    sources: &[PathBuf],
    out: &Path,
    origin: &Origin,
) -> Result<(RunFolder, Table, Provenance)> {
    let mut identity = Identity::new(experiment);
    // Merging runs no unit: shards of instructions that this machine lacks merge too, as long as they are of one set.
    if let Some(set) = sources.iter().find_map(|source| folder::instruction_set_of(source)) {
        identity.instruction_set = set;
    }
    let units = experiment.units().len();
    let mut gathered: BTreeMap<usize, folder::Shard> = BTreeMap::new();
    let mut sessions: Vec<WorkSession> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let found = folder::specification_of(source)?;
        let checked = folder::check_specification(source, experiment.specification(), found.as_bytes());
        // The first folder is not compared with itself.
        checked.map_err(|error| if index == 0 { error } else { mixed(error) })?;
        for (unit, shard) in folder::read_shards(source, &identity, units)? {
            keep(&mut gathered, unit, shard)?;
        }
        for session in folder::read_provenance(source)?.map_or(Vec::new(), |history| history.sessions) {
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
    }
    // Everything is in order: only now is a folder made or changed.
    let folder = RunFolder::open(out, experiment)?;
    let mut provenance = history(&folder, &identity, units)?;
    if let Some(result) = finished(&folder, &identity, &provenance)? {
        return Ok((folder, result, provenance));
    }
    let mut done = folder::read_shards(folder.path(), &identity, units)?;
    let known = provenance.sessions.clone();
    provenance.sessions.extend(sessions.into_iter().filter(|session| !known.contains(session)));
    // Before the shards, so that none is kept without its history: units may be missing.
    folder.write_provenance(&provenance)?;
    for (unit, shard) in gathered {
        if !done.contains_key(&unit) {
            folder.write_shard(&identity, unit, &shard.table)?;
        }
        keep(&mut done, unit, shard)?;
    }
    if let Some(first) = (0..units).find(|unit| !done.contains_key(unit)) {
        return Err(Error::Incomplete { missing: units - done.len(), total: units, first });
    }
    let mut session = WorkSession::begin(origin, rayon::current_num_threads());
    session.end(0);
    provenance.sessions.push(session);
    let done = done.into_iter().map(|(unit, shard)| (unit, shard.table)).collect();
    let result = conclude(experiment, &folder, &identity, done, &mut provenance)?;
    Ok((folder, result, provenance))
}

/// Here the other specification is not that of a folder to write into.
fn mixed(error: Error) -> Error {
    match error {
        Error::OtherSpecification { folder, line, expected, found } => {
            Error::MixedShards { folder, line, expected, found }
        }
        other => other,
    }
}

/// Keeps a unit's shard; refuses another result of the same unit.
fn keep(done: &mut BTreeMap<usize, folder::Shard>, unit: usize, shard: folder::Shard) -> Result<()> {
    match done.get(&unit) {
        Some(ours) if ours.bytes == shard.bytes => Ok(()),
        Some(ours) => Err(Error::Conflict { first: ours.path.clone(), second: shard.path }),
        None => {
            done.insert(unit, shard);
            Ok(())
        }
    }
}
