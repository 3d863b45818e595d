//! A request with what it leaves open decided: which texts calibrate and test, how many segments of them, and the runs to plan.

use super::{AuditRequest, Error};
use crate::audit::Excerpt;
use crate::audit::dumps::Dumps;
use crate::audit::excerpt::ChosenText;
use crate::audit::subject::Subject;
use crate::audit_heads::CANDIDATES;
use crate::audit_model::written;
use crate::{Planned, Settings, Sources};
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::controls::NamedAssignment;
use esscher_audit::head::Order;
use esscher_audit::model::Shape;
use esscher_audit::replacement::BLOCK;
use esscher_audit::role::Role;
use esscher_lab::specification::{Mistake, Written};
use esscher_lab::{Experiment, Named};
use esscher_models::{TextChoice, is_dump};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A request with its heads planned.
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) heads: Planned,
    /// The test of the model, if it is asked for; dumps cannot be run.
    pub(super) tested: Option<Tested>,
}

/// The run of the model but for the assignments, which the heads give.
pub(super) struct Tested {
    title: String,
    keys: Value,
}

/// Segments of the texts, if there are as many.
const CALIBRATING: u64 = 2;
const MEASURED: u64 = 6;
const TESTED: u64 = 8;

/// As many tokens are written by the exact model and by the replaced one, to be read side by side, if the segments are long enough for a
/// middle before them.
const WRITTEN: u64 = 60;
const ROOM_TO_WRITE: u64 = 256;

impl Prepared {
    pub(super) fn of(request: &AuditRequest, settings: Settings, sources: &Sources) -> Result<Self, Error> {
        // What a run would refuse is told before anything is fetched.
        for name in &request.candidates {
            name.parse::<Candidate>()
                .map_err(|error| Mistake { key: "candidates".to_string(), ..Mistake::whole(error) })?;
        }
        let store = sources.store()?;
        match request.models.as_slice() {
            [model] if store.named(model).is_some() || !is_dump(Path::new(model)) => {
                Self::of_checkpoint(request, settings, model, sources)
            }
            paths => Self::of_dumps(request, settings, paths, sources),
        }
    }

    fn of_dumps(
        request: &AuditRequest,
        settings: Settings,
        paths: &[String],
        sources: &Sources,
    ) -> Result<Self, Error> {
        let given = [
            ("a text", request.text.is_some()),
            ("a text to test on", request.test.is_some()),
            ("a length", !request.lengths.is_empty()),
            ("a number of texts", request.texts.is_some()),
        ];
        if let Some((what, _)) = given.iter().find(|(_, given)| *given) {
            return Err(esscher_audit::Error::BesideDumps { what }.into());
        }
        sources.tell(&match paths.len() {
            1 => "reading the dump".to_string(),
            count => format!("reading {count} dumps"),
        });
        // Read and checked before the specification is: a sentence about files, not about keys.
        let dumps = Dumps::find(paths, sources)?;
        let (found, needed) = (dumps.shape.context, shortest(dumps.shape.order));
        if found < needed {
            let purpose = format!("an audit of {}", dumps.name());
            return Err(too_short("a dump", found, needed, purpose, "record a longer text"));
        }
        let heads = heads(request, settings, &dumps.name(), json!({ "dumps": paths }), sources)?;
        let name = name(paths.first().map_or("", String::as_str), &heads, "")?;
        Ok(Prepared { name, heads, tested: None })
    }

