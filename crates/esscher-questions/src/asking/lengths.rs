//! Prompt lengths: a list, or a grid that is even in the logarithm.

use esscher_core::prompt::PromptLength;
use esscher_lab::specification::{Bounds, Form, Mistake, Section};
use serde_json::{Value, json};

const LONGEST: u64 = 1_000_000_000_000;

/// The JSON Schema of prompt lengths.
pub fn lengths_schema() -> Value {
    json!({ "type": ["array", "object"], "items": { "type": "integer", "minimum": 1, "maximum": LONGEST } })
}

/// Reads `lengths = [10, 1e3, 1e12]` or `lengths = { from = 10, to = 1e12, per_decade = 2 }`; increasing and different.
///
/// # Errors
/// Lengths outside 1 to 10¹², more than 1000 of them or 200 on a grid, an end before its start.
pub fn lengths(section: &mut Section, key: &'static str) -> Result<Vec<PromptLength>, Mistake> {
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
