//! `esscher list` and `esscher example`: the catalogue.

use crate::arguments::{AskedGroup, Common};
use crate::ending::{Ending, Trouble};
use esscher_experiments::{Group, catalogue, kinds};
use esscher_lab::specification::nearest;
use serde_json::json;

pub(super) fn list(common: &Common, asked: Option<AskedGroup>) -> Result<Ending, Trouble> {
    let asked = asked.map(|group| match group {
        AskedGroup::Measures => Group::Measure,
        AskedGroup::Experiments => Group::Experiment,
        AskedGroup::Claims => Group::Claim,
    });
    let entries: Vec<_> =
        catalogue().into_iter().filter(|entry| asked.is_none_or(|group| group == entry.group)).collect();
    if common.json {
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| json!({ "group": title(entry.group), "name": entry.name, "summary": entry.summary }))
            .collect();
        println!("{}", json!(entries));
        return Ok(Ending::Done);
    }
    let mut last = None;
    for entry in entries {
        if last != Some(entry.group) {
            println!("{}{}", if last.is_some() { "\n" } else { "" }, title(entry.group));
            last = Some(entry.group);
        }
        println!("  {:<34} {}", entry.name, entry.summary);
    }
    Ok(Ending::Done)
}

/// Prints the example of a kind.
pub(super) fn example(name: &str) -> Result<Ending, Trouble> {
    let names: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
    match kinds().iter().find(|kind| kind.name == name) {
        Some(kind) => {
            print!("{}", kind.example);
            Ok(Ending::Done)
        }
        None => {
            let hint = match nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the kinds are {}", names.join(", ")),
            };
            Err(Trouble::with_hint(format!("there is no kind of experiment `{name}`"), hint))
        }
    }
}

fn title(group: Group) -> &'static str {
    match group {
        Group::Measure => "measures",
        Group::Experiment => "experiments",
        Group::Claim => "claims",
    }
}
