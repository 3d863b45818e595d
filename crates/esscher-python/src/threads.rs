//! The threads of long calls: a pool of this process, made anew in a process that was forked from another.
//!
//! Rayon's global pool does not survive a fork: a child of `multiprocessing` would wait for threads that it does not have.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Does the work on the threads of this process: as many as RAYON_NUM_THREADS says, or as there are processors.
///
/// Where the system gives no threads, the work is done on rayon's own.
pub(crate) fn on_all<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

fn pool() -> Option<Arc<ThreadPool>> {
    let process = std::process::id();
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
