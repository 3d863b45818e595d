//! A checkpoint by name or path, and the SHA-256 of its files, by which it is known.

use crate::{ModelBytes, ModelError, ModelFiles, ModelStore, Part, tiny};

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

impl ModelChoice {
    /// The checkpoint of this name or path with the sums that it has; a named one is not fetched.
    ///
    /// # Errors
    /// A name that no model has, a path that cannot be read.
    pub fn find(name_or_path: &str, store: &ModelStore) -> Result<Self, ModelError> {
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
    pub fn load(&self, store: &ModelStore, progress: &dyn Fn(&str)) -> Result<ModelBytes, ModelError> {
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
