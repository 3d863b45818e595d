//! What can go wrong with a run: each error names the file or the unit and says what to try.

use crate::experiment::Failure;
use crate::specification::Mistake;
use std::io;
use std::path::{Path, PathBuf};

/// A run that cannot go on. Nothing that was finished is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The specification makes no sense.
    #[error(transparent)]
    Mistake(#[from] Mistake),

    /// A specification's file that cannot be read.
    #[error("cannot read {}: {}", file.display(), reason(source))]
    NoSpecification {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file that is too large to be a specification.
    #[error("{} is too large for a specification", file.display())]
    LargeSpecification {
        /// The file.
        file: PathBuf,
    },

    /// The operating system refused.
    #[error("cannot {action} {}: {}", path.display(), reason(source))]
    File {
        /// What was tried: read, write, lock, create, list.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Another process works in the folder.
    #[error("{} is in use by another process", folder.display())]
    InUse {
        /// The run folder.
        folder: PathBuf,
    },

    /// The folder holds another experiment.
    #[error(
        "{} holds another specification: line {line} of its spec.toml says `{found}`, this run says `{expected}`",
        folder.display()
    )]
    OtherSpecification {
        /// The run folder.
        folder: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
        /// What this run would write.
        expected: String,
        /// What is there.
        found: String,
    },

    /// A file whose content is not what was written.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that is known.
        reason: String,
    },

    /// A file that is not the one that was meant.
    #[error("{} has the SHA-256 {found}, expected {expected}", path.display())]
    WrongSum {
        /// The file.
        path: PathBuf,
        /// In hexadecimal.
        expected: String,
        /// In hexadecimal.
        found: String,
    },

    /// A file that is larger than makes sense.
    #[error("{} has more than {most} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        most: u64,
    },

    /// A file that does not belong to this run.
    #[error("{} does not belong to this run: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// Two results of one unit that differ.
    #[error("{} and {} hold different results of the same unit", first.display(), second.display())]
    Conflict {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },

    /// Shards that do not cover the plan.
    #[error("{missing} of {total} units are missing, the first is unit {first}")]
    Incomplete {
        /// How many.
        missing: usize,
        /// Of how many.
        total: usize,
        /// The first of them, from 0.
        first: usize,
    },

    /// A run without a result.
    #[error("{} is not finished: it has no result.parquet", folder.display())]
    Unfinished {
        /// The run folder.
        folder: PathBuf,
    },

    /// A folder without a run.
    #[error("{} is not a run folder: it has no spec.toml", folder.display())]
    NotARun {
        /// The folder.
        folder: PathBuf,
    },

    /// The experiment refused or failed.
    #[error("{unit}: {source}")]
    Unit {
        /// Its label.
        unit: String,
        /// What it said.
        source: Failure,
    },

    /// The result could not be made of the units, written or described.
    #[error("the result could not be made: {0}")]
    Result(Failure),
}

/// The result of a call that touches a run.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What to try, if something can be.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Mistake(mistake) => mistake.hint.clone(),
            Error::File { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "free some space and run the same command again: finished units are kept".to_string(),
                ),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a folder that you may write to with --out".to_string())
                }
                _ => None,
            },
            Error::InUse { .. } => {
                Some("wait for it to end, or choose another folder with --out".to_string())
            }
            Error::OtherSpecification { .. } => {
                Some("choose another folder with --out, or move the old run away".to_string())
            }
            Error::Damaged { path, .. } => Some(match path.file_name().and_then(|name| name.to_str()) {
                Some("spec.toml") => "restore it, or start again in another folder with --out".to_string(),
                Some("provenance.json") => {
                    "delete it and run the experiment again: its history is lost, finished units are kept".to_string()
                }
                Some("result.parquet") => {
                    "delete it and run the experiment again: it is merged anew from the shards".to_string()
                }
                _ => format!("delete {} and run the experiment again: that unit is computed anew", path.display()),
            }),
            Error::Unfinished { .. } => Some("`esscher run FILE.toml` finishes it".to_string()),
            Error::Foreign { reason, .. } if reason.contains("instruction set") => Some(
                "all units of a run come from one instruction set: give it with --instruction-set, or choose another \
                 folder with --out"
                    .to_string(),
            ),
            Error::Foreign { .. } => {
                Some("move it out of the folder, or choose another with --out".to_string())
            }
            Error::Conflict { .. } => Some("delete the one that you do not trust".to_string()),
            Error::Incomplete { .. } => {
                Some("run the shards that are missing, or `esscher run` on the merged folder".to_string())
            }
            Error::NotARun { .. } => Some("`esscher run FILE.toml` makes one".to_string()),
            Error::NoSpecification { .. } => {
                Some("give a specification in TOML; `esscher example KIND` prints one".to_string())
            }
            Error::LargeSpecification { .. }
            | Error::WrongSum { .. }
            | Error::TooLarge { .. }
            | Error::Unit { .. }
            | Error::Result(_) => None,
        }
    }

    /// Whether the request made no sense, as opposed to work that could not be done.
    pub fn is_request(&self) -> bool {
        matches!(self, Error::Mistake(_) | Error::NoSpecification { .. } | Error::LargeSpecification { .. })
    }

    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Error::File { action, path: path.to_path_buf(), source }
    }
}

/// The system's reason without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
