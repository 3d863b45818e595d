//! How the program ends: exit codes, and errors as a line with a hint.

use esscher_lab::SettingNames;
use esscher_questions::conduct;
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
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Ending::Done => 0,
            Ending::Failed => 1,
            Ending::BadRequest => 2,
            Ending::ClaimFails => 3,
            Ending::Interrupted => 130,
        })
    }
}

impl From<&Trouble> for Ending {
    fn from(trouble: &Trouble) -> Self {
        match trouble {
            Trouble::Request { .. } => Ending::BadRequest,
            Trouble::Run(error) if error.is_request() => Ending::BadRequest,
            Trouble::NobodyListens => Ending::Done,
            Trouble::Run(_) | Trouble::Other(_) => Ending::Failed,
        }
    }
}

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Arguments or inputs that make no sense.
    Request { message: String, hint: Option<String> },
    /// A run.
    Run(conduct::Error),
    /// Standard output was closed by its reader, as `head` does.
    NobodyListens,
    /// Anything else.
    Other(anyhow::Error),
}

impl Trouble {
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Trouble::Request { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Trouble::Request { message: message.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn other(error: impl std::fmt::Display) -> Self {
        Trouble::Other(anyhow::anyhow!("{error}"))
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Trouble::Request { message, .. } => message.clone(),
            Trouble::Run(error) => error.to_string(),
            Trouble::NobodyListens => "standard output is closed".to_string(),
            Trouble::Other(error) => format!("{error:#}"),
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Trouble::Request { hint, .. } => hint.clone(),
            Trouble::Run(error) => error.hint(&NAMES),
            Trouble::NobodyListens | Trouble::Other(_) => None,
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
    example: "esscher example QUESTION",
};
