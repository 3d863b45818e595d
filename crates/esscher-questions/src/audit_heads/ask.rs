//! What is asked: a checkpoint on segments of a text, or dumps, and what may replace their heads within which error.

use crate::audit::{Excerpt, LENGTHS, MOST_DUMPS, WINDOWS, files};
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::Criterion;
use esscher_lab::keys;
use esscher_lab::specification::{
    self, Bounds, Keys, Kind, Mistake, Rule, Section, choice, integer, integers, one_of, own, real,
};
use serde_json::Value;

/// What may replace a head unless somebody says otherwise, by its state about the cheapest first.
pub(crate) const CANDIDATES: [&str; 10] = [
    "dropped",
    "mean",
    "gaussian",
    "reduced-gaussian/4",
    "reduced-gaussian/8",
    "reduced-gaussian/16",
    "tilted-gaussian",
    "tilted-means/8",
    "tilted-means/32",
    "top-16+reduced-gaussian/16",
];

/// From and to.
pub(crate) const TOLERANCES: (f64, f64) = (1e-6, 10.0);

keys! {
    /// Which heads of a checkpoint may be replaced, and by what?
    pub struct Ask {
        /// The checkpoint: the name of a model, or a path; the path of one dump as well
        model: Option<String> = specification::text().optional(),
        /// The SHA-256 of the checkpoint; if it is not given, any checkpoint is accepted
        sha256: Option<String> = files::sum_key(),
        /// The SHA-256 of its config.json
        config_sha256: Option<String> = files::sum_key(),
        /// The SHA-256 of its tokenizer
        tokenizer_sha256: Option<String> = files::sum_key(),
        /// Dumps of one model instead of a checkpoint, one for each text
        dumps: Option<Vec<String>> = specification::texts(1..=MOST_DUMPS).optional(),
        /// The SHA-256 of each dump
        dumps_sha256: Option<Vec<String>> = specification::texts(1..=MOST_DUMPS).optional(),
        /// The text, by name or path
        text: String = specification::text().or("bible"),
        /// The SHA-256 of the text
        text_sha256: Option<String> = files::sum_key(),
        /// The part of the text that is taken
        text_part: Excerpt = choice::<Excerpt>().or("whole"),
        /// Tokens of a segment; 256, or the model's context if that is less
        lengths: Option<Vec<u64>> = integers(LENGTHS, 1..=16).optional(),
        /// Segments that calibrate the readers
        calibration: u64 = integer(1..=64).or(2_u64),
        /// Segments that heads are measured on
        texts: u64 = integer(3..=256).or(6_u64),
        /// The last tokens, which are kept exactly; 64, or 0 where every token sees all
        window: Option<u64> = integer(WINDOWS).optional(),
        /// What may replace a head
        candidates: Vec<Candidate> = names() => own(candidates, Value::Null),
        /// The relative error of a head that is accepted
        tolerance: f64 = real(Bounds::Between(TOLERANCES.0, TOLERANCES.1)).or(0.05),
        /// The error that decides: of the head's output, or of what the layer adds to the residual stream
        criterion: Criterion = one_of(&Criterion::ALL.map(|one| (one.name(), one))).or(Criterion::Output.name()),
    }
}

impl Ask {
    /// Reads the keys, and checks what they say together.
    pub(crate) fn checked(section: &mut Section) -> Result<Self, Mistake> {
        let ask = Ask::read(section)?;
        match (&ask.dumps, &ask.model) {
            (Some(_), Some(_)) => {
                let message = "`model` and `dumps` are both given: an audit is of one of them";
                return Err(section.mistake("dumps", message));
            }
            (None, None) => {
                section.text("model", None)?;
            }
            (Some(dumps), None) => {
                let (count, sums) = (dumps.len(), ask.dumps_sha256.as_ref().map_or(dumps.len(), Vec::len));
                if sums != count {
                    let message = format!("expected a sum for each of {count} dumps, found {sums}");
                    return Err(section.mistake("dumps_sha256", message));
                }
                no_texts(section)?;
            }
            (None, Some(_)) if ask.dumps_sha256.is_some() => {
                return Err(section.mistake(
                    "dumps_sha256",
                    "sums are given, but no `dumps`; give the dumps too, or remove the sums",
                ));
            }
            (None, Some(_)) => {}
        }
        let lengths = ask.lengths.as_deref().unwrap_or_default();
        let twice = lengths.iter().enumerate().find(|(number, length)| lengths[..*number].contains(length));
        if let Some((_, length)) = twice {
            return Err(section.mistake("lengths", format!("{length} is given twice")));
        }
        Ok(ask)
    }
}

/// What chooses texts has no meaning beside dumps.
pub(super) fn no_texts(section: &mut Section) -> Result<(), Mistake> {
    let keys = ["text", "text_sha256", "text_part", "lengths", "calibration", "texts"];
    if let Some(key) = keys.into_iter().find(|key| section.form(key).is_some()) {
        let message = format!(
            "a dump holds what its heads saw of one text: leave `{key}` out, and record other texts as other dumps"
        );
        return Err(section.mistake(key, message));
    }
    section.omit(&keys);
    Ok(())
}

fn names() -> impl Rule<Value = Vec<String>> {
    specification::texts(1..=64).or(CANDIDATES.to_vec())
}

fn candidates(section: &mut Section, key: &'static str) -> Result<Vec<Candidate>, Mistake> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for name in names().read(section, key)? {
        let candidate = section.accept(key, name.parse::<Candidate>())?;
        if candidates.contains(&candidate) {
            return Err(section.mistake(key, format!("`{candidate}` is given twice")));
        }
        if candidate == Candidate::Exact {
            let message = "exact attention is what candidates are compared with; leave it out";
            return Err(section.mistake(key, message));
        }
        candidates.push(candidate);
    }
    Ok(candidates)
}
