//! Every way in which a request can make no sense, each naming the entry, what was expected and what was found.

use std::fmt;

/// Where in a vector or a matrix an offending entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Entry of a vector.
    Index(usize),
    /// Entry of a matrix.
    RowColumn(usize, usize),
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Index(index) => write!(formatter, "[{index}]"),
            Entry::RowColumn(row, column) => write!(formatter, "[{row}, {column}]"),
        }
    }
}

/// A number as messages print it: in full where that is short, in powers of ten where it would be a row of zeros.
pub(crate) struct Figure(pub(crate) f64);

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size == 0.0 || (1e-4..1e6).contains(&size) || !size.is_finite() {
            write!(formatter, "{}", self.0)
        } else {
            write!(formatter, "{:e}", self.0)
        }
    }
}

/// A request that makes no sense, and what to try instead.
///
/// Ending early (a stopped call, a flow that blows up) is not an error: such calls return what they
/// reached together with the reason they stopped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two sizes that must agree do not.
    #[error("{what}: expected size {expected}, found {found}")]
    Size {
        /// The object and the side of it that is wrong.
        what: &'static str,
        /// The size that the other arguments ask for.
        expected: usize,
        /// The size that was handed in.
        found: usize,
    },

    /// Something that must have at least one element has none.
    #[error("{what}: none given, at least one is needed")]
    Empty {
        /// The empty object, or the number that is zero.
        what: &'static str,
    },

    /// A buffer of tokens ends inside a token.
    #[error("the token buffer holds {found} numbers: expected a multiple of the dimension, {dimension}")]
    WholeTokens {
        /// Numbers per token.
        dimension: usize,
        /// Numbers in the buffer.
        found: usize,
    },

    /// An entry is NaN or infinite.
    #[error("{what}{entry} is {value}: every entry must be a finite number")]
    NotFinite {
        /// The object that holds the entry.
        what: &'static str,
        /// Where the entry stands.
        entry: Entry,
        /// The entry.
        value: f64,
    },

    /// A matrix that must be symmetric is not.
    #[error(
        "{what} is not symmetric: entry [{row}, {column}] is {} but [{column}, {row}] is {}; \
         average the two, (M + Mᵀ)/2, if the difference is rounding",
        Figure(*upper),
        Figure(*lower)
    )]
    NotSymmetric {
        /// The matrix.
        what: &'static str,
        /// Row of the entry above the diagonal.
        row: usize,
        /// Column of the entry above the diagonal.
        column: usize,
        /// The entry above the diagonal.
        upper: f64,
        /// Its mirror image.
        lower: f64,
    },

    /// A covariance has a negative eigenvalue.
    #[error(
        "{what} is not positive semi-definite: its smallest eigenvalue {eigenvalue:e} is below -{allowance:e}, \
         the allowance for rounding"
    )]
    Indefinite {
        /// The matrix.
        what: &'static str,
        /// Its smallest eigenvalue.
        eigenvalue: f64,
        /// Negative eigenvalues no larger than this are taken for rounding.
        allowance: f64,
    },

    /// A matrix that must have an inverse has none.
    #[error("{what} is singular (smallest eigenvalue {eigenvalue:e}): an invertible matrix is needed here")]
    Singular {
        /// The matrix.
        what: &'static str,
        /// Its smallest eigenvalue.
        eigenvalue: f64,
    },

    /// A number is outside the range it must lie in.
    #[error("{what} is {}: expected {expected}", Figure(*value))]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// The number.
        value: f64,
        /// The range in words.
        expected: &'static str,
    },

    /// A weight of a mixture or of a weighted prompt is not a positive number.
    #[error(
        "weight[{index}] is {}: weights must be positive and finite; leave out what has no weight",
        Figure(*value)
    )]
    Weight {
        /// Position of the weight.
        index: usize,
        /// The weight.
        value: f64,
    },

    /// A weight is so much smaller than the largest that their ratio is no double.
    #[error(
        "weight[{index}] is {}: its ratio to the largest weight, {}, underflows; leave it out",
        Figure(*value),
        Figure(*largest)
    )]
    WeightUnderflow {
        /// Position of the weight.
        index: usize,
        /// The weight.
        value: f64,
        /// The largest weight.
        largest: f64,
    },

    /// A prompt length is not a whole number of tokens in the supported range.
    #[error("prompt length {}: expected a whole number of tokens from {minimum} to 10¹²", Figure(*found))]
    PromptLength {
        /// The smallest length that makes sense for the call.
        minimum: u64,
        /// The length asked for.
        found: f64,
    },

    /// The log-partition function is infinite at this tilt.
    #[error("the log-partition of the {family} is infinite at this tilt: it needs {bound}, found {found}")]
    OutsideDomain {
        /// The family of measures.
        family: &'static str,
        /// The bound that the tilt violates.
        bound: String,
        /// What the tilt has instead.
        found: String,
    },

    /// A result is too large for a double.
    #[error("{what} overflows double precision: scale the tokens, the query or the matrices down")]
    Overflow {
        /// The number that overflowed.
        what: &'static str,
    },

    /// A result that is not zero is too small for a double.
    #[error("{what} underflows double precision: scale the tokens, the query or the matrices up")]
    Underflow {
        /// The number that underflowed.
        what: &'static str,
    },

    /// A result is a small difference of numbers so large that their rounding may be all of it.
    #[error(
        "{what} is lost to rounding, a small difference of large numbers: scale the tokens, the query or the matrices down"
    )]
    Cancelled {
        /// The number that was lost.
        what: &'static str,
    },

    /// A saved state is that of another run.
    #[error(
        "the saved progress has another {what}: expected {expected}, found {found}; \
         continue it with its own options, or start from none"
    )]
    OtherRun {
        /// The part of the request that differs.
        what: &'static str,
        /// What is asked for now.
        expected: String,
        /// What it was run with.
        found: String,
    },

    /// A closure handed in by the user returned something that is not a finite number.
    #[error("the user's {what} returned {value} at tilt {tilt:?}: a finite number is needed there")]
    UserFunction {
        /// The closure that gave it.
        what: &'static str,
        /// What it returned.
        value: f64,
        /// Where it was asked.
        tilt: Vec<f64>,
    },

    /// An instruction set that is unknown or that this processor does not have.
    #[error("no instruction set \"{name}\" on this machine: it has {available}")]
    InstructionSet {
        /// The name asked for.
        name: String,
        /// The names that would work.
        available: String,
    },

    /// Units of different simulations were put together.
    #[error(
        "a unit of another simulation (digest {found:016x} instead of {expected:016x}): head, laws, lengths and \
         options must be the same, instruction set included"
    )]
    OtherSimulation {
        /// The digest of the simulation asked for.
        expected: u64,
        /// The digest that the unit carries; equal to the other if only the options differ.
        found: u64,
    },

    /// This family of measures cannot do what was asked.
    #[error("{family}: {operation} is not available; {remedy}")]
    Unsupported {
        /// The family of measures.
        family: &'static str,
        /// What was asked.
        operation: &'static str,
        /// What to try.
        remedy: &'static str,
    },
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_in_full_where_that_is_short() {
        let printed = |value| Figure(value).to_string();
        assert_eq!([printed(0.0), printed(-2.5), printed(1e-4)], ["0", "-2.5", "0.0001"]);
        assert_eq!([printed(1e300), printed(-3e-200), printed(1e6)], ["1e300", "-3e-200", "1e6"]);
        assert_eq!([printed(f64::NAN), printed(f64::NEG_INFINITY)], ["NaN", "-inf"]);
    }

    #[test]
    fn messages_name_what_was_expected() {
        let error = Error::Indefinite { what: "covariance", eigenvalue: -1.0, allowance: 2e-12 };
        assert!(error.to_string().contains("smallest eigenvalue -1e0 is below -2e-12"), "{error}");
        let error = Error::WeightUnderflow { index: 1, value: 1e-300, largest: 1e300 };
        assert!(
            error.to_string().contains("1e-300: its ratio to the largest weight, 1e300, underflows"),
            "{error}"
        );
        let error = Error::WholeTokens { dimension: 3, found: 7 };
        assert!(error.to_string().contains("7 numbers: expected a multiple of the dimension, 3"), "{error}");
    }
}
