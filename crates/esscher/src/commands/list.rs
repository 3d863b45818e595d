//! `esscher list` and `esscher example`: the catalogue.

use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{hand_out, say, say_json};
use esscher_claims as claims;
use serde_json::{Value, json};

pub(super) fn list(common: &Common, group: Option<&str>) -> Result<Ending, Trouble> {
    let entries = claims::entries(group)?;
    if common.json {
        let entry = |entry: &claims::Entry| {
            let mut all =
                json!({ "group": entry.group.name(), "name": entry.name, "summary": entry.summary });
            for (name, detail) in &entry.details {
                all[name] = json!(detail);
            }
            all
        };
        return say_json(&json!({ "entries": entries.iter().map(entry).collect::<Value>() }));
    }
    let mut last = None;
    for entry in entries {
        if last != Some(entry.group) {
            say(format_args!("{}{}", if last.is_some() { "\n" } else { "" }, entry.group.name()))?;
            last = Some(entry.group);
        }
        say(format_args!("  {:<34} {}", entry.name, entry.summary))?;
        // Only when the group was asked for: the whole list shall fit a few screens.
        if group.is_some() && !entry.details.is_empty() {
            let details = entry.details.iter().map(|(name, detail)| format!("{name}: {detail}"));
            say(format_args!("  {:<34} {}", "", details.collect::<Vec<_>>().join(", ")))?;
        }
    }
    Ok(Ending::Done)
}

/// Prints the example of a question or a claim.
pub(super) fn example(common: &Common, name: &str) -> Result<Ending, Trouble> {
    hand_out(common.json, "specification", &claims::example(name)?)
}
