//! The threads of long calls: rayon's, or a pool of our own in a process that was forked from another.
//!
//! Rayon's global pool does not survive a fork: a child of `multiprocessing` would wait for threads that it does not have.

use pyo3::Python;
use pyo3::marker::Ungil;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The process that imported this module: where rayon's own pool works.
static IMPORTED_BY: OnceLock<u32> = OnceLock::new();

static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Remembers the process that imports the module.
pub(crate) fn remember_process() {
    IMPORTED_BY.get_or_init(std::process::id);
}

/// Does the work with the interpreter free for Python's other threads, on threads that this process has.
pub(crate) fn detached<T: Ungil + Send>(py: Python<'_>, work: impl FnOnce() -> T + Ungil + Send) -> T {
    py.detach(|| on_all(work))
}

/// Does the work on the threads of this process: as many as RAYON_NUM_THREADS says, or as there are processors.
///
/// Where the system gives no threads, the work is done on rayon's own.
pub(crate) fn on_all<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool_of_a_fork() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

fn pool_of_a_fork() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
    if IMPORTED_BY.get() == Some(&process) {
        return None;
    }
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match &*pool {
        Some((owner, pool)) if *owner == process => Some(pool.clone()),
        _ => {
            let built = Arc::new(ThreadPoolBuilder::new().build().ok()?);
            // A pool of the parent process has no threads here: dropping it would wait for them.
            std::mem::forget(pool.replace((process, built.clone())));
            Some(built)
        }
    }
}
