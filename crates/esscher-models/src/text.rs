//! A text to run a checkpoint on: by name or path, with its SHA-256.

use crate::ModelError;
use crate::store::reason_of;
use esscher_audit::texts;
use esscher_lab::specification::nearest;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longer texts are not read: no audit gets through them.
pub const LARGEST_TEXT: u64 = 64 << 20;

/// A text that a specification asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChoice {
    /// Its name, or the path as it was given.
    pub name: String,
    /// In hexadecimal.
    pub sha256: String,
    /// All of it.
    pub content: Arc<str>,
}

/// The text of this name, or in this file.
///
/// # Errors
/// A name that no text has, a file that cannot be read, is not UTF-8, has no words or over 64 MB.
pub fn find_text(name_or_path: &str) -> Result<Arc<str>, ModelError> {
    if let Some(text) = texts::text(name_or_path) {
        return Ok(text.content.into());
    }
    let path = PathBuf::from(name_or_path);
    let names = texts::TEXTS.map(|text| text.name);
    if !path.exists() && !name_or_path.contains(['/', '\\', '.']) {
        let hint = match nearest(name_or_path, &names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the texts are {}; any other is given by its path", names.join(", ")),
        };
        return Err(ModelError::Unknown { what: "text", name: name_or_path.to_string(), hint });
    }
    let bytes = esscher_lab::read_file(&path, LARGEST_TEXT).map_err(|error| match error {
        esscher_lab::Error::File { .. } => {
            ModelError::NoText { reason: reason_of(&error), path: path.clone() }
        }
        other => ModelError::from(other),
    })?;
    Ok(decoded(bytes, &path)?.into())
}

fn decoded(bytes: Vec<u8>, path: &Path) -> Result<String, ModelError> {
    let text = String::from_utf8(bytes).map_err(|error| ModelError::NotUtf8 {
        path: path.to_path_buf(),
        position: error.utf8_error().valid_up_to(),
    })?;
    if text.trim().is_empty() {
        return Err(ModelError::EmptyText { path: path.to_path_buf() });
    }
    Ok(text)
}
