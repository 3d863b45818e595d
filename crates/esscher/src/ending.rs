//! How the program ends: exit codes, and errors as a line with a hint and a kind.

use crate::words;
use esscher_core::visible;
use esscher_lab::{ErrorKind, SettingNames};
use esscher_questions::conduct;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything that was asked for is done.
    Done,
    /// It could not be done.
    Failed,
    /// The request makes no sense.
    BadRequest,
    /// Done, but a claim does not hold.
    ClaimFails,
    /// Stopped by the user; resumable.
    Interrupted,
}

impl Ending {
    pub(crate) fn number(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::Failed => 1,
            Ending::BadRequest => 2,
            Ending::ClaimFails => 3,
            Ending::Interrupted => 130,
        }
    }

    pub(crate) fn code(self) -> ExitCode {
        self.number().into()
    }
}

impl From<&Trouble> for Ending {
    fn from(trouble: &Trouble) -> Self {
        match trouble {
            Trouble::Request { .. } => Ending::BadRequest,
            Trouble::Run(error) if error.is_request() => Ending::BadRequest,
            Trouble::Interrupted { .. } => Ending::Interrupted,
            Trouble::NobodyListens => Ending::Done,
            Trouble::Run(_) | Trouble::Failed { .. } => Ending::Failed,
        }
    }
}

/// Why a command was not carried out, or not to its end.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Arguments or inputs that make no sense.
    Request { kind: ErrorKind, message: String, hint: Option<String> },
    /// A run.
    Run(conduct::Error),
    /// Stopped by the user; the folder that is left, if any.
    Interrupted { message: String, folder: Option<PathBuf> },
    /// Standard output was closed by its reader, as `head` does.
    NobodyListens,
    /// Anything else.
    Failed { kind: ErrorKind, message: String, hint: Option<String> },
}

impl Trouble {
    pub(crate) fn request(kind: ErrorKind, message: impl Into<String>) -> Self {
        Trouble::Request { kind, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Trouble::Request { kind, message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn failed(kind: ErrorKind, message: impl Into<String>) -> Self {
        Trouble::Failed { kind, message: message.into(), hint: None }
    }

    /// A run that was stopped; how far it came.
    pub(crate) fn stopped(folder: &Path, how_far: &str) -> Self {
        let message = format!("stopped{how_far}; the same command goes on from here");
        Trouble::Interrupted { message, folder: Some(folder.to_path_buf()) }
    }

    /// Stopped where there is nothing to keep.
    pub(crate) fn stopped_at_once() -> Self {
        Trouble::Interrupted { message: "interrupted".to_string(), folder: None }
    }

    /// What the parser of the arguments refuses: its first paragraph is the message, its advice or the usage the hint.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        use clap::error::{ContextKind, ContextValue, ErrorKind as Parsed};
        if let (Parsed::InvalidSubcommand, Some(ContextValue::String(word))) =
            (error.kind(), error.get(ContextKind::InvalidSubcommand))
        {
            let message = format!("there is no command `{word}`");
            return Trouble::with_hint(ErrorKind::Usage, message, words::instead_of(word));
        }
        if error.kind() == Parsed::InvalidUtf8 {
            let is_text = |argument: &OsString| argument.to_str().is_some();
            let found = std::env::args_os().find(|argument| !is_text(argument)).unwrap_or_default();
            let message = format!("`{}` is not UTF-8 text", visible(&found.to_string_lossy()));
            return Trouble::with_hint(ErrorKind::Usage, message, "if it is a file, rename it");
        }
        let argument = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(one)) => Some(one.as_str()),
            Some(ContextValue::Strings(all)) => all.first().map(String::as_str),
            _ => None,
        };
        match (error.kind(), argument.and_then(|argument| argument.split(' ').next())) {
            (Parsed::MissingRequiredArgument, Some(option)) if option.starts_with("--") => {
                let hint = words::example_of(option);
                return Trouble::with_hint(ErrorKind::Usage, format!("{option} is missing"), hint);
            }
            (Parsed::UnknownArgument, Some(word)) => {
                if let Some(hint) = words::instead_of_argument(word) {
                    let message = format!("`{}` is not expected there", visible(word));
                    return Trouble::with_hint(ErrorKind::Usage, message, hint);
                }
            }
            _ => {}
        }
        let text = error.render().to_string();
        let one_line = |lines: &str| lines.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut paragraphs = text.split("\n\n").map(one_line);
        let first = paragraphs.next().unwrap_or_default();
        let message = match error.kind() {
            clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command was given",
            _ => first.strip_prefix("error: ").unwrap_or(&first),
        };
        let rest: Vec<String> = paragraphs.collect();
        let find = |begin: &str| {
            rest.iter().find_map(|paragraph| Some(paragraph.strip_prefix(begin)?.trim().to_string()))
        };
        let usage = || Some(format!("the usage is {}", find("Usage:")?));
        // `-- --format` would be one more argument, which is not what was meant.
        let tip = find("tip:").filter(|tip| !tip.contains("'-- "));
        let hint = tip.or_else(usage).filter(|_| error.use_stderr());
        let hint = hint.unwrap_or_else(|| "`esscher --help` explains all commands".to_string());
        Trouble::with_hint(ErrorKind::Usage, message, hint)
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Trouble::Request { kind, .. } | Trouble::Failed { kind, .. } => *kind,
            Trouble::Run(error) => error.kind(),
            Trouble::Interrupted { .. } => ErrorKind::Interrupted,
            Trouble::NobodyListens => ErrorKind::File,
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Trouble::Request { message, .. }
            | Trouble::Failed { message, .. }
            | Trouble::Interrupted { message, .. } => message.clone(),
            Trouble::Run(error) => error.to_string(),
            Trouble::NobodyListens => "standard output is closed".to_string(),
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Trouble::Request { hint, .. } | Trouble::Failed { hint, .. } => hint.clone(),
            Trouble::Run(error) => error.hint(&NAMES),
            Trouble::Interrupted { .. } | Trouble::NobodyListens => None,
        }
    }
}

impl<E: Into<conduct::Error>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble::Run(error.into())
    }
}

/// What hints advise, as this door names it.
const NAMES: SettingNames = SettingNames {
    folder: "--out",
    instruction_set: "--instruction-set",
    run: "esscher run FILE.toml",
    merge: "esscher merge SHARD…",
    example: "esscher example QUESTION",
    force: "--force",
};
