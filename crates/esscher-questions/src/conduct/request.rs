//! What a door is asked for, in words: files, names of runs, shares, claims, kinds.

use super::Error;
use crate::{Asked, Planned, Question, Settings, questions};
use esscher_lab::specification::nearest;
use esscher_lab::{Share, read_specification, specification_sha256};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;

/// Reads the specification in a file, and no other file.
///
/// # Errors
/// A file that cannot be read, anything that is not a specification of one of our kinds.
pub fn read_file(file: &Path, settings: Settings) -> Result<Asked, Error> {
    let text = read_specification(file)?;
    Ok(Asked::read(&file.display().to_string(), &text, settings)?)
}

/// Folders in which reproductions keep the runs of all claims: no single run is called so.
pub const REPRODUCTIONS: [&str; 2] = ["reproduce", "reproduce-full"];

/// The name of a file's run: the file's, and its folder's for files called quick.toml or full.toml.
///
/// # Errors
/// A file's name that cannot be a folder's, or that several runs would share.
pub fn name_of_file(file: &Path) -> Result<String, Error> {
    // Names that are not Unicode would be one when they are shown, and their runs would share a folder.
    let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let name = match (stem, file.parent().and_then(Path::file_name)) {
        ("quick" | "full", Some(parent)) => match parent.to_str() {
            Some(parent) => format!("{parent}-{stem}"),
            None => String::new(),
        },
        _ => stem.to_string(),
    };
    if name.is_empty() || name.starts_with('.') || REPRODUCTIONS.contains(&name.as_str()) {
        return Err(Error::NoName { file: file.to_path_buf() });
    }
    Ok(name)
}

/// The name of a run whose specification has no file: its kind and the beginning of its checksum, so that the same text
/// goes on in the same folder.
pub fn name_of_text(planned: &Planned) -> String {
    let digest: String = specification_sha256(planned).chars().take(8).collect();
    format!("{}-{digest}", planned.question().name)
}

/// A share written as i/N, with the ending of its folder's name.
///
/// # Errors
/// Anything else.
pub fn share(asked: &str) -> Result<(Share, String), Error> {
    let parsed = asked.split_once('/').and_then(|(index, of)| {
        let (index, of) = (index.parse().ok()?, of.parse().ok()?);
        Some((Share::new(index, of)?, format!(".shard-{index}-of-{of}")))
    });
    parsed.ok_or_else(|| Error::NoShare { asked: asked.to_string() })
}

/// The JSON Schema of specifications of all questions.
pub fn schema() -> Value {
    let mut schema = json!({ "oneOf": questions().iter().map(Question::schema).collect::<Vec<_>>() });
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "A specification of Esscher".into();
    schema
}

/// A name that is not there, with the one that was meant or all that are.
pub fn unknown(what: &'static str, name: &str, plural: &str, names: &[&str]) -> Error {
    // `gausian` is nearer to `gaussian-lemma` than its letters say.
    let begins = |known: &&&str| nearest(name, known.split('-').next().as_slice()).is_some();
    let mut begun = names.iter().filter(begins);
    let begun = begun.next().filter(|_| begun.next().is_none());
    let hint = match nearest(name, names).or(begun.copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {plural} are {}", names.join(", ")),
    };
    Error::Unknown { what, name: name.to_string(), hint }
}
