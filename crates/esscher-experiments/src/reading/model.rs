//! A checkpoint: `model` by name or path, and the SHA-256 of its files, which the normal form always holds.

use crate::conduct::Error;
use crate::models::{ModelBytes, ModelFiles, ModelStore, Part, tiny};
use esscher_lab::specification::{Mistake, Section};

/// A checkpoint that a specification asks for. A named one need not be on this machine until it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model's proper name, or the path as it was given.
    pub name: String,
    /// Of the checkpoint.
    pub sha256: String,
    /// Of config.json, if there is one.
    pub configuration_sha256: Option<String>,
    /// Of tokenizer.json or tokenizer.bin, if there is one.
    pub vocabulary_sha256: Option<String>,
}

/// Reads `model` with `sha256`, `config_sha256` and `tokenizer_sha256`.
///
/// The sums may be left out; if they are given, the files must have them.
///
/// # Errors
/// A name that no model has, a path that cannot be read, other sums.
pub fn model(
    section: &mut Section,
    store: &ModelStore,
    default: Option<&str>,
) -> Result<ModelChoice, Mistake> {
    let proper = |given: &str| store.named(given).map_or(given, |model| model.name).to_string();
    let name = section.proper_text("model", default, proper)?;
    let found = ModelChoice::find(&name, store).map_err(|error| told(section, "model", &error))?;
    let (configuration, vocabulary) = (found.configuration_sha256, found.vocabulary_sha256);
    let sha256 = sum(section, "sha256", found.sha256, &format!("the checkpoint {name}"))?;
    let mut optional = |key, found: Option<String>, file: &str| {
        found.map(|found| sum(section, key, found, &format!("{file} of {name}"))).transpose()
    };
    let configuration_sha256 = optional("config_sha256", configuration, "config.json")?;
    let vocabulary_sha256 = optional("tokenizer_sha256", vocabulary, "the tokenizer")?;
    Ok(ModelChoice { name, sha256, configuration_sha256, vocabulary_sha256 })
}

impl ModelChoice {
    /// The checkpoint of this name or path with the sums that it has; a named one is not fetched.
    ///
    /// # Errors
    /// A name that no model has, a path that cannot be read.
    pub fn find(name_or_path: &str, store: &ModelStore) -> Result<Self, Error> {
        if name_or_path == tiny::NAME {
            return Ok(ModelChoice {
                name: tiny::NAME.to_string(),
                sha256: tiny::sha256(),
                configuration_sha256: None,
                vocabulary_sha256: None,
            });
        }
        if let Some(model) = store.named(name_or_path) {
            let sum = |part| model.sha256(part).map(str::to_string);
            return Ok(ModelChoice {
                name: model.name.to_string(),
                sha256: sum(Part::Checkpoint).unwrap_or_default(),
                configuration_sha256: sum(Part::Configuration),
                vocabulary_sha256: sum(Part::Vocabulary),
            });
        }
        let files = store.find_path(name_or_path)?;
        Ok(ModelChoice {
            name: name_or_path.to_string(),
            sha256: files.checkpoint.sha256,
            configuration_sha256: files.configuration.map(|file| file.sha256),
            vocabulary_sha256: files.vocabulary.map(|file| file.sha256),
        })
    }

    /// The checkpoint's bytes, fetched if need be, each file the one that was planned with.
    ///
    /// # Errors
    /// A package that cannot be had, a file that has changed since.
    pub fn load(&self, store: &ModelStore, progress: &dyn Fn(&str)) -> Result<ModelBytes, Error> {
        if self.name == tiny::NAME {
            return Ok(tiny::bytes());
        }
        let mut files: ModelFiles = store.find(&self.name, progress)?;
        files.checkpoint.sha256.clone_from(&self.sha256);
        for (file, sha256) in [
            (&mut files.configuration, &self.configuration_sha256),
            (&mut files.vocabulary, &self.vocabulary_sha256),
        ] {
            match (file.as_mut(), sha256) {
                (Some(file), Some(sha256)) => file.sha256.clone_from(sha256),
                // It came to lie there after the run was planned, and has no part in it.
                (Some(_), None) => *file = None,
                (None, _) => {}
            }
        }
        files.read()
    }
}

/// Reads the SHA-256 of a file that has this one.
pub(super) fn sum(
    section: &mut Section,
    key: &'static str,
    found: String,
    what: &str,
) -> Result<String, Mistake> {
    let expected = section.proper_text(key, Some(&found), str::to_ascii_lowercase)?;
    if expected == found {
        return Ok(found);
    }
    if expected.len() != 64 || !expected.chars().all(|digit| digit.is_ascii_hexdigit()) {
        let count = expected.chars().count();
        let message = format!("expected the 64 hexadecimal digits of a SHA-256, found {count} characters");
        return Err(section.mistake(key, message));
    }
    let mut mistake = section.mistake(key, format!("{what} has the SHA-256 {found}, expected {expected}"));
    mistake.hint = Some(format!(
        "it is another file than this specification was written for; without `{key}` any is taken"
    ));
    Err(mistake)
}

/// What the store refuses, with its hint, at a key.
pub(super) fn told(section: &mut Section, key: &'static str, error: &Error) -> Mistake {
    let mut mistake = section.mistake(key, error);
    mistake.hint = error.hint();
    mistake
}
