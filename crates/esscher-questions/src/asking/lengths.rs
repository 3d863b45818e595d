//! Prompt lengths: a list, or a grid that is even in the logarithm.

use esscher_core::prompt::PromptLength;
use esscher_lab::specification::{Bounds, Form, Mistake, Rule, Section, own};
use serde_json::json;

const LONGEST: u64 = 1_000_000_000_000;

/// The rule of `lengths = [10, 1e3, 1e12]` or `lengths = { from = 10, to = 1e12, per_decade = 2 }`; increasing and different.
pub fn lengths() -> impl Rule<Value = Vec<PromptLength>> {
    lengths_up_to(LONGEST)
}

/// The same where prompts are drawn token by token, which takes its time.
pub fn lengths_up_to(longest: u64) -> impl Rule<Value = Vec<PromptLength>> {
    let read = move |section: &mut Section, key| {
        let lengths = read(section, key)?;
        match lengths.last().filter(|length| length.get() > longest) {
            None => Ok(lengths),
            Some(length) => {
                let message =
                    format!("prompts are drawn token by token, up to {longest} of them; found {length}");
                Err(section.mistake(key, message))
            }
        }
    };
    let items = json!({ "type": "integer", "minimum": 1, "maximum": LONGEST });
    own(read, json!({ "type": ["array", "object"], "items": items }))
}

fn read(section: &mut Section, key: &'static str) -> Result<Vec<PromptLength>, Mistake> {
    let mut found = match section.form(key) {
        Some(Form::Table) => section.table(key, |grid| {
            let from = grid.integer("from", 1..=LONGEST, None)?;
            let to = grid.integer("to", 1..=LONGEST, None)?;
            if to < from {
                return Err(grid.mistake("to", format!("expected at least `from` = {from}, found {to}")));
            }
            let density = grid.real("per_decade", Bounds::Between(0.1, 20.0), Some(2.0))?;
            let count = ((to as f64 / from as f64).log10() * density).round() as usize + 1;
            if count > 200 {
                return Err(grid.mistake("per_decade", format!("that makes {count} lengths; at most 200")));
            }
            let from = grid.accept("from", PromptLength::new(from))?;
            let to = grid.accept("to", PromptLength::new(to))?;
            Ok(if from == to { vec![from] } else { PromptLength::logarithmic(from, to, count.max(2)) })
        })?,
        _ => {
            let given = section.integers(key, 1..=LONGEST, 1..=1000, None)?;
            let made: Result<Vec<PromptLength>, _> = given.into_iter().map(PromptLength::new).collect();
            section.accept(key, made)?
        }
    };
    found.sort_unstable();
    found.dedup();
    Ok(found)
}
