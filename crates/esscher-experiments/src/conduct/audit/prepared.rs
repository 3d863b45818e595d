//! A request with what it leaves open decided: which texts calibrate and test, how many segments of them, and the runs to plan.

use super::assignments::Chosen;
use super::{AuditRequest, DROPPED, Error};
use crate::Planned;
use crate::kinds::audit::Excerpt;
use crate::kinds::audit::dumps::Dumps;
use crate::kinds::audit::heads::{CANDIDATES, TOLERANCES};
use crate::kinds::audit::subject::Subject;
use crate::models::{ModelStore, is_dump};
use crate::reading::find_text;
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::head::Order;
use esscher_audit::replacement::BLOCK;
use esscher_lab::Experiment;
use std::path::{Path, PathBuf};

/// A request with its heads planned.
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) heads: Planned,
    /// What the model is tested on; dumps cannot be run.
    pub(super) tested: Option<Tested>,
}

/// A checkpoint with the texts that calibrate and that test.
pub(super) struct Tested {
    model: String,
    text: String,
    test: String,
    /// Whether the two are parts of one text.
    split: bool,
    /// Segments that the calibrating text is cut into, and how many of them calibrate.
    cut: u64,
    calibration: u64,
    segments: u64,
}

/// Segments of the texts, if there are as many.
const CALIBRATING: u64 = 2;
const MEASURED: u64 = 6;
const TESTED: u64 = 8;

impl Prepared {
    pub(super) fn of(request: &AuditRequest, told: &dyn Fn(&str)) -> Result<Self, Error> {
        check(request)?;
        let store = ModelStore::of_user()?;
        match request.models.as_slice() {
            [model] if store.named(model).is_some() || !is_dump(Path::new(model)) => {
                Self::of_checkpoint(request, model, &store, told)
            }
            paths => Self::of_dumps(request, paths, &store, told),
        }
    }

    fn of_dumps(
        request: &AuditRequest,
        paths: &[String],
        store: &ModelStore,
        told: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        let given = [
            ("a text", request.text.is_some()),
            ("a text to test on", request.test.is_some()),
            ("a length", !request.lengths.is_empty()),
            ("a number of texts", request.texts.is_some()),
        ];
        if let Some((what, _)) = given.iter().find(|(_, given)| *given) {
            return Err(esscher_audit::Error::Request(format!(
                "{what} is given beside dumps, which hold what heads saw of their own texts: leave it out, and record other texts as \
                 other dumps"
            ))
            .into());
        }
        told(&match paths.len() {
            1 => "reading the dump".to_string(),
            count => format!("reading {count} dumps"),
        });
        // Read and checked before the specification is: a sentence about files, not about keys.
        let dumps = Dumps::find(paths, store)?;
        let listed = paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(", ");
        let title = format!("The heads of {}", dumps.name());
        let specification = format!(
            "kind = \"audit-heads\"\ntitle = {}\ndumps = [{listed}]\n{}",
            quoted(&title),
            asked(request)
        );
        let heads = Planned::read("the request", &specification, request.settings)?;
        let name = name(paths.first().map_or("", String::as_str), &heads, "")?;
        Ok(Prepared { name, heads, tested: None })
    }

    fn of_checkpoint(
        request: &AuditRequest,
        model: &str,
        store: &ModelStore,
        told: &dyn Fn(&str),
    ) -> Result<Self, Error> {
        // A misspelt text is told before anything is fetched.
        for text in request.text.iter().chain(&request.test) {
            find_text(text)?;
        }
        let subject = Subject::find(model, store, told)?;
        let (text, test, split) = match (&request.text, &request.test) {
            (Some(text), Some(test)) => (text.clone(), test.clone(), false),
            (Some(text), None) => (text.clone(), text.clone(), true),
            (None, Some(test)) => (default_text(&subject).to_string(), test.clone(), false),
            (None, None) if default_text(&subject) == STORIES => {
                (STORIES.to_string(), STORIES.to_string(), true)
            }
            (None, None) => ("bible".to_string(), "jargon".to_string(), false),
        };
        let context = subject.model.shape().context as u64;
        let lengths = match request.lengths.is_empty() {
            true => vec![256.min(context)],
            false => request.lengths.clone(),
        };
        check_lengths(&lengths, subject.model.shape().order)?;
        // Where a short text decides: as many segments as it has, and the kind says what is missing if those are too few.
        let longest = lengths.iter().copied().max().unwrap_or(1).max(2);
        let template = subject.vocabulary.template();
        let around = (template.prefix.len() + template.suffix.len()) as u64;
        let segments = |name: &str, part: Excerpt| -> Result<u64, Error> {
            let tokens = subject.tokens(part.of(&find_text(name)?))?.len() as u64;
            Ok(tokens / longest.saturating_sub(around).max(1))
        };
        let [calibrating_part, testing_part] = parts(split);
        let there = segments(&text, calibrating_part)?;
        let calibration = if there < CALIBRATING + 3 { 1 } else { CALIBRATING };
        let texts = request.texts.unwrap_or(there.saturating_sub(calibration).clamp(3, MEASURED));
        let test_segments = match (request.heads_only, request.texts) {
            (true, _) => TESTED,
            (false, Some(texts)) => texts,
            (false, None) => segments(&test, testing_part)?.clamp(3, TESTED),
        };
        let specification = format!(
            "kind = \"audit-heads\"\ntitle = {}\nmodel = {}\ntext = {}\ntext_part = \"{}\"\nlengths = {lengths:?}\n\
             calibration = {calibration}\ntexts = {texts}\n{}",
            quoted(&format!("The heads of {}", subject.name)),
            quoted(model),
            quoted(&text),
            calibrating_part.name(),
            asked(request),
        );
        let heads = Planned::read("the request", &specification, request.settings)?;
        let tested = match request.heads_only {
            true => String::new(),
            false => format!("{} {:?}", esscher_lab::sha256(find_text(&test)?.as_bytes()), request.texts),
        };
        let name = name(&subject.name, &heads, &tested)?;
        let (model, cut) = (model.to_string(), calibration + texts);
        let tested = Tested { model, text, test, split, cut, calibration, segments: test_segments };
        if !request.heads_only {
            // What the audit of the model refuses is told before the heads are run: its assignments are all that is not known yet.
            tested.model(request, longest as usize, &[Chosen::exact(subject.model.shape())])?;
        }
        Ok(Prepared { name, heads, tested: Some(tested) })
    }
}

