//! The kinds of errors: one stable word each, by which programs tell them apart (`docs/command-line.md` explains them).

use crate::error::Error;

crate::named! {
    /// What kind of trouble an error is.
    pub enum ErrorKind {
        /// Arguments of the command line that make no sense.
        Usage = "usage",
        /// A specification that makes no sense or is none.
        Specification = "specification",
        /// A name that nothing has: of a claim, a question, a model, a text.
        Unknown = "unknown",
        /// An array that holds something else than numbers, or is damaged or too large.
        Array = "array",
        /// The system refuses to read or write a file or a folder, or to start threads.
        File = "file",
        /// A file whose content is not what was written.
        Damaged = "damaged",
        /// Another process works in the folder.
        InUse = "in-use",
        /// A folder or a file that belongs to another run or to somebody else.
        Foreign = "foreign",
        /// A run without a result, a folder without a run, shards that do not make a whole.
        Unfinished = "unfinished",
        /// A checkpoint, a dump or a text that cannot be used, or a request that does not fit it.
        Model = "model",
        /// A checkpoint that could not be fetched.
        Download = "download",
        /// A question that the mathematics has no answer to.
        Mathematics = "mathematics",
        /// Stopped by the user; the same command goes on from there.
        Interrupted = "interrupted",
        /// A mistake of ours: please report it.
        Internal = "internal",
    }
}

impl Error {
    /// The kind of trouble that this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Mistake(_) | Error::LargeSpecification { .. } | Error::LongSpecification { .. } => {
                ErrorKind::Specification
            }
            // Read, and no text.
            Error::NoSpecification { source, .. } if source.kind() == std::io::ErrorKind::InvalidData => {
                ErrorKind::Specification
            }
            Error::NoSpecification { .. }
            | Error::File { .. }
            | Error::TooLarge { .. }
            | Error::LargeTable { .. } => ErrorKind::File,
            Error::Damaged { .. } | Error::WrongSum { .. } => ErrorKind::Damaged,
            Error::InUse { .. } => ErrorKind::InUse,
            Error::OtherSpecification { .. }
            | Error::MixedShards { .. }
            | Error::Foreign { .. }
            | Error::NotReplaced { .. }
            | Error::Conflict { .. } => ErrorKind::Foreign,
            Error::Gone { .. } => ErrorKind::File,
            Error::Incomplete { .. } | Error::Unfinished { .. } | Error::NotARun { .. } => {
                ErrorKind::Unfinished
            }
            Error::Unit { .. } => ErrorKind::Mathematics,
            Error::Result(_) => ErrorKind::Internal,
        }
    }
}
