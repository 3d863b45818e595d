//! Checkpoints and texts as requests name them: by name or path, with their SHA-256, which the normal form always holds.

use crate::conduct::Error;
use esscher_lab::specification::{Mistake, Rule, Section, Written, own};
use esscher_models::{ModelChoice, ModelStore, TextChoice};
use serde_json::json;

/// Reads `model` with `sha256`, `config_sha256` and `tokenizer_sha256`.
///
/// The sums may be left out; if they are given, the files must have them.
///
/// # Errors
/// A name that no model has, a path that cannot be read, other sums.
pub fn model(section: &mut Section, store: &ModelStore) -> Result<ModelChoice, Mistake> {
    let proper = |given: &str| store.named(given).map_or(given, |model| model.name).to_string();
    let name = section.proper_text("model", None, proper)?;
    let found = ModelChoice::find(&name, store).map_err(|error| told(section, "model", error))?;
    sum(section, "sha256", &found.sha256.checkpoint, &format!("the checkpoint {name}"))?;
    for (key, found, file) in [
        ("config_sha256", &found.sha256.configuration, "config.json"),
        ("tokenizer_sha256", &found.sha256.vocabulary, "the tokenizer"),
    ] {
        match found {
            Some(found) => sum(section, key, found, &format!("{file} of {name}"))?,
            None if section.form(key).is_some() => {
                let message = format!("{name} comes without {file}: leave `{key}` out");
                return Err(section.mistake(key, message));
            }
            None => {}
        }
    }
    Ok(found)
}

/// The key of a SHA-256, which may be left out; whether the file has it is seen when the file is.
pub(crate) fn sum_key() -> impl Rule<Value = Option<String>> {
    own(written_sum, json!({ "type": "string", "pattern": "^[0-9a-fA-F]{64}$" })).optional()
}

fn written_sum(section: &mut Section, key: &'static str) -> Result<Option<String>, Mistake> {
    let Some(written) = section.form(key).map(|_| section.text(key, None)).transpose()? else {
        return Ok(None);
    };
    if written.len() == 64 && written.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(Some(written));
    }
    let count = written.chars().count();
    let message = format!("expected the 64 hexadecimal digits of a SHA-256, found {count} characters");
    Err(section.mistake(key, message))
}

/// Reads a text under `key` (such as `text`) with its SHA-256 under `sum_key` (such as `text_sha256`).
///
/// # Errors
/// A name that no text has, a file that cannot be read, is not UTF-8, has no words or over 64 MB, another sum.
pub fn text(
    section: &mut Section,
    key: &'static str,
    sum_key: &'static str,
    default: &str,
) -> Result<TextChoice, Mistake> {
    let name = section.text(key, Some(default))?;
    let found = TextChoice::find(&name).map_err(|error| told(section, key, error))?;
    sum(section, sum_key, &found.sha256, &format!("the text {name}"))?;
    Ok(found)
}

/// Reads the SHA-256 of a file that has this one.
fn sum(section: &mut Section, key: &'static str, found: &str, what: &str) -> Result<(), Mistake> {
    let expected = written_sum(section, key)?;
    section.fill(key, &Written::Text(found.to_string()));
    match expected {
        Some(expected) => check_sum(section, key, &expected, found, what),
        None => Ok(()),
    }
}

/// Refuses a file with another SHA-256 than is expected.
pub(super) fn check_sum(
    section: &mut Section,
    key: &'static str,
    expected: &str,
    found: &str,
    what: &str,
) -> Result<(), Mistake> {
    let expected = expected.to_ascii_lowercase();
    if expected == found {
        return Ok(());
    }
    let mut mistake = section.mistake(key, format!("{what} has the SHA-256 {found}, expected {expected}"));
    mistake.hint = Some(format!(
        "this is not the file that the specification names; give that file, or remove `{key}` to accept any"
    ));
    Err(mistake)
}

/// A sum for people: its beginning tells files apart.
pub(crate) fn short(sha256: &str) -> String {
    format!("SHA-256 {}…", sha256.chars().take(16).collect::<String>())
}

/// What a store or a checkpoint refuses, with its hint, at a key.
pub(crate) fn told(section: &mut Section, key: &'static str, error: impl Into<Error>) -> Mistake {
    let error = error.into();
    let mut mistake = section.mistake(key, &error);
    mistake.hint = match error {
        Error::Model(error) => error.hint(),
        Error::Unknown { hint, .. } => Some(hint),
        _ => None,
    };
    mistake
}