    fn of_checkpoint(
        request: &AuditRequest,
        settings: Settings,
        model: &str,
        sources: &Sources,
    ) -> Result<Self, Error> {
        // A misspelt text is told before anything is fetched.
        let given = |name: &Option<String>| name.as_deref().map(TextChoice::find).transpose();
        let (text, test) = (given(&request.text)?, given(&request.test)?);
        let subject = Subject::find(model, sources)?;
        // A model is best judged by its own language: that of stories15M is children's stories, sampled from it.
        let tells_stories = subject.name == "stories15M";
        let default = if tells_stories { "stories" } else { "bible" };
        let split = test.is_none() && (text.is_some() || tells_stories);
        let [calibrating_part, testing_part] = match split {
            true => [Excerpt::FirstTwoThirds, Excerpt::LastThird],
            false => [Excerpt::Whole, Excerpt::Whole],
        };
        let calibrating = text.map_or_else(|| TextChoice::find(default), Ok)?;
        let calibrating = ChosenText { text: calibrating, excerpt: calibrating_part };
        let testing = match (test, split) {
            (Some(test), _) => test,
            (None, true) => calibrating.text.clone(),
            (None, false) => TextChoice::find("jargon")?,
        };
        let testing = ChosenText { text: testing, excerpt: testing_part };
        let context = subject.model.shape().context as u64;
        let lengths = match request.lengths.is_empty() {
            true => vec![256.min(context)],
            false => request.lengths.clone(),
        };
        check_lengths(&lengths, &subject.name, subject.model.shape())?;
        if let Some(warning) = warning_of_short_texts(&lengths, subject.model.shape().order) {
            sources.tell(&warning);
        }
        // Where a short text decides: as many segments as it has, and the kind says what is missing if those are too few.
        let longest = lengths.iter().copied().max().unwrap_or(1).max(2);
        let room = subject.vocabulary.template().room(longest.min(context) as usize).max(1);
        let segments = |text: &ChosenText, most: u64| -> Result<u64, Error> {
            Ok((subject.tokens(text, room.saturating_mul(most as usize))?.len() / room) as u64)
        };
        let wanted = CALIBRATING + request.texts.unwrap_or(MEASURED);
        let there = segments(&calibrating, wanted)?;
        let calibration = if there < CALIBRATING + 3 { 1 } else { CALIBRATING };
        let texts = request.texts.unwrap_or(there.saturating_sub(calibration).clamp(3, MEASURED));
        // What both runs are asked alike.
        let shared = json!({
            "model": model, "text": calibrating.text.name, "text_part": calibrating_part.name(), "calibration": calibration,
        });
        let of_heads = with(&shared, json!({ "lengths": lengths, "texts": texts }));
        let heads = heads(request, settings, &subject.name, of_heads, sources)?;
        if request.heads_only {
            let name = name(&subject.name, &heads, "")?;
            return Ok(Prepared { name, heads, tested: None });
        }
        let tested = match request.texts {
            Some(texts) => texts,
            None => segments(&testing, TESTED)?.clamp(3, TESTED),
        };
        let writes = subject.model.shape().order == Order::Causal && longest >= ROOM_TO_WRITE;
        let written = if writes { WRITTEN } else { 0 };
        let of_model = json!({
            "test": testing.text.name, "test_part": testing_part.name(), "length": longest, "segments": calibration + texts,
            "texts": tested, "written": written,
        });
        let title = format!("{model} with replaced heads");
        let tested = Tested { title, keys: with(&shared, of_model) };
        // What the audit of the model refuses is told before the heads are run: its assignments are all that is not known yet.
        let nothing = Role::Named("nothing replaced".to_string());
        let nothing = NamedAssignment { role: nothing, ..NamedAssignment::exact(subject.model.shape()) };
        tested.model(settings, &[nothing], sources)?;
        let asked = format!("{} {:?}", testing.text.sha256, request.texts);
        let name = name(&subject.name, &heads, &asked)?;
        Ok(Prepared { name, heads, tested: Some(tested) })
    }
}

impl Tested {
    /// The run of the model with these assignments.
    pub(super) fn model(
        &self,
        settings: Settings,
        assignments: &[NamedAssignment],
        sources: &Sources,
    ) -> Result<Planned, Error> {
        let assignments: Vec<Value> = assignments.iter().map(written).collect();
        let keys = with(&self.keys, json!({ "assignments": assignments }));
        planned("audit-model", &self.title, keys, settings, sources)
    }
}

