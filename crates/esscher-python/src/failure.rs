//! The one place where errors of the library become Python exceptions, with the same sentences as the command line.

use crate::arrays::Any;
use crate::asked::Asked;
use crate::watch::{self, Watch};
use crate::{ending, numbers, threads};
use esscher_lab::SettingNames;
use esscher_questions::conduct;
use pyo3::PyResult;
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyMemoryError, PyOSError, PyPermissionError, PyRuntimeError,
    PyValueError,
};
use pyo3::prelude::*;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

/// Turns a refusal of the library into an exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

/// The crates whose errors are all requests that make no sense.
macro_rules! value_errors {
    ($($(#[$condition:meta])* $error:ty),+) => {
        $(
            $(#[$condition])*
            impl<T> OrRaise<T> for Result<T, $error> {
                fn or_raise(self) -> PyResult<T> {
                    self.map_err(|error| PyValueError::new_err(error.to_string()))
                }
            }
        )+
    };
}

value_errors!(
    esscher_core::Error,
    #[cfg(feature = "zoo")]
    esscher_zoo::Error,
    #[cfg(feature = "audit")]
    esscher_audit::Error
);

impl<T> OrRaise<T> for Result<T, conduct::Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| run_exception(&error))
    }
}

impl<T> OrRaise<T> for Result<T, esscher_lab::Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(conduct::Error::from).or_raise()
    }
}

/// What became of a run: a request that makes no sense is a ValueError, a file an OSError, a refused unit a RuntimeError.
fn run_exception(error: &conduct::Error) -> PyErr {
    use esscher_lab::Error as Lab;
    let message = match error.hint(&NAMES) {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    };
    match error {
        conduct::Error::Lab(Lab::NoSpecification { source, .. } | Lab::File { source, .. }) => {
            match source.kind() {
                ErrorKind::NotFound => PyFileNotFoundError::new_err(message),
                ErrorKind::PermissionDenied => PyPermissionError::new_err(message),
                ErrorKind::InvalidData => PyValueError::new_err(message),
                _ => PyOSError::new_err(message),
            }
        }
        conduct::Error::Lab(Lab::NotARun { .. } | Lab::Unfinished { .. }) => {
            PyFileNotFoundError::new_err(message)
        }
        conduct::Error::Lab(Lab::OtherSpecification { .. } | Lab::NotReplaced { .. }) => {
            PyFileExistsError::new_err(message)
        }
        conduct::Error::Lab(
            Lab::InUse { .. }
            | Lab::Gone { .. }
            | Lab::TooLarge { .. }
            | Lab::WrongSum { .. }
            | Lab::Damaged { .. }
            | Lab::Foreign { .. }
            | Lab::Conflict { .. }
            | Lab::Incomplete { .. },
        ) => PyOSError::new_err(message),
        error if error.is_request() => PyValueError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// What hints advise, as Python names it.
const NAMES: SettingNames = SettingNames {
    folder: "out=",
    instruction_set: "instruction_set=",
    run: "esscher.run(specification)",
    merge: "esscher.merge(folders)",
    example: "esscher.example(kind)",
    force: "force=True",
};

/// A choice among words: `what` is `found`, expected one of `names`.
pub(crate) fn choice<T: Copy>(what: &str, found: &str, names: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, value)) = names.iter().find(|(name, _)| *name == found) {
        return Ok(*value);
    }
    let known: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(PyValueError::new_err(format!("{what} is {found:?}: expected {}", known.join(" or "))))
}

/// The same for an argument of Python's, which is the first of the names unless given.
pub(crate) fn choice_or_first<T: Copy>(
    what: &str,
    given: Option<&Any<'_>>,
    names: &[(&str, T)],
) -> PyResult<T> {
    given.map_or(Ok(names[0].1), |given| choice(what, &numbers::text(what, given)?, names))
}

/// Room for this many numbers, or a MemoryError that says what they were for.
pub(crate) fn room_for(what: &str, sizes: &[usize]) -> PyResult<Vec<f64>> {
    let count = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    let mut numbers = Vec::new();
    match count.map(|count| numbers.try_reserve_exact(count)) {
        Some(Ok(())) => Ok(numbers),
        _ => {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            Err(PyMemoryError::new_err(format!(
                "{what} would be {} doubles, more than there is memory for: ask for fewer at a time",
                sizes.join(" × ")
            )))
        }
    }
}

/// Exceptions that a user's own functions raised during a call, kept until the call is back in Python.
///
/// The library knows numbers only; such a function gives it NaN and leaves its exception here. A measure made of others
/// holds theirs.
#[derive(Clone, Default)]
pub(crate) struct Exceptions(Vec<Arc<Mutex<Option<PyErr>>>>);

impl Exceptions {
    /// The place of one user's law.
    pub(crate) fn of_one() -> Self {
        Exceptions(vec![Arc::default()])
    }

    /// Those of several measures.
    pub(crate) fn joined<'a>(all: impl IntoIterator<Item = &'a Exceptions>) -> Self {
        Exceptions(all.into_iter().flat_map(|exceptions| exceptions.0.iter().cloned()).collect())
    }

    /// Keeps an exception unless there is one already.
    pub(crate) fn keep(&self, exception: PyErr) {
        if let Some(place) = self.0.first() {
            place.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(exception);
        }
    }

    /// Whether there are functions of users at all.
    pub(crate) fn are_possible(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether one of them has raised.
    pub(crate) fn is_one_kept(&self) -> bool {
        self.0.iter().any(|place| place.lock().unwrap_or_else(PoisonError::into_inner).is_some())
    }

    /// A result of the library, unless a user's function raised meanwhile.
    pub(crate) fn or_raise<T>(&self, result: esscher_core::Result<T>) -> PyResult<T> {
        // All are taken: what is left would be raised by the next call.
        let taken = self.0.iter().map(|place| place.lock().unwrap_or_else(PoisonError::into_inner).take());
        match taken.collect::<Vec<_>>().into_iter().flatten().next() {
            Some(exception) => Err(ending::in_silence(exception)),
            None => result.or_raise(),
        }
    }

    /// Does long work that may call the user's functions; see [`Self::after`] for what is raised.
    pub(crate) fn watched<T: Send>(
        &self,
        asked: &Asked<'_>,
        work: impl FnOnce(&Watch) -> esscher_core::Result<T> + Send,
    ) -> PyResult<T> {
        self.after(asked.watched(work))
    }

    /// What became of work that may have called the user's functions; what stopped it is raised, else what they raised.
    pub(crate) fn after<T>(&self, done: PyResult<esscher_core::Result<T>>) -> PyResult<T> {
        let raised = self.or_raise(Ok(()));
        let result = done?;
        raised?;
        result.or_raise()
    }

    /// Does work on this many numbers that owns all it needs, as [`watch::by_size`] does. Work that may call the user's
    /// functions stays on this thread, where an interrupt meets them.
    pub(crate) fn by_size<T: Send + 'static>(
        &self,
        py: Python<'_>,
        numbers: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> PyResult<T> {
        if self.are_possible() { Ok(threads::detached(py, work)) } else { watch::by_size(py, numbers, work) }
    }
}
