//! Functions of users inside each other: a law's function that asks its own law would exhaust the stack and end the process.

use pyo3::PyErr;
use pyo3::exceptions::PyRecursionError;
use std::cell::Cell;

/// Functions inside each other at most, also where each of them waits for a thread of its own.
const DEEPEST: usize = 64;

/// Bytes of stack from the first function of a thread to the last: half of what rayon's threads have.
const MOST_STACK: usize = 1 << 20;

/// How many functions this thread is in, and where its stack was at the first one, if it has called any.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    first: Option<usize>,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place { depth: 0, first: None }) };
}

/// Where the stack is now, about.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}

/// Puts the thread back where it was.
struct Back(Place);

impl Drop for Back {
    fn drop(&mut self) {
        PLACE.set(self.0);
    }
}

/// Calls a function of the user's; nothing where it would stand too deep in others.
pub(crate) fn deeper<T>(call: impl FnOnce() -> T) -> Option<T> {
    let (before, here) = (PLACE.get(), here());
    let first = before.first.unwrap_or(here);
    if before.depth >= DEEPEST || first.abs_diff(here) > MOST_STACK {
        return None;
    }
    let _back = Back(before);
    PLACE.set(Place { depth: before.depth + 1, first: Some(first) });
    Some(call())
}

/// How many functions of users this thread is in.
pub(crate) fn depth() -> usize {
    PLACE.get().depth
}

/// Does the work of a thread that was started, and is waited for, this deep in functions of users.
pub(crate) fn from_depth<T>(depth: usize, work: impl FnOnce() -> T) -> T {
    let _back = Back(PLACE.replace(Place { depth, first: None }));
    work()
}

/// What is raised for a function that was not called.
pub(crate) fn refusal(name: &str) -> PyErr {
    PyRecursionError::new_err(format!(
        "{name}: a law's function calls itself, or too many functions of laws call each other: expected one that does not \
         ask the law that it belongs to"
    ))
}
