//! `esscher ask`, `esscher attend`, `esscher horizon`, `esscher schema`: answers on the terminal, without a run folder.

use super::{settings, sources};
use crate::arguments::Common;
use crate::ending::{Ending, Trouble};
use crate::output::{say, say_json, tell};
use crate::progress::Progress;
use crate::{question_arguments, words};
use clap::ArgMatches;
use esscher_lab::ErrorKind;
use esscher_lab::specification::{Mistake, Problem, Written};
use esscher_questions::conduct::{self, unknown};
use esscher_questions::{Asked, Planned, Question, questions};
use esscher_report::{Block, Document, literal, plain};
use serde_json::json;
use std::fmt::Display;
use std::io::{IsTerminal, Read};
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

/// A question in a file, TOML or JSON, or piped in as `-`.
pub(super) fn ask(common: &Common, file: &Path, seed: Option<u64>) -> Result<Ending, Trouble> {
    let settings = settings(common, seed)?;
    let (name, text) = match file == Path::new("-") {
        true => ("standard input".to_string(), piped()?),
        false => (file.display().to_string(), esscher_lab::read_specification(file)?),
    };
    // Editors of Windows begin a file with a mark.
    let text = text.trim_start_matches('\u{feff}');
    // No TOML begins with a brace.
    let is_json = text.trim_start().starts_with('{')
        || file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let asked = if is_json {
        let refused = |reason: &dyn Display, hint| Trouble::Request {
            kind: ErrorKind::Specification,
            message: format!("{name}: {reason}"),
            hint,
        };
        let written = Written::from_json_text(text)
            .map_err(|reason| refused(&format!("this is not JSON: {reason}"), None))?;
        Asked::written(written, settings).map_err(|mistake| refused(&mistake, mistake.hint.clone()))?
    } else {
        Asked::read(&name, text, settings)?
    };
    let sources = sources(common);
    asked.fetch(&sources)?;
    answer(common, &asked.plan(&sources)?)
}

/// A specification on standard input.
fn piped() -> Result<String, Trouble> {
    /// As of a file.
    const MOST_BYTES: u64 = 4 << 20;
    let refused = |reason: &dyn Display| {
        Trouble::request(ErrorKind::Specification, format!("cannot read standard input: {reason}"))
    };
    let stream = std::io::stdin();
    if stream.is_terminal() {
        tell("reading a specification from the terminal: Ctrl-D at the end");
    }
    let mut text = String::new();
    let read = stream.lock().take(MOST_BYTES + 1).read_to_string(&mut text);
    match read.map_err(|error| refused(&error))? {
        bytes if bytes as u64 > MOST_BYTES => Err(refused(&"a specification has at most 4 MiB")),
        _ => Ok(text),
    }
}

fn answer(common: &Common, planned: &Planned) -> Result<Ending, Trouble> {
    let progress = Progress::new(planned.question().name, common);
    let found = planned.answer(&progress);
    progress.end();
    let found = found.map_err(|error| {
        let (kind, message) = (conduct::kind_of_failure(error.as_ref()), error.to_string());
        // What the mathematics refuses is a request that makes no sense.
        let is_refused = kind == ErrorKind::Mathematics;
        if is_refused { Trouble::request(kind, message) } else { Trouble::failed(kind, message) }
    })?;
    let found = found.ok_or_else(Trouble::stopped_at_once)?;
    if common.json {
        return say_json(&json!({ "question": planned.question().name, "rows": found.to_json() }));
    }
    let sections =
        planned.sections(&found).map_err(|error| Trouble::failed(ErrorKind::Internal, error.to_string()))?;
    let blocks = sections.iter().flat_map(|section| &section.blocks);
    let sentence = |block: &Block| match block {
        Block::Prose(sentence) => Some(plain(sentence)),
        _ => None,
    };
    if let Some(sentences) = blocks.map(sentence).collect::<Option<Vec<String>>>() {
        return say(sentences.join("\n"));
    }
    let (title, summary) = (literal(planned.title()), planned.question().summary.to_string());
    say(esscher_report::text(&Document { title, summary, sections, provenance: Vec::new() }))
}

/// Prints the JSON Schema of specifications, of one question or of all.
pub(super) fn schema(common: &Common, name: Option<&str>) -> Result<Ending, Trouble> {
    let schema = match name {
        None => conduct::schema(),
        Some(name) => match questions().iter().find(|question| question.name == name) {
            Some(question) => question.schema(),
            None => {
                let names: Vec<&str> = questions().iter().map(|question| question.name).collect();
                return Err(unknown("question", name, "questions", &names).into());
            }
        },
    };
    if common.json { say_json(&schema) } else { say(format_args!("{schema:#}")) }
}

/// A mistake in the words of the command line: keys are options here.
pub(super) fn in_options(mistake: Mistake) -> Trouble {
    let key = mistake.key.strip_prefix("head.").unwrap_or(&mistake.key);
    // As help and examples write it.
    let key = if key == "lengths" { "length" } else { key };
    // What is audited stands without a name, and the kind is the command itself.
    let key = if ["models", "model", "dumps", "kind"].contains(&key) { "" } else { key };
    let (option, inside) = key.split_once('.').unwrap_or((key, ""));
    // Inside a law it is a key again.
    let (option, name) = (option.replace('_', "-"), format!("`{inside}`"));
    let message = match (&mistake.problem, inside.is_empty()) {
        (Problem::Wrong(message), _) if option.is_empty() => message.clone(),
        (Problem::Unknown, true) => format!("there is no option --{option}"),
        (Problem::Missing, true) => format!("--{option} is missing"),
        (Problem::Wrong(message), true) => format!("--{option}: {message}"),
        (Problem::Unknown, false) => format!("--{option}: there is no key {name}"),
        (Problem::Missing, false) => format!("--{option}: key {name} is missing"),
        (Problem::Wrong(message), false) => format!("--{option}: key {name}: {message}"),
    };
    let example =
        || matches!(mistake.problem, Problem::Missing).then(|| words::example_of(&format!("--{option}")));
    Trouble::Request { kind: ErrorKind::Usage, message, hint: mistake.hint.clone().or_else(example) }
}

/// The same for a mistake that was found in what the options became, which has no place in a file.
#[cfg(feature = "audit")]
pub(super) fn of_options(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Run(conduct::Error::Lab(esscher_lab::Error::Mistake(mistake)))
            if mistake.place.is_none() =>
        {
            in_options(mistake)
        }
        other => other,
    }
}
