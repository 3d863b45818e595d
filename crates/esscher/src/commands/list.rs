//! `esscher list` and `esscher example`: the catalogue.

use crate::arguments::{AskedGroup, Common};
use crate::ending::{Ending, Trouble};
use crate::output::{say, write_out};
use esscher_claims::{self as claims, Group, catalogue};
use serde_json::json;

pub(super) fn list(common: &Common, asked: Option<AskedGroup>) -> Result<Ending, Trouble> {
    let asked = asked.map(|group| match group {
        AskedGroup::Measures => Group::Measure,
        AskedGroup::Mechanisms => Group::Mechanism,
        AskedGroup::Questions => Group::Question,
        AskedGroup::Claims => Group::Claim,
        AskedGroup::Models => Group::Model,
    });
    let entries: Vec<_> =
        catalogue().into_iter().filter(|entry| asked.is_none_or(|group| group == entry.group)).collect();
    if common.json {
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| {
                let mut all =
                    json!({ "group": entry.group.name(), "name": entry.name, "summary": entry.summary });
                for (name, detail) in &entry.details {
                    all[name] = json!(detail);
                }
                all
            })
            .collect();
        say(json!(entries))?;
        return Ok(Ending::Done);
    }
    let mut last = None;
    for entry in entries {
        if last != Some(entry.group) {
            say(format_args!("{}{}", if last.is_some() { "\n" } else { "" }, entry.group.name()))?;
            last = Some(entry.group);
        }
        say(format_args!("  {:<34} {}", entry.name, entry.summary))?;
        // Only when the group was asked for: the whole list shall fit a few screens.
        if asked.is_some() && !entry.details.is_empty() {
            let details: Vec<String> =
                entry.details.iter().map(|(name, detail)| format!("{name}: {detail}")).collect();
            say(format_args!("  {:<34} {}", "", details.join(", ")))?;
        }
    }
    Ok(Ending::Done)
}

/// Prints the example of a kind.
pub(super) fn example(name: &str) -> Result<Ending, Trouble> {
    write_out(claims::example(name)?.as_bytes())?;
    Ok(Ending::Done)
}