impl Tested {
    /// The run of the model with the assignments that the heads gave.
    pub(super) fn model(
        &self,
        request: &AuditRequest,
        length: usize,
        chosen: &[Chosen],
    ) -> Result<Planned, Error> {
        let [calibrating, testing] = parts(self.split);
        let mut specification = format!(
            "kind = \"audit-model\"\ntitle = {}\nmodel = {}\ntext = {}\ntext_part = \"{}\"\ntest = {}\ntest_part = \"{}\"\n\
             length = {length}\ncalibration = {}\nsegments = {}\ntexts = {}\n",
            quoted(&format!("{} with replaced heads", self.model)),
            quoted(&self.model),
            quoted(&self.text),
            calibrating.name(),
            quoted(&self.test),
            testing.name(),
            self.calibration,
            self.cut,
            self.segments,
        );
        for one in chosen {
            specification.push_str(&one.specification());
        }
        Ok(Planned::read("the request", &specification, request.settings)?)
    }
}

const STORIES: &str = "stories";

/// A model is best judged by its own language: that of stories15M is children's stories, sampled from it.
fn default_text(subject: &Subject) -> &'static str {
    if subject.name == "stories15M" { STORIES } else { "bible" }
}

/// The parts of the texts that calibrate and that test.
fn parts(split: bool) -> [Excerpt; 2] {
    match split {
        true => [Excerpt::FirstTwoThirds, Excerpt::LastThird],
        false => [Excerpt::Whole, Excerpt::Whole],
    }
}

/// What is asked of every head, as the specification writes it. That heads drop the middle is always asked: the table of DuoAttention
/// is about nothing else.
fn asked(request: &AuditRequest) -> String {
    let mut candidates = match request.candidates.is_empty() {
        true => CANDIDATES.map(String::from).to_vec(),
        false => request.candidates.clone(),
    };
    if !candidates.iter().any(|name| name.parse::<Candidate>() == Ok(DROPPED)) {
        candidates.insert(0, DROPPED.to_string());
    }
    let listed = candidates.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let (tolerance, criterion) = (request.tolerance, request.criterion.name());
    format!("candidates = [{listed}]\ntolerance = {tolerance:?}\ncriterion = \"{criterion}\"\n")
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

/// A text as specifications quote it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for sign in text.chars() {
        match sign {
            '\\' | '"' => quoted.extend(['\\', sign]),
            _ if sign.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(sign))),
            _ => quoted.push(sign),
        }
    }
    quoted + "\""
}

/// What makes no sense for any model.
fn check(request: &AuditRequest) -> Result<(), Error> {
    let (least, most) = TOLERANCES;
    if !(least..=most).contains(&request.tolerance) {
        let found = request.tolerance;
        return Err(esscher_audit::Error::Request(format!(
            "the tolerance is a relative error from {least} to {most}, found {found}"
        ))
        .into());
    }
    for name in &request.candidates {
        name.parse::<Candidate>()?;
    }
    Ok(())
}

/// As the kind `audit-heads` takes them; there a smaller window can be asked for.
fn check_lengths(lengths: &[u64], order: Order) -> Result<(), Error> {
    let frame = match order {
        Order::Causal => Frame::default(),
        Order::Whole => Frame { window: 0, ..Frame::default() },
    };
    let least = (frame.first_replaced() + BLOCK) as u64;
    match lengths.iter().find(|length| **length < least) {
        None => Ok(()),
        Some(length) => Err(esscher_audit::Error::Request(format!(
            "of {length} tokens too few would be replaced to measure: ask for at least {least}"
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn what_is_quoted_is_read_back_or_refused_in_words() {
        let read = |text: &str| {
            let written = format!("title = {}\n", quoted(text));
            assert_eq!(written.lines().count(), 1);
            esscher_lab::specification::read("test.toml", &written, |section| section.text("title", None))
        };
        let text = "a \"quoted\" C:\\path and é";
        assert_eq!(read(text).unwrap().0, text);
        // Names have no lines: it is said of the key, and is no mistake of the language.
        let refused = read("two\nlines").unwrap_err();
        assert_eq!(refused.message, "key `title`: expected text on one line");
    }
}
