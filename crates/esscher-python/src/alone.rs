//! What one thread of Python's may use at a time, since it changes while it is used.

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Something with its name in messages. Nobody waits for another thread: the answers would depend on who came first.
pub(crate) struct Alone<T> {
    what: &'static str,
    own: Mutex<T>,
}

impl<T> Alone<T> {
    pub(crate) fn new(what: &'static str, own: T) -> Self {
        Alone { what, own: Mutex::new(own) }
    }

    pub(crate) fn used(&self) -> PyResult<MutexGuard<'_, T>> {
        match self.own.try_lock() {
            Ok(own) => Ok(own),
            Err(TryLockError::Poisoned(own)) => Ok(own.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(format!(
                "the {} is used by another thread: make one per thread; copy() makes one",
                self.what
            ))),
        }
    }
}
