//! A session of work on a run: what is done is known, what is missing can be computed anywhere, the whole is merged.

use crate::error::{Error, Result};
use crate::experiment::{Experiment, Unit};
use crate::folder::{RunFolder, foreign_history};
use crate::provenance::{Origin, Provenance, WorkSession};
use crate::shard::{self, Identity};
use crate::{Table, files};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// How a session begins.
pub enum Beginning<'a> {
    /// The run was finished before; it is read, not computed.
    Finished(Outcome),
    /// There is work to do.
    Pending(Session<'a>),
}

/// Work on a run, from its folder's state to its end.
///
/// Units may be computed in this process ([`Session::store`]) or anywhere else ([`crate::compute_shard`] there,
/// [`Session::accept`] here), in any order and from several threads, each unit by one of them. What was stored is safe on disk, so a process that
/// dies loses what it was computing and nothing else.
pub struct Session<'a> {
    experiment: &'a dyn Experiment,
    folder: &'a RunFolder,
    share: Share,
    identity: Identity,
    units: Vec<Unit>,
    /// Units that were there when the session began.
    kept: usize,
    done: Mutex<BTreeMap<usize, Table>>,
    provenance: Provenance,
}

impl<'a> Session<'a> {
    /// Reads what the folder holds and records that work begins; `threads` is how many units run at once, for the history.
    ///
    /// # Errors
    /// Damaged or foreign files, what the system refuses.
    pub fn begin(
        experiment: &'a dyn Experiment,
        folder: &'a RunFolder,
        share: Share,
        origin: &Origin,
        threads: usize,
    ) -> Result<Beginning<'a>> {
        let identity = Identity::new(experiment);
        let units = experiment.units();
        let mut provenance = history(folder, &identity, units.len())?;
        if let Some(result) = finished(folder, &identity, &provenance)? {
            let outcome = Outcome::Finished { result, computed: 0, kept: units.len(), provenance };
            return Ok(Beginning::Finished(outcome));
        }
        let done = folder.shards(&identity, units.len())?;
        let kept = done.len();
        provenance.sessions.push(WorkSession::begin(origin, threads));
        folder.write_provenance(&provenance)?;
        let done = Mutex::new(done);
        Ok(Beginning::Pending(Session { experiment, folder, share, identity, units, kept, done, provenance }))
    }

    /// The experiment.
    pub fn experiment(&self) -> &'a dyn Experiment {
        self.experiment
    }

    /// The units of this share by number, and whether each is done.
    pub fn plan(&self) -> Vec<(usize, Unit, bool)> {
        let done = self.done();
        let mine = self.units.iter().enumerate().filter(|(unit, _)| self.share.contains(*unit));
        mine.map(|(unit, described)| (unit, described.clone(), done.contains_key(&unit))).collect()
    }

    /// The units of this share that are missing, the costliest first: long ones at the end would leave workers idle.
    pub fn pending(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            self.plan().into_iter().filter(|(_, _, is_done)| !is_done).map(|(unit, _, _)| unit).collect();
        order.sort_by(|a, b| self.units[*b].cost.total_cmp(&self.units[*a].cost).then(a.cmp(b)));
        order
    }

    /// Keeps the table of a unit that this process computed: on disk when the call returns.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn store(&self, unit: usize, table: Table) -> Result<()> {
        // Encoded and written outside the lock: threads do not wait for each other's disk.
        self.folder.write_shard(&self.identity, unit, &table)?;
        self.done().insert(unit, table);
        Ok(())
    }

    /// Keeps a unit that was computed elsewhere, from the bytes that [`crate::compute_shard`] made; its number.
    ///
    /// `source` is where the bytes come from, for messages. A unit that is done already is left as it is.
    ///
    /// # Errors
    /// Bytes that are damaged, or of another specification, version or instruction set; another result of a unit that is
    /// done; what the system refuses.
    pub fn accept(&self, source: &Path, bytes: &[u8]) -> Result<usize> {
        let (unit, table) = shard::decode(&self.identity, self.units.len(), source, bytes)?;
        if let Some(ours) = self.done().get(&unit) {
            // The name holds the checksum.
            let first = self.folder.shard_path(&self.identity, unit, ours)?;
            return if first == self.folder.shard_path(&self.identity, unit, &table)? {
                Ok(unit)
            } else {
                Err(Error::Conflict { first, second: source.to_path_buf() })
            };
        }
        self.store(unit, table)?;
        Ok(unit)
    }

    /// Ends the session: merges if the plan is complete, else says how far it came.
    ///
    /// # Errors
    /// What the system refuses, units that do not merge.
    pub fn conclude(mut self) -> Result<Outcome> {
        let plan = self.plan();
        let done = std::mem::take(self.done.get_mut().unwrap_or_else(PoisonError::into_inner));
        let computed = done.len() - self.kept;
        self.end(computed);
        if done.len() == self.units.len() {
            let result = conclude(self.experiment, self.folder, &self.identity, done, &mut self.provenance)?;
            let (kept, provenance) = (self.kept, self.provenance);
            return Ok(Outcome::Finished { result, computed, kept, provenance });
        }
        self.folder.write_provenance(&self.provenance)?;
        let (total, done) = (plan.len(), plan.iter().filter(|(_, _, is_done)| *is_done).count());
        Ok(if done == total {
            Outcome::ShareDone { computed, units: total }
        } else {
            Outcome::Stopped { done, total }
        })
    }

    /// Ends the session after an error: the history says how far it came, if it can still be written.
    pub fn abandon(mut self) {
        let computed = self.done().len() - self.kept;
        self.end(computed);
        // The first error is what the user must see; a full disk refuses this file too.
        let _ = self.folder.write_provenance(&self.provenance);
    }

    fn end(&mut self, computed: usize) {
        if let Some(session) = self.provenance.sessions.last_mut() {
            session.end(computed);
        }
    }

    /// The lock cannot be poisoned by a panic of ours that matters: the values are whole at every moment.
    fn done(&self) -> MutexGuard<'_, BTreeMap<usize, Table>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The run's history so far, or the beginning of one.
