//! `esscher list` and `esscher example`: the catalogue.

use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{hand_out, say, say_json, say_line};
use crate::terminal::{Line, Style, Terminal, wrapped};
use esscher_claims::{self as claims, Group};
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
    let terminal = Terminal::output();
    let widest = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut last = None;
    for entry in entries {
        if last != Some(entry.group) {
            if last.is_some() {
                say("")?;
            }
            say_line(&Line::new().with(Style::Strong, entry.group.name()))?;
            last = Some(entry.group);
        }
        row(terminal, entry.name, widest, entry.summary, Style::Plain)?;
        // Only when the group was asked for: the whole list shall fit a few screens.
        if group.is_some() && !entry.details.is_empty() {
            let details = entry.details.iter().map(|(name, detail)| format!("{name}: {detail}"));
            row(terminal, "", widest, &details.collect::<Vec<_>>().join("; "), Style::Faint)?;
        }
    }
    Ok(Ending::Done)
}

/// Between a name and what is said of it there is a column of so many blanks; before it another one.
const GAP: usize = 2;

/// A name and what is said of it beside it, in as many lines as the terminal's width asks for; elsewhere one line, for grep.
fn row(terminal: Terminal, name: &str, widest: usize, text: &str, style: Style) -> Result<Ending, Trouble> {
    let margin = GAP + widest + GAP;
    let room = terminal.width().map_or(usize::MAX, |width| width - margin.min(width / 2));
    let mut name = name;
    for line in wrapped(text, room) {
        let begin = Line::new().with(Style::Plain, format_args!("{:GAP$}{name:<widest$}{:GAP$}", "", ""));
        say_line(&begin.with(style.clone(), line))?;
        name = "";
    }
    Ok(Ending::Done)
}

/// Prints the names that have an example.
pub(super) fn examples(common: &Common) -> Result<Ending, Trouble> {
    let entries: Vec<claims::Entry> = [Group::Question, Group::Claim]
        .into_iter()
        .map(|group| claims::entries(Some(group.name())))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    if common.json {
        let entry = |entry: &claims::Entry| json!({ "group": entry.group.name(), "name": entry.name, "summary": entry.summary });
        return say_json(&json!({ "examples": entries.iter().map(entry).collect::<Value>() }));
    }
    let terminal = Terminal::output();
    let widest = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for group in [Group::Question, Group::Claim] {
        let heading = match group {
            Group::Question => "of questions, to change as you like",
            _ => "\nof claims, as `esscher reproduce` runs them",
        };
        for line in heading.split('\n') {
            say_line(&Line::new().with(Style::Strong, line))?;
        }
        for entry in entries.iter().filter(|entry| entry.group == group) {
            row(terminal, entry.name, widest, entry.summary, Style::Plain)?;
        }
    }
    say("\n`esscher example NAME > mine.toml`, then `esscher run mine.toml`")
}

/// Prints the example of a question or a claim.
pub(super) fn example(common: &Common, name: &str) -> Result<Ending, Trouble> {
    hand_out(common.json, "specification", &claims::example(name)?)
}