/// The run of the heads of what is called `name`. That heads drop the middle is always asked: the table of DuoAttention is about
/// nothing else.
fn heads(
    request: &AuditRequest,
    settings: Settings,
    name: &str,
    keys: Value,
    sources: &Sources,
) -> Result<Planned, Error> {
    let mut candidates = match request.candidates.is_empty() {
        true => CANDIDATES.map(String::from).to_vec(),
        false => request.candidates.clone(),
    };
    if !candidates.iter().any(|name| name.parse::<Candidate>() == Ok(Candidate::DROPPED)) {
        candidates.insert(0, Candidate::DROPPED.to_string());
    }
    let asked = json!({
        "candidates": candidates, "tolerance": request.tolerance, "criterion": request.criterion.name(),
    });
    planned("audit-heads", &format!("The heads of {name}"), with(&keys, asked), settings, sources)
}

fn planned(
    kind: &str,
    title: &str,
    keys: Value,
    settings: Settings,
    sources: &Sources,
) -> Result<Planned, Error> {
    let keys = with(&keys, json!({ "kind": kind, "title": title }));
    let written = Written::from_json(&keys).unwrap_or_else(|| Written::table([]));
    Ok(Planned::with(written, settings, sources)?)
}

/// The keys of two tables.
fn with(keys: &Value, more: Value) -> Value {
    let tables = [keys.clone(), more].into_iter().filter_map(|table| table.as_object().cloned());
    tables.flatten().collect()
}

/// The audit's folder: the model's name and the beginning of a checksum of all that was asked, so that the same request goes on
/// in the same folder.
fn name(model: &str, heads: &Planned, tested: &str) -> Result<String, Error> {
    let stem =
        Path::new(model).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let stem: String = stem.chars().filter(|sign| sign.is_alphanumeric() || "-_.".contains(*sign)).collect();
    if stem.is_empty() || stem.starts_with('.') {
        return Err(Error::NoName { file: PathBuf::from(model) });
    }
    let digest = esscher_lab::sha256(format!("{}\n{tested}", heads.specification()).as_bytes());
    Ok(format!("{stem}-{}", digest.chars().take(8).collect::<String>()))
}

/// The shortest text in which something is replaced; with a smaller window, which the kind `audit-heads` takes, it may be shorter.
fn shortest(order: Order) -> usize {
    Frame::of(order).first_replaced() + BLOCK
}

/// What to say where even the longest text has less than a third of its tokens replaced: errors are small there for that reason alone.
fn warning_of_short_texts(lengths: &[u64], order: Order) -> Option<String> {
    let longest = lengths.iter().copied().max()? as usize;
    let (least, most) = Frame::of(order).middle_at_the_end(order, longest);
    (3 * most < longest).then(|| {
        let share = |count: usize| (100.0 * count as f64 / longest as f64).round();
        format!(
            "at {longest} tokens only {} to {} % of what a head reads is replaced, so that most heads are accepted: 256 and more say \
             more",
            share(least),
            share(most)
        )
    })
}

/// Refuses lengths at which almost nothing would be replaced.
fn check_lengths(lengths: &[u64], model: &str, shape: &Shape) -> Result<(), Error> {
    let (needed, context) = (shortest(shape.order), shape.context);
    if context < needed {
        let model = model.to_string();
        return Err(esscher_audit::Error::ShortContext { model, context, needed }.into());
    }
    match lengths.iter().map(|length| *length as usize).find(|length| *length < needed) {
        None => Ok(()),
        Some(found) => Err(too_short(
            "a segment",
            found,
            needed,
            "enough to be replaced".to_string(),
            "ask for a greater length",
        )),
    }
}

fn too_short(
    what: &'static str,
    found: usize,
    needed: usize,
    purpose: String,
    remedy: &'static str,
) -> Error {
    esscher_audit::Error::TooFewTokens { what, found, needed, purpose, remedy }.into()
}
