//! Runs an experiment in its folder on the threads of this process.

use crate::error::{Error, Result};
use crate::experiment::{Experiment, Unit};
use crate::folder::RunFolder;
use crate::provenance::Origin;
use crate::session::{Beginning, Outcome, Session, Share};
use esscher_core::Monitor;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    match Session::begin(experiment, folder, share, origin, rayon::current_num_threads())? {
        Beginning::Finished(outcome) => Ok(outcome),
        Beginning::Pending(session) => {
            watcher.plan(&session.plan());
            match compute(&session, watcher) {
                Ok(()) => session.conclude(),
                Err(error) => {
                    session.abandon();
                    Err(error)
                }
            }
        }
    }
}

/// Runs units on all threads, the costliest first, each written as soon as it is done; the first error ends them all.
fn compute(session: &Session<'_>, watcher: &dyn Watcher) -> Result<()> {
    let order = session.pending();
    let units = session.experiment().units();
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let first_error = Mutex::new(None);
    let work = || {
        while let Some(&unit) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if failed.load(Ordering::Relaxed) || watcher.should_stop() {
                return;
            }
            let monitor = UnitMonitor { unit, watcher, failed: &failed };
            let outcome = session
                .experiment()
                .run_unit(unit, &monitor)
                .map_err(|source| Error::Unit { unit: units[unit].label.clone(), source })
                .and_then(|table| match table {
                    Some(table) => session.store(unit, table).map(|()| true),
                    None => Ok(false),
                });
            match outcome {
                Ok(true) => watcher.finished(unit),
                Ok(false) => return,
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    first_error
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .get_or_insert(error);
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
    match first_error.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
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
