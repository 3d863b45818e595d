//! The Python door: `esscher._native`, which the package in `python/esscher` wraps. It translates and nothing more.
//!
//! `asked` is how the arguments of a call come in, `arrays` how numbers do and go out, `failure` how errors become
//! exceptions, `watch` how long calls show progress and stop on Ctrl-C, `threads` how they share the machine, `ending` how
//! they end with the interpreter, `nesting` how deep users' functions call each other, `alone` what one thread uses at a time; the other files are the subjects, and each says with
//! `export!` what it gives to Python.

// PyO3's macros generate public items.
#![allow(
    unreachable_pub,
    missing_docs,
    reason = "the public face is Python's; python/esscher/_native.pyi describes it"
)]

#[macro_use]
mod export;

#[cfg(any(feature = "audit", feature = "zoo"))]
mod alone;
mod arrays;
mod ask;
mod asked;
#[cfg(feature = "audit")]
mod audit;
mod ending;
mod failure;
mod heads;
mod layers;
mod measures;
mod nesting;
mod numbers;
mod prompts;
mod rates;
mod regression;
mod runs;
mod scales;
mod threads;
mod user_law;
mod watch;
mod weights;
#[cfg(feature = "zoo")]
mod zoo;

/// What the subjects have in common.
#[allow(unused_imports, reason = "a build without features has fewer subjects")]
mod prelude {
    pub(crate) use crate::arrays::{self, Any, Array, Reals};
    pub(crate) use crate::asked::Asked;
    pub(crate) use crate::failure::{Exceptions, OrRaise, choice, choice_or_first, room_for};
    pub(crate) use crate::{numbers, threads};
    pub(crate) use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
    pub(crate) use pyo3::prelude::*;
    pub(crate) use pyo3::pyclass::{PyTraverseError, PyVisit};
    pub(crate) use pyo3::types::{PyDict, PyTuple, PyType};
}

use pyo3::prelude::*;

/// The native half of the package `esscher`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    threads::remember_process();
    export::all(module)?;
    ending::listen(module)
}
