//! A text to run a checkpoint on: by name or path, with its SHA-256.

use crate::ModelError;
use crate::store::reason_of;
use esscher_audit::texts;
use std::path::PathBuf;
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

impl TextChoice {
    /// The text of this name, or in this file, with its sum.
    ///
    /// # Errors
    /// As [`find_text`].
    pub fn find(name_or_path: &str) -> Result<Self, ModelError> {
        let content = find_text(name_or_path)?;
        let sha256 = esscher_lab::sha256(content.as_bytes());
        Ok(TextChoice { name: name_or_path.to_string(), sha256, content })
    }
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
        return Err(ModelError::unknown("text", name_or_path, &names, "; any other is given by its path"));
    }
    let bytes = esscher_lab::read_file(&path, LARGEST_TEXT).map_err(|error| match error {
        esscher_lab::Error::File { .. } => {
            ModelError::NoText { reason: reason_of(&error), path: path.clone() }
        }
        esscher_lab::Error::TooLarge { most, .. } => ModelError::LargeText { path: path.clone(), most },
        other => ModelError::from(other),
    })?;
    match String::from_utf8(bytes) {
        Err(error) => {
            let position = error.utf8_error().valid_up_to();
            // The marks of its two byte orders.
            let is_utf16 = [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| error.as_bytes().starts_with(*mark));
            Err(ModelError::NotUtf8 { path, position, likely: if is_utf16 { "utf-16" } else { "latin1" } })
        }
        Ok(text) if text.trim().is_empty() => Err(ModelError::EmptyText { path }),
        Ok(text) => Ok(text.into()),
    }
}
