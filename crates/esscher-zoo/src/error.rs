//! Requests that make no sense, each naming the thing, what was expected and what was found.

/// A request that makes no sense, and what to try instead.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A wrong number of ports, parameters, heads or states.
    #[error("{what}: expected {expected}, found {found}")]
    Count {
        /// What was counted.
        what: &'static str,
        /// How many the mechanism asks for.
        expected: usize,
        /// How many were given.
        found: usize,
    },

    /// A port or parameter with a wrong number of numbers.
    #[error("{name}: expected {expected} numbers, found {found}")]
    Size {
        /// The port or parameter.
        name: &'static str,
        /// How many numbers the other arguments ask for.
        expected: usize,
        /// How many were given.
        found: usize,
    },

    /// A number that is not finite.
    #[error("{name}: entry {index} is {found}, expected a finite number")]
    NotFinite {
        /// The port or parameter.
        name: &'static str,
        /// Its place in the array, counted from 0.
        index: usize,
        /// The number that was given.
        found: f64,
    },

    /// A number outside of what its meaning allows.
    #[error("{name}: entry {index} is {found}, expected a number {expected}")]
    NotAllowed {
        /// The port or parameter.
        name: &'static str,
        /// Its place in the array, counted from 0.
        index: usize,
        /// The number that was given.
        found: f64,
        /// What is allowed.
        expected: &'static str,
    },

    /// A size or option outside of its range.
    #[error("{name}: expected {expected}, found {found}")]
    Option {
        /// The option.
        name: &'static str,
        /// What is allowed.
        expected: String,
        /// What was given.
        found: String,
    },

    /// A name that the catalogue does not have.
    #[error("no {what} is called {name:?}; there are {known}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },

    /// Something that this mechanism does not have.
    #[error("{mechanism} has no {what}: {reason}")]
    Missing {
        /// The mechanism.
        mechanism: String,
        /// What was asked for.
        what: &'static str,
        /// Why it does not exist.
        reason: &'static str,
    },

    /// Stored weights that are damaged or belong to another model.
    #[error("{what}: expected {expected}, found {found}")]
    Stored {
        /// What was read.
        what: String,
        /// What the specification asks for.
        expected: String,
        /// What the bytes hold.
        found: String,
    },

    /// An error of the mathematics below.
    #[error(transparent)]
    Core(#[from] esscher_core::Error),
}

impl Error {
    /// The same error in an array of which the one looked at is a part that begins at `from`.
    pub(crate) fn further(mut self, from: usize) -> Self {
        if let Error::NotFinite { index, .. } | Error::NotAllowed { index, .. } = &mut self {
            *index += from;
        }
        self
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
