//! What a door is asked for that cannot be done: one sentence, and what to try.

use esscher_lab::specification::Mistake;
use esscher_lab::{ErrorKind, SettingNames};
use std::path::PathBuf;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // what the fields of a variant are, its sentence says
pub enum Error {
    /// The run.
    #[error(transparent)]
    Lab(#[from] esscher_lab::Error),

    /// A file whose name cannot be a run's.
    #[error("{}: no run can be named after this file; rename it so that its name begins with a letter", file.display())]
    NoName { file: PathBuf },

    /// A share of the work that is none.
    #[error("the share `{asked}` makes no sense: expected i/N with i from 0 to N - 1")]
    NoShare { asked: String },

    /// Shards are merged into a folder that they name.
    #[error("{} is not named like a shard", folder.display())]
    NotNamedLikeAShard { folder: PathBuf },

    /// A merge or a report of nothing.
    #[error("no run folder was given")]
    NoFolders,

    /// A name that the catalogue does not have; the hint is the name that was meant, or all names.
    #[error("there is no {what} `{name}`")]
    Unknown { what: &'static str, name: String, hint: String },

    /// A checkpoint or a text that cannot be had.
    #[cfg(feature = "audit")]
    #[error(transparent)]
    Model(esscher_models::ModelError),

    /// A checkpoint that cannot be read, or a request that does not fit it.
    #[cfg(feature = "audit")]
    #[error(transparent)]
    Audit(#[from] esscher_audit::Error),

    /// A figure that could not be drawn.
    #[error(transparent)]
    Drawing(#[from] esscher_report::DrawingError),
}

#[cfg(feature = "audit")]
impl From<esscher_models::ModelError> for Error {
    fn from(error: esscher_models::ModelError) -> Self {
        match error {
            esscher_models::ModelError::Lab(error) => Error::Lab(error),
            esscher_models::ModelError::Refused(error) => Error::Audit(error),
            esscher_models::ModelError::Unknown { what, name, hint } => Error::Unknown { what, name, hint },
            other => Error::Model(other),
        }
    }
}

impl From<Mistake> for Error {
    fn from(mistake: Mistake) -> Self {
        Error::Lab(mistake.into())
    }
}

impl Error {
    /// What to try, if something can be, in the words of the door.
    pub fn hint(&self, names: &SettingNames) -> Option<String> {
        match self {
            Error::Lab(error) => error.hint(names),
            Error::NoShare { .. } => Some("three machines run 0/3, 1/3 and 2/3".to_string()),
            Error::NotNamedLikeAShard { .. } => {
                Some(format!("say where the merged run goes with {}", names.folder))
            }
            Error::Unknown { hint, .. } => Some(hint.clone()),
            #[cfg(feature = "audit")]
            Error::Model(error) => error.hint(),
            _ => None,
        }
    }

    /// The kind of trouble that this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Lab(esscher_lab::Error::Unit { source, .. }) => kind_of_failure(source.as_ref()),
            Error::Lab(error) => error.kind(),
            Error::NoName { .. } | Error::NoShare { .. } | Error::NoFolders => ErrorKind::Usage,
            Error::NotNamedLikeAShard { .. } => ErrorKind::Usage,
            Error::Unknown { .. } => ErrorKind::Unknown,
            #[cfg(feature = "audit")]
            Error::Model(error) => error.kind(),
            #[cfg(feature = "audit")]
            Error::Audit(_) => ErrorKind::Model,
            Error::Drawing(_) => ErrorKind::Internal,
        }
    }

    /// Whether the request made no sense, as opposed to work that could not be done.
    pub fn is_request(&self) -> bool {
        match self {
            // A checkpoint shows only when it runs that it cannot be used.
            Error::Lab(esscher_lab::Error::Unit { source, .. }) => {
                kind_of_failure(source.as_ref()) == ErrorKind::Model
            }
            Error::Lab(error) => error.is_request(),
            Error::Drawing(_) => false,
            #[cfg(feature = "audit")]
            Error::Model(error) => error.is_request(),
            _ => true,
        }
    }
}

/// The kind of what ended the work of a unit: files are read there, too.
pub fn kind_of_failure(failure: &(dyn std::error::Error + 'static)) -> ErrorKind {
    if let Some(error) = failure.downcast_ref::<esscher_lab::Error>() {
        return error.kind();
    }
    #[cfg(feature = "audit")]
    {
        if let Some(error) = failure.downcast_ref::<esscher_models::ModelError>() {
            return error.kind();
        }
        if failure.is::<esscher_audit::Error>() {
            return ErrorKind::Model;
        }
    }
    ErrorKind::Mathematics
}

#[cfg(all(test, feature = "audit"))]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_that_cannot_be_used_is_a_request_even_inside_a_run() {
        let inside = |source| Error::Lab(esscher_lab::Error::Unit { unit: "text 0".to_string(), source });
        let refused = inside(Box::new(esscher_audit::Error::ScoresOverflow { layer: 0, reach: 1e39 }));
        assert!(refused.is_request() && refused.kind() == ErrorKind::Model);
        assert!(!inside("no answer".into()).is_request());
    }
}
