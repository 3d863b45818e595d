//! What a door is asked for, in words: files, names of runs, shares, claims, kinds.

use super::Error;
use crate::{Claim, Entry, Group, Planned, Settings, catalogue, claims, kinds};
use esscher_lab::specification::nearest;
use esscher_lab::{Share, read_specification, specification_sha256};
use std::path::Path;

/// Reads the specification in a file.
///
/// # Errors
/// A file that cannot be read, anything that is not a specification of one of our kinds.
pub fn read_file(file: &Path, settings: Settings) -> Result<Planned, Error> {
    let text = read_specification(file)?;
    Ok(Planned::read(&file.display().to_string(), &text, settings)?)
}

/// The name of a file's run: the file's, and its folder's for files called quick.toml or full.toml.
///
/// # Errors
/// A file's name that cannot be a folder's.
pub fn name_of_file(file: &Path) -> Result<String, Error> {
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    let stem = file.file_stem().map(text).unwrap_or_default();
    let name = match (stem.as_str(), file.parent().and_then(Path::file_name).map(text)) {
        ("quick" | "full", Some(parent)) => format!("{parent}-{stem}"),
        _ => stem,
    };
    if name.is_empty() || name.starts_with('.') {
        return Err(Error::NoName { file: file.to_path_buf() });
    }
    Ok(name)
}

/// The name of a run whose specification has no file: its kind and the beginning of its checksum, so that the same text
/// goes on in the same folder.
pub fn name_of_text(planned: &Planned) -> String {
    let digest: String = specification_sha256(planned).chars().take(8).collect();
    format!("{}-{digest}", planned.kind().name)
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

/// The claims of these names in the order of the paper; all for none.
///
/// # Errors
/// A name that no claim has.
pub fn chosen_claims(only: &[String]) -> Result<Vec<&'static Claim>, Error> {
    let names: Vec<&str> = claims().iter().map(|claim| claim.name).collect();
    if let Some(name) = only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(unknown("claim", name, "claims", &names));
    }
    let wanted = |claim: &&Claim| only.is_empty() || only.iter().any(|name| name == claim.name);
    Ok(claims().iter().filter(wanted).collect())
}

/// A specification to start from: of a kind of experiment, running within seconds, or the quick one of a claim.
///
/// # Errors
/// A name that no kind and no claim has.
pub fn example(name: &str) -> Result<&'static str, Error> {
    let examples = kinds().iter().map(|kind| (kind.name, kind.example));
    let examples = examples.chain(claims().iter().map(|claim| (claim.name, claim.quick)));
    let (names, texts): (Vec<&str>, Vec<&str>) = examples.unzip();
    match names.iter().position(|known| *known == name) {
        Some(position) => Ok(texts[position]),
        None => Err(unknown("kind of experiment or claim", name, "names", &names)),
    }
}

/// The entries of the catalogue in a group; all for none.
///
/// # Errors
/// A name that no group has.
pub fn entries(group: Option<&str>) -> Result<Vec<Entry>, Error> {
    let names = Group::ALL.map(Group::name);
    if let Some(name) = group.filter(|name| !names.contains(name)) {
        return Err(unknown("group", name, "groups", &names));
    }
    Ok(catalogue().into_iter().filter(|entry| group.is_none_or(|name| name == entry.group.name())).collect())
}

/// A name that is not there, with the one that was meant or all that are.
pub(crate) fn unknown(what: &'static str, name: &str, plural: &str, names: &[&str]) -> Error {
    let hint = match nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {plural} are {}", names.join(", ")),
    };
    Error::Unknown { what, name: name.to_string(), hint }
}
