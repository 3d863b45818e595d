//! The end of the interpreter: no daemon thread is left inside a user's function that was called from here.
//!
//! Before Python 3.14 a thread that runs Python code after the end is unwound by force, and where Rust has called that code the process
//! aborts. So functions called from here are counted; when Python ends, it waits a moment for them, and no new one begins on any
//! thread but the one on which Python ends. That one goes on with the handlers of `atexit` that were registered before this module was
//! imported, and they may ask for anything that other threads compute without Python.

use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

export!(fn python_ends);

/// How long the end waits for functions that are running. One that sleeps longer does no harm: it never wakes up.
const PATIENCE: Duration = Duration::from_secs(2);

static ENDING: AtomicBool = AtomicBool::new(false);

/// The thread on which Python ends.
static LAST: OnceLock<ThreadId> = OnceLock::new();

/// Functions of users that are running, called from here.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// One of them, until it is dropped.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls a function of the user's; nothing where Python is ending on another thread.
///
/// Nobody waits here for the end: a handler of `atexit` may be waiting for this thread.
pub(crate) fn calling<T>(call: impl FnOnce() -> T) -> Option<T> {
    // Counted before the look: the end waits for this function, or is seen here.
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let _running = Running;
    (!is_elsewhere()).then(call)
}

/// Whether Python is ending, and on another thread than this one.
fn is_elsewhere() -> bool {
    ENDING.load(Ordering::SeqCst) && LAST.get() != Some(&std::thread::current().id())
}

/// What is raised for a function that was not called.
pub(crate) fn refusal() -> PyErr {
    PyRuntimeError::new_err("Python is ending: functions are no longer called")
}

/// An exception as this thread raises it: one that lives on while Python ends elsewhere leaves in silence, as SystemExit does.
pub(crate) fn in_silence(exception: PyErr) -> PyErr {
    if is_elsewhere() { PySystemExit::new_err(()) } else { exception }
}

/// Called by `atexit`, when only daemon threads are left besides this one.
#[pyfunction]
fn python_ends(py: Python<'_>) {
    LAST.get_or_init(|| std::thread::current().id());
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
