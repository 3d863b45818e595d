//! `esscher ask`, `esscher attend`, `esscher horizon`, `esscher schema`: answers on the terminal, without a run folder.

use super::{settings, sources};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{say, tell};
use crate::progress::Progress;
use crate::question_arguments;
use clap::ArgMatches;
use esscher_lab::specification::{Mistake, Problem, Written};
use esscher_questions::conduct::{self, unknown};
use esscher_questions::{Asked, Planned, Question, questions};
use esscher_report::{Block, Document};
use serde_json::{Value, json};
use std::path::Path;

/// A question whose keys are options.
pub(crate) fn quick(
    question: &'static Question,
    given: &ArgMatches,
    common: &Common,
) -> Result<Ending, Trouble> {
    let written = question_arguments::written(question, given)?;
    let planned = Planned::written(written, settings(common, None)?).map_err(in_options)?;
    answer(common, &planned)
}

/// A question in a file, TOML or JSON.
pub(super) fn ask(common: &Common, file: &Path, seed: Option<u64>) -> Result<Ending, Trouble> {
    let settings = settings(common, seed)?;
    let is_json = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let asked = if is_json {
        let text = esscher_lab::read_specification(file)?;
        let json: Value = serde_json::from_str(&text)
            .map_err(|error| Trouble::request(format!("{}: this is not JSON: {error}", file.display())))?;
        let written = Written::from_json(&json).unwrap_or_else(|| Written::table([]));
        Asked::written(written, settings)?
    } else {
        conduct::read_file(file, settings)?
    };
    answer(common, &asked.plan(&sources(common))?)
}

fn answer(common: &Common, planned: &Planned) -> Result<Ending, Trouble> {
    let progress = Progress::new(planned.question().name, common.quiet || common.json);
    let found = planned.answer(&progress);
    progress.clear();
    let found = found.map_err(|error| match error.downcast::<esscher_core::Error>() {
        Ok(refused) => Trouble::from(*refused),
        Err(other) => Trouble::Other(anyhow::anyhow!("{other}")),
    })?;
    let Some(found) = found else {
        tell("stopped before an answer");
        return Ok(Ending::Interrupted);
    };
    if common.json {
        say(json!({ "question": planned.question().name, "rows": found.to_json() }))?;
        return Ok(Ending::Done);
    }
    let sections = planned.sections(&found).map_err(|error| Trouble::Other(anyhow::anyhow!("{error}")))?;
    let is_sentences =
        sections.iter().flat_map(|section| &section.blocks).all(|block| matches!(block, Block::Prose(_)));
    if is_sentences {
        for block in sections.iter().flat_map(|section| &section.blocks) {
            if let Block::Prose(sentence) = block {
                say(sentence)?;
            }
        }
        return Ok(Ending::Done);
    }
    let document = Document {
        title: planned.title().to_string(),
        summary: planned.question().summary.to_string(),
        sections,
        provenance: Vec::new(),
    };
    say(esscher_report::text(&document))?;
    Ok(Ending::Done)
}

/// Prints the JSON Schema of specifications, of one question or of all.
pub(super) fn schema(name: Option<&str>) -> Result<Ending, Trouble> {
    let names: Vec<&str> = questions().iter().map(|question| question.name).collect();
    let schema = match name {
        None => conduct::schema(),
        Some(name) => match questions().iter().find(|question| question.name == name) {
            Some(question) => question.schema(),
            None => return Err(unknown("question", name, "questions", &names).into()),
        },
    };
    say(serde_json::to_string_pretty(&schema).unwrap_or_default())?;
    Ok(Ending::Done)
}

/// A mistake in the words of the command line: keys are options here.
fn in_options(mistake: Mistake) -> Trouble {
    let key = mistake.key.strip_prefix("head.").unwrap_or(&mistake.key);
    // Inside a law it is a key again.
    let (option, inside) = match key.split_once('.') {
        Some((option, inside)) => (option, Some(inside)),
        None => (key, None),
    };
    let option = option.replace('_', "-");
    let message = match (&mistake.problem, inside) {
        (Problem::Wrong(message), _) if option.is_empty() => message.clone(),
        (Problem::Unknown, None) => format!("there is no option --{option}"),
        (Problem::Missing, None) => format!("--{option} is missing"),
        (Problem::Wrong(message), None) => format!("--{option}: {message}"),
        (Problem::Unknown, Some(key)) => format!("--{option}: there is no key `{key}`"),
        (Problem::Missing, Some(key)) => format!("--{option}: key `{key}` is missing"),
        (Problem::Wrong(message), Some(key)) => format!("--{option}: key `{key}`: {message}"),
    };
    Trouble::Request { message, hint: mistake.hint }
}
