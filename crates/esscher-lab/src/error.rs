//! What can go wrong with a run: each error names the file or the unit and says what to try.

use crate::experiment::Failure;
use crate::shard;
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
    #[error("cannot read {}: {}", file.display(), system_reason(source))]
    NoSpecification {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A file that is too large to be a specification.
    #[error("{} is too large for a specification: expected at most 4 MiB of text", file.display())]
    LargeSpecification {
        /// The file.
        file: PathBuf,
    },

    /// A specification whose normal form is too long.
    #[error("the specification is too long: its normal form has {bytes} bytes, expected at most {most}")]
    LongSpecification {
        /// Its bytes, with every default written out.
        bytes: u64,
        /// The most that are read again.
        most: u64,
    },

    /// The operating system refused.
    #[error("cannot {action} {}: {}", path.display(), system_reason(source))]
    File {
        /// What was tried: read, write, lock, create, list.
        action: &'static str,
        /// The file or folder that it was tried on.
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
        "{} holds another specification: line {line} of its spec.toml says {found}, this run says {expected}",
        folder.display()
    )]
    OtherSpecification {
        /// The run folder.
        folder: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
        /// What this run would write, in words.
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
        /// The sum that was asked for, in hexadecimal.
        expected: String,
        /// The sum of the file, in hexadecimal.
        found: String,
    },

    /// A file that is larger than makes sense.
    #[error("{} is too large: expected at most {most} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size that is read.
        most: u64,
    },

    /// A table that is too large to be written.
    #[error(
        "{} is not written: its table has {bytes} bytes, expected at most {most}, which is what is read again",
        path.display()
    )]
    LargeTable {
        /// The file that it would have been.
        path: PathBuf,
        /// Its bytes.
        bytes: u64,
        /// The most that are read again.
        most: u64,
    },

    /// A target that stays as it is.
    #[error("{} is not written: {reason}", path.display())]
    NotReplaced {
        /// The target, as it was given.
        path: PathBuf,
        /// What is there.
        reason: String,
        /// Whether it is a file of somebody else, which may be replaced if the user says so.
        is_foreign: bool,
    },

    /// The folder in which a run began, or its lock, is no longer there.
    #[error(
        "{} or the file .lock in it was moved, removed or replaced while this run worked in it",
        folder.display()
    )]
    Gone {
        /// Where it was.
        folder: PathBuf,
    },

    /// Shards that cannot be merged, because they are of several specifications.
    #[error(
        "{} is of another specification than the first folder: line {line} of its spec.toml says {found}, that of the first \
         says {expected}",
        folder.display()
    )]
    MixedShards {
        /// The folder that does not fit.
        folder: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
        /// What the first folder has, in words.
        expected: String,
        /// What this one has.
        found: String,
    },

    /// A file that does not belong to this run.
    #[error("{} does not belong to this run: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How that is known.
        reason: String,
    },

    /// Two results of one unit that differ.
    #[error("{} and {} hold different results of the same unit", first.display(), second.display())]
    Conflict {
        /// One of the two files.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },

    /// Shards that do not cover the plan.
    #[error("{missing} of {total} units are missing, the first is unit {first}")]
    Incomplete {
        /// Units that no shard holds.
        missing: usize,
        /// Units of the plan.
        total: usize,
        /// The first of them, from 0.
        first: usize,
    },

    /// A run without a result.
    #[error("{} is not finished: result.parquet, or its checksum in provenance.json, is missing", folder.display())]
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
        /// The label of the unit.
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

/// How a door names the settings that hints advise: `--out` here, `out=` there.
#[derive(Debug, Clone, Copy)]
pub struct SettingNames {
    /// Where runs are kept.
    pub folder: &'static str,
    /// The instruction set of simulations.
    pub instruction_set: &'static str,
    /// What makes a run of a specification.
    pub run: &'static str,
    /// What makes a run of shards.
    pub merge: &'static str,
    /// What prints a specification to begin with.
    pub example: &'static str,
    /// What replaces a file of somebody else.
    pub force: &'static str,
}

impl Error {
    /// What to try, if something can be, in the words of the door.
    pub fn hint(&self, names: &SettingNames) -> Option<String> {
        let SettingNames { folder, instruction_set, run, merge, example, force } = names;
        match self {
            Error::Mistake(mistake) => mistake.hint.clone(),
            Error::File { action: "read" | "list", source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Some("ask for the right to read it".to_string()),
                _ => None,
            },
            Error::File { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(
                    "free some space and run the same command again: finished units are kept".to_string(),
                ),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some(format!("choose a folder that you may write to with {folder}"))
                }
                _ => None,
            },
            Error::InUse { .. } => {
                Some(format!("wait for it to end, or choose another folder with {folder}"))
            }
            Error::OtherSpecification { .. } => {
                Some(format!("choose another folder with {folder}, or move the old run away"))
            }
            Error::Damaged { path, .. } => Some(match path.file_name().and_then(|name| name.to_str()) {
                Some("spec.toml") => format!("restore it, or start again in another folder with {folder}"),
                Some("provenance.json") => {
                    "delete it and run the experiment again: its history is lost; units whose shards are there are kept, the \
                     others are computed again"
                        .to_string()
                }
                Some("result.parquet") => {
                    "delete it and run the experiment again: it is made anew from the shards; where these were deleted, all \
                     units are computed again"
                        .to_string()
                }
                Some(name) if name.ends_with(".parquet") => format!(
                    "delete {} and run the experiment again: that unit is computed anew",
                    path.display()
                ),
                // A unit that came from another machine was not written anywhere.
                _ => "run the experiment again: that unit is computed anew".to_string(),
            }),
            Error::Unfinished { folder } if shard::run_of_shard(folder).is_some() => Some(format!(
                "it holds one share of a run: compute all shares, then `{merge}` makes the run"
            )),
            Error::Unfinished { .. } => Some(format!("`{run}` finishes it")),
            Error::Foreign { reason, .. } if reason.contains("instruction set") => Some(format!(
                "all units of a run come from one instruction set: give it with {instruction_set}, or choose another \
                 folder with {folder}"
            )),
            Error::Foreign { .. } => {
                Some(format!("move it out of the folder, or choose another with {folder}"))
            }
            Error::Conflict { .. } => {
                Some("delete one of the two files, and run that shard again".to_string())
            }
            Error::Incomplete { .. } => {
                Some("run the shards that are missing, and merge all of them again".to_string())
            }
            Error::MixedShards { .. } => {
                Some("merge shards of one specification and one seed only".to_string())
            }
            Error::NotReplaced { is_foreign: true, .. } => {
                Some(format!("choose another name, or replace it with {force}"))
            }
            Error::NotReplaced { .. } => Some("choose another name".to_string()),
            Error::Gone { .. } => Some(
                "finished units are in that folder, if it still exists: move it back if it was moved, and run the same again"
                    .to_string(),
            ),
            Error::NotARun { .. } => Some(format!("check the path; `{run}` makes a run folder")),
            Error::NoSpecification { .. } => {
                Some(format!("give a specification in TOML; `{example}` prints one"))
            }
            Error::WrongSum { .. } => {
                Some("give the file that was meant, or the SHA-256 of this one".to_string())
            }
            Error::LongSpecification { .. } | Error::LargeTable { .. } => {
                Some("divide the experiment into several, each with its own specification".to_string())
            }
            Error::LargeSpecification { .. }
            | Error::TooLarge { .. }
            | Error::Unit { .. }
            | Error::Result(_) => None,
        }
    }

    /// Whether the request made no sense, as opposed to work that could not be done.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            Error::Mistake(_)
                | Error::NoSpecification { .. }
                | Error::LargeSpecification { .. }
                | Error::LongSpecification { .. }
        )
    }

    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Error::File { action, path: path.to_path_buf(), source }
    }
}

/// The system's reason as a part of a sentence: without its number, and without the capital that it begins with.
pub fn system_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = reason.chars();
    match letters.next() {
        // Not that of an abbreviation: UTF-8, I/O.
        Some(first)
            if !letters.as_str().chars().take_while(|letter| *letter != ' ').any(char::is_uppercase) =>
        {
            first.to_lowercase().chain(letters).collect()
        }
        _ => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_the_system_loses_its_number_and_its_first_capital_only() {
        for (said, reason) in [
            ("No such file or directory (os error 2)", "no such file or directory"),
            ("it is not UTF-8 text", "it is not UTF-8 text"),
            ("UTF-8 was expected", "UTF-8 was expected"),
            ("I/O error", "I/O error"),
            ("A lock", "a lock"),
            ("", ""),
        ] {
            assert_eq!(system_reason(&io::Error::other(said)), reason);
        }
    }
}
