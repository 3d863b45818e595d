//! What an audit refuses: which input, what was expected, what was found, what to try.

/// A request or a checkpoint that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes that are not what they should be: truncated, damaged, of another format.
    #[error("{what}: {problem}")]
    Damaged {
        /// Which file or part of it.
        what: String,
        /// Expected and found.
        problem: String,
    },
    /// A checkpoint that is sound but not of a kind that is known here.
    #[error("{what} is not supported: {problem}")]
    Unsupported {
        /// The architecture, tensor type or tokeniser by its name.
        what: String,
        /// What is supported, and what to try.
        problem: String,
    },
    /// A request that does not fit the model.
    #[error("{0}")]
    Request(String),
}
