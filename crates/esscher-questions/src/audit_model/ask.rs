//! What is asked: a checkpoint, the texts that calibrate and that test, and assignments of replacements to heads.

use crate::audit::{Excerpt, LENGTHS, WINDOWS, files};
use esscher_audit::assignment::{Assignment, Running};
use esscher_audit::candidate::Candidate;
use esscher_audit::controls::NamedAssignment;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::role::Role;
use esscher_lab::keys;
use esscher_lab::specification::{
    self, Keys, Kind, Mistake, Section, Written, choice, integer, one_of, own, tables,
};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

const LONGEST_NAME: usize = 80;

const MOST_ASSIGNMENTS: RangeInclusive<usize> = 1..=64;

keys! {
    /// What do assignments of replacements to heads do to a model's predictions?
    pub struct Ask {
        /// The checkpoint: the name of a model, or a path
        model: String = specification::text(),
        /// The SHA-256 of the checkpoint; without it any is taken
        sha256: Option<String> = files::sum_key(),
        /// The SHA-256 of its config.json
        config_sha256: Option<String> = files::sum_key(),
        /// The SHA-256 of its tokenizer
        tokenizer_sha256: Option<String> = files::sum_key(),
        /// The text that calibrates, by name or path
        text: String = specification::text().or("bible"),
        /// The SHA-256 of that text
        text_sha256: Option<String> = files::sum_key(),
        /// The part of it that is taken
        text_part: Excerpt = choice::<Excerpt>().or("whole"),
        /// The text that tests, by name or path
        test: String = specification::text().or("jargon"),
        /// The SHA-256 of that text
        test_sha256: Option<String> = files::sum_key(),
        /// The part of it that is taken
        test_part: Excerpt = choice::<Excerpt>().or("whole"),
        /// Tokens of a segment; 256, or the model's context if that is less
        length: Option<u64> = integer(LENGTHS).optional(),
        /// The last tokens, which are kept exactly; 64, or 0 where every token sees all
        window: Option<u64> = integer(WINDOWS).optional(),
        /// Segments that calibrate the readers
        calibration: u64 = integer(1..=64).or(2_u64),
        /// Segments that the calibrating text is cut into, as many as when the heads were measured
        segments: u64 = integer(1..=320) => integer(calibration..=320).or(calibration),
        /// Segments that the model is tested on
        texts: u64 = integer(2..=256).or(8_u64),
        /// Prompts with hidden codes; 4 if the segments have room for them
        needles: Option<u64> = integer(0..=64).optional(),
        /// Tokens of the first tested segment, its last, that the model writes itself
        written: u64 = integer(0..=1024).or(0_u64),
        /// What replaces which heads
        assignments: Vec<NamedAssignment> = tables::<AssignmentAsk>(MOST_ASSIGNMENTS)
            => own(|section, _| assignments(section, None), Value::Null),
    }
}

keys! {
    /// What replaces which heads: one candidate everywhere, or a row of candidates for every layer.
    pub struct AssignmentAsk {
        /// What it is called
        name: String = own(name, json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_NAME })),
        /// Streaming or offline; as the model would be deployed
        running: Option<Running> = one_of(&Running::ALL.map(|one| (one.name(), one))).optional(),
        /// The candidate for every head
        everywhere: Option<String> = specification::text().optional(),
        /// Candidates of a layer's heads, separated by spaces, for every layer
        rows: Option<Vec<String>> = specification::texts(1..=4096).optional(),
    }
}

fn name(table: &mut Section, key: &'static str) -> Result<String, Mistake> {
    table.name(key, None, LONGEST_NAME)
}

/// Reads the assignments, exact attention first; without the model's shape only their keys are read, and there are none.
pub(super) fn assignments(
    section: &mut Section,
    shape: Option<&Shape>,
) -> Result<Vec<NamedAssignment>, Mistake> {
    let order = shape.map_or(Order::Causal, |shape| shape.order);
    let read = section.tables("assignments", MOST_ASSIGNMENTS, |table| {
        let ask = AssignmentAsk::read(table)?;
        let running = ask.running.unwrap_or_else(|| Running::deployed(order));
        table.fill("running", &Written::Text(running.name().to_string()));
        if running == Running::Streaming && order == Order::Whole {
            let message = "every token of this model sees all: nothing streams, say \"offline\"";
            return Err(table.mistake("running", message));
        }
        let assignment = match (ask.everywhere, ask.rows) {
            (Some(name), None) => {
                let candidate = table.accept("everywhere", name.parse::<Candidate>())?;
                shape.map(|shape| Assignment::everywhere(shape, candidate))
            }
            (None, Some(rows)) => {
                let parsed: Result<Vec<Vec<Candidate>>, _> =
                    rows.iter().map(|row| row.split_whitespace().map(str::parse).collect()).collect();
                let made =
                    parsed.and_then(|rows| shape.map(|shape| Assignment::new(shape, rows)).transpose());
                table.accept("rows", made)?
            }
            (everywhere, _) => {
                let message = match everywhere {
                    Some(_) => "there is an `everywhere` as well; give one of the two",
                    None => "neither `everywhere` nor `rows` says what is replaced",
                };
                return Err(table.mistake("rows", message));
            }
        };
        let role = Role::from(ask.name.as_str());
        Ok(assignment.map(|assignment| NamedAssignment { role, running, assignment }))
    })?;
    let mut all: Vec<NamedAssignment> = shape.map(NamedAssignment::exact).into_iter().collect();
    for one in read.into_iter().flatten() {
        if all.iter().any(|other| other.role == one.role) {
            let message = format!("two assignments are called \"{}\"; give them different names", one.role);
            return Err(section.mistake("assignments", message));
        }
        all.push(one);
    }
    Ok(all)
}

/// An assignment as its table is written.
pub(crate) fn written(one: &NamedAssignment) -> Value {
    let row = |row: &Vec<Candidate>| row.iter().map(Candidate::to_string).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = one.assignment.rows().iter().map(row).collect();
    json!({ "name": one.role.to_string(), "running": one.running.name(), "rows": rows })
}
