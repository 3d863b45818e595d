//! What a door is asked for by name: claims, examples, entries of the catalogue.

use crate::{Claim, Entry, Group, catalogue, claims};
use esscher_questions::conduct::{Error, unknown};
use esscher_questions::{RENAMED, commented, questions};

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

/// The first line of an example: editors that know it complete and check the file.
const SCHEMA: &str =
    "#:schema esscher.schema.json\n# `esscher schema > esscher.schema.json` makes that file.\n";

/// A specification to start from: of a question, running within seconds, or the quick one of a claim.
///
/// # Errors
/// A name that no question and no claim has.
pub fn example(name: &str) -> Result<String, Error> {
    let examples = questions().iter().map(|question| (question.name, question.example));
    let examples = examples.chain(claims().iter().map(|claim| (claim.name, claim.quick)));
    let (names, texts): (Vec<&str>, Vec<&str>) = examples.unzip();
    if let Some(position) = names.iter().position(|known| *known == name) {
        return Ok(format!("{SCHEMA}\n{}", commented(texts[position])));
    }
    let what = "question or claim";
    Err(match RENAMED.iter().find(|(old, _)| *old == name) {
        Some((old, new)) => {
            Error::Unknown { what, name: name.to_string(), hint: format!("`{old}` is called `{new}` now") }
        }
        None => unknown(what, name, "names", &names),
    })
}

/// The entries of the catalogue in a group; all for none.
///
/// # Errors
/// A name that no group has.
pub fn entries(group: Option<&str>) -> Result<Vec<Entry>, Error> {
    let names = Group::ALL.map(Group::name);
    let group = group.map(|name| match name {
        // Their old name.
        "experiments" => Group::Question.name(),
        "laws" => Group::Measure.name(),
        other => other,
    });
    if let Some(name) = group.filter(|name| !names.contains(name)) {
        return Err(unknown("group", name, "groups", &names));
    }
    Ok(catalogue().into_iter().filter(|entry| group.is_none_or(|name| name == entry.group.name())).collect())
}
