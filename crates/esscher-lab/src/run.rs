//! Runs an experiment in its folder: what is done is kept, what is missing is computed, the whole is merged.

use crate::error::{Error, Result};
use crate::experiment::{Experiment, Unit};
use crate::folder::{self, RunFolder};
use crate::provenance::{Origin, Provenance, WorkSession};
use crate::shard::Identity;
use crate::{Table, files};
use esscher_core::Monitor;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Which units of the plan a process computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    index: usize,
    of: usize,
}

impl Share {
    /// The whole plan.
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// Every `of`-th unit from `index` on; nothing if `index` is not below `of`.
    pub fn new(index: usize, of: usize) -> Option<Self> {
        (index < of).then_some(Share { index, of })
    }

    fn contains(self, unit: usize) -> bool {
        unit % self.of == self.index
    }
}

/// Watches a run.
pub trait Watcher: Sync {
    /// The units that this process is to see done, by number, and whether each is there already; called once.
    fn plan(&self, units: &[(usize, Unit, bool)]);
    /// A unit has done this part of its work, from 0 to 1.
    fn part(&self, unit: usize, fraction: f64);
    /// A unit is finished and safe on disk.
    fn finished(&self, unit: usize);
    /// Asked often; `true` ends the run early, to be resumed.
    fn should_stop(&self) -> bool;
}

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// All units are done and merged.
    Finished {
        /// The result.
        result: Table,
        /// Units computed now.
        computed: usize,
        /// Units that were there.
        kept: usize,
        /// The history.
        provenance: Provenance,
    },
    /// The share is done; other shares are not.
    ShareDone {
        /// Units computed now.
        computed: usize,
        /// Units of this share.
        units: usize,
    },
    /// Stopped on request; the same call goes on from here.
    Stopped {
        /// Units that are done.
        done: usize,
        /// Units of the plan or share.
        total: usize,
    },
}