pub(crate) fn history(folder: &RunFolder, identity: &Identity, units: usize) -> Result<Provenance> {
    let mut history = folder.provenance()?.unwrap_or_else(|| Provenance {
        specification_sha256: identity.specification.clone(),
        instruction_set: identity.instruction_set.clone(),
        units,
        sessions: Vec::new(),
        result_sha256: None,
    });
    if history.specification_sha256 != identity.specification {
        return Err(foreign_history(folder.provenance_path()));
    }
    // Units and results say themselves which instructions made them, and are checked; without any, the set is free.
    history.instruction_set = identity.instruction_set.clone();
    Ok(history)
}

/// The result of a run that has ended before, checked.
pub(crate) fn finished(
    folder: &RunFolder,
    identity: &Identity,
    provenance: &Provenance,
) -> Result<Option<Table>> {
    // Killed between the result and its checksum, or the result was deleted: merged anew from the shards.
    let Some(expected) = &provenance.result_sha256 else { return Ok(None) };
    let Some(bytes) = folder.result()? else { return Ok(None) };
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
pub(crate) fn conclude(
    experiment: &dyn Experiment,
    folder: &RunFolder,
    identity: &Identity,
    done: BTreeMap<usize, Table>,
    provenance: &mut Provenance,
) -> Result<Table> {
    let result = experiment.merge(done.into_values().collect()).map_err(Error::Result)?;
    let bytes = result.to_parquet(&identity.notes()).map_err(|error| Error::Result(error.into()))?;
    folder.keep_specification(experiment)?;
    folder.write_result(&bytes)?;
    provenance.result_sha256 = Some(files::digest(&bytes));
    folder.write_provenance(provenance)?;
    Ok(result)
}
