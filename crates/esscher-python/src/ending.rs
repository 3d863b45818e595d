//! The end of the interpreter: no daemon thread is left inside a user's function that was called from here.
//!
//! Before Python 3.14 a thread that runs Python code after the end is unwound by force, and where Rust has called that code the process
//! aborts. So functions called from here are counted; when Python ends, it waits a moment for them, and no new one begins.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

export!(fn python_ends);

/// How long the end waits for functions that are running. One that sleeps longer does no harm: it never wakes up.
const PATIENCE: Duration = Duration::from_secs(2);

static ENDING: AtomicBool = AtomicBool::new(false);

/// Functions of users that are running, called from here.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// One of them, until it is dropped.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls a function of the user's; once Python is ending, the thread stays here until the process is gone.
pub(crate) fn calling<T>(py: Python<'_>, call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    if ENDING.load(Ordering::SeqCst) {
        py.detach(stay);
    }
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let _running = Running;
    call()
}

/// Waits for the end of the process.
pub(crate) fn stay() {
    loop {
        std::thread::park();
    }
}

/// Called by `atexit`, when only daemon threads are left besides this one.
#[pyfunction]
fn python_ends(py: Python<'_>) {
    ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        let began = Instant::now();
        while RUNNING.load(Ordering::SeqCst) > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// Has Python tell when it ends.
pub(crate) fn listen(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.py().import("atexit")?.call_method1("register", (module.getattr("python_ends")?,)).map(drop)
}