/// Computes what is missing of this share and, if the plan is then complete, merges it.
///
/// A finished run is read, not computed. The folder stays locked as long as `folder` lives.
///
/// # Errors
/// Damaged or foreign files, what the system refuses, what a unit refuses.
pub fn run(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    share: Share,
    origin: &Origin,
    watcher: &dyn Watcher,
) -> Result<Outcome> {
    let identity = Identity::new(experiment);
    let units = experiment.units();
    let mut provenance = history(folder, &identity, units.len())?;
    if let Some(result) = finished(folder, &identity, &provenance)? {
        return Ok(Outcome::Finished { result, computed: 0, kept: units.len(), provenance });
    }
    let mut done = folder.shards(&identity, units.len())?;
    let kept = done.len();
    let mine: Vec<(usize, Unit, bool)> = units
        .iter()
        .enumerate()
        .filter(|(unit, _)| share.contains(*unit))
        .map(|(unit, described)| (unit, described.clone(), done.contains_key(&unit)))
        .collect();
    watcher.plan(&mine);
    let pending: Vec<usize> =
        (0..units.len()).filter(|unit| share.contains(*unit) && !done.contains_key(unit)).collect();
    provenance.sessions.push(WorkSession::begin(origin));
    folder.write_provenance(&provenance)?;
    let (computed, error) = compute(experiment, folder, &identity, &units, &pending, watcher);
    let (count, complete) = (computed.len(), computed.len() == pending.len());
    if let Some(session) = provenance.sessions.last_mut() {
        session.end(count);
    }
    if let Some(error) = error {
        // The first error is what the user must see; a full disk refuses this file too.
        let _ = folder.write_provenance(&provenance);
        return Err(error);
    }
    done.extend(computed);
    if done.len() == units.len() {
        let result = conclude(experiment, folder, &identity, done, &mut provenance)?;
        return Ok(Outcome::Finished { result, computed: count, kept, provenance });
    }
    folder.write_provenance(&provenance)?;
    let total = mine.len();
    Ok(if complete {
        Outcome::ShareDone { computed: count, units: total }
    } else {
        let done = done.keys().filter(|unit| share.contains(**unit)).count();
        Outcome::Stopped { done, total }
    })
}

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
    for source in sources {
        let found = folder::specification_of(source)?;
        folder::check_specification(source, experiment.specification(), found.as_bytes())?;
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
    for (unit, shard) in gathered {
        if !done.contains_key(&unit) {
            folder.write_shard(&identity, unit, &shard.table)?;
        }
        keep(&mut done, unit, shard)?;
    }
    let known = provenance.sessions.clone();
    provenance.sessions.extend(sessions.into_iter().filter(|session| !known.contains(session)));
    if let Some(first) = (0..units).find(|unit| !done.contains_key(unit)) {
        return Err(Error::Incomplete { missing: units - done.len(), total: units, first });
    }
    let mut session = WorkSession::begin(origin);
    session.end(0);
    provenance.sessions.push(session);
    let done = done.into_iter().map(|(unit, shard)| (unit, shard.table)).collect();
    let result = conclude(experiment, &folder, &identity, done, &mut provenance)?;
    Ok((folder, result, provenance))
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

/// The run's history so far, or the beginning of one.
fn history(folder: &RunFolder, identity: &Identity, units: usize) -> Result<Provenance> {
    let mut history = folder.provenance()?.unwrap_or_else(|| Provenance {
        specification_sha256: identity.specification.clone(),
        instruction_set: identity.instruction_set.clone(),
        units,
        sessions: Vec::new(),
        result_sha256: None,
    });
    if history.specification_sha256 != identity.specification {
        let reason = "it is the history of another specification".to_string();
        return Err(Error::Foreign { path: folder.provenance_path(), reason });
    }
    // Units and results say themselves which instructions made them, and are checked; without any, the set is free.
    history.instruction_set = identity.instruction_set.clone();
    Ok(history)
}

/// The result of a run that has ended before, checked.
fn finished(folder: &RunFolder, identity: &Identity, provenance: &Provenance) -> Result<Option<Table>> {
    let (Some(expected), Some(bytes)) = (&provenance.result_sha256, folder.result()?) else {
        // Killed between the result and its checksum, or the result was deleted: merged anew from the shards.
        return Ok(None);
    };
    let path = folder.result_path();
    if files::digest(&bytes) != *expected {
        let reason = "its content does not match the checksum in provenance.json".to_string();
        return Err(Error::Damaged { path, reason });
    }
    match Table::from_parquet(&bytes) {
        Ok((table, notes)) => {
            identity.check(&path, &notes)?;
            Ok(Some(table))
        }
        Err(error) => Err(Error::Damaged { path, reason: error.to_string() }),
    }
}

/// Merges all units in the order of their numbers and writes the result, then its checksum.
fn conclude(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    identity: &Identity,
    done: BTreeMap<usize, Table>,
    provenance: &mut Provenance,
) -> Result<Table> {
    let result = experiment.merge(done.into_values().collect()).map_err(Error::Result)?;
    let bytes = result.to_parquet(&identity.notes()).map_err(|error| Error::Result(error.into()))?;
    folder.write_result(&bytes)?;
    provenance.result_sha256 = Some(files::digest(&bytes));
    folder.write_provenance(provenance)?;
    Ok(result)
}

/// Runs units on all threads, the costliest first, each written as soon as it is done; the finished ones, and the
/// first error.
fn compute(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    identity: &Identity,
    units: &[Unit],
    pending: &[usize],
    watcher: &dyn Watcher,
) -> (BTreeMap<usize, Table>, Option<Error>) {
    let mut order = pending.to_vec();
    order.sort_by(|a, b| units[*b].cost.total_cmp(&units[*a].cost).then(a.cmp(b)));
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let done = Mutex::new((BTreeMap::new(), None));
    // The lock cannot be poisoned by a panic of ours that matters: the values are whole at every moment.
    let lock = || done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let work = || {
        while let Some(&unit) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if failed.load(Ordering::Relaxed) || watcher.should_stop() {
                return;
            }
            let monitor = UnitMonitor { unit, watcher, failed: &failed };
            let outcome = experiment
                .run_unit(unit, &monitor)
                .map_err(|source| Error::Unit { unit: units[unit].label.clone(), source })
                .and_then(|table| match table {
                    Some(table) => folder.write_shard(identity, unit, &table).map(|()| Some(table)),
                    None => Ok(None),
                });
            match outcome {
                Ok(Some(table)) => {
                    watcher.finished(unit);
                    lock().0.insert(unit, table);
                }
                Ok(None) => return,
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    lock().1.get_or_insert(error);
                    return;
                }
            }
        }
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| work());
        }
    });
    done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A unit's view of the watcher.
struct UnitMonitor<'a> {
    unit: usize,
    watcher: &'a dyn Watcher,
    /// Another unit failed: no need to go on.
    failed: &'a AtomicBool,
}

impl Monitor for UnitMonitor<'_> {
    fn progress(&self, completed: usize, total: usize) {
        self.watcher.part(self.unit, completed as f64 / total.max(1) as f64);
    }

    fn should_stop(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.watcher.should_stop()
    }
}
