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

/// Prints a name and what is said of it.
fn row(terminal: Terminal, name: &str, widest: usize, text: &str, style: Style) -> Result<Ending, Trouble> {
    for line in lines(terminal.width(), name, widest, text, style) {
        say_line(&line)?;
    }
    Ok(Ending::Done)
}

/// A name and what is said of it beside it, or below it if names leave little room, in as many lines as the width asks for; where
/// there is no width one line, for grep.
fn lines(width: Option<usize>, name: &str, widest: usize, text: &str, style: Style) -> Vec<Line> {
    let margin = GAP + widest + GAP;
    let begin = |name: &str, margin: usize| {
        Line::new().with(Style::Plain, format!("{:GAP$}{name:<1$}", "", margin - GAP))
    };
    let is_narrow = width.is_some_and(|width| 2 * margin > width);
    let indent = if is_narrow { 2 * GAP } else { margin };
    let room = width.map_or(usize::MAX, |width| width - indent);
    let said = wrapped(text, room).into_iter().enumerate();
    let said = said.map(|(number, line)| {
        let name = if number == 0 && !is_narrow { name } else { "" };
        begin(name, indent).with(style.clone(), line)
    });
    let above = (is_narrow && !name.is_empty()).then(|| begin(name, GAP));
    above.into_iter().chain(said).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_terminals_of_forty_columns_and_more() {
        let entries = claims::entries(None).unwrap_or_default();
        assert!(entries.len() > 20);
        let widest = entries.iter().map(|entry| entry.name.len()).max().unwrap_or_default();
        for (width, entry) in (40..120).flat_map(|width| entries.iter().map(move |entry| (width, entry))) {
            let lines = lines(Some(width), entry.name, widest, entry.summary, Style::Plain);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
        }
    }
}
