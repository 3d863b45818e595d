//! The audit of a model: what assignments of replacements to heads do to its predictions on a text that calibrated nothing.

use super::calibrated::Calibrated;
use super::excerpt::{ChosenText, Excerpt};
use super::subject::Subject;
use super::{SHORTEST, check_context, check_instruction_set, check_replaced, frame};
use crate::kinds::{Kind, Plan, columns};
use crate::reading;
use esscher_audit::assignment::{Assignment, Running};
use esscher_audit::calibration::Calibration;
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::head::Order;
use esscher_audit::likelihood::{cosine_distance, embedding, log_loss, retrieval};
use esscher_audit::model::{ExactAttention, LayerAttention, Shape};
use esscher_audit::needle::{Haystack, haystack};
use esscher_audit::replaced::ReplacedAttention;
use esscher_audit::segment::segments;
use esscher_core::Monitor;
use esscher_core::numerics::Stream;
use esscher_lab::specification::{self, Mistake, Section};
use esscher_lab::{Column, Failure, Table, Unit, Value};
use std::sync::Arc;

pub(in crate::kinds) const KIND: Kind = Kind {
    name: "audit-model",
    title: "The audit of a model with replaced heads",
    summary: "A real checkpoint with replaced heads on held-out text: perplexity, needles, and the bytes of its cache.",
    example: r#"kind = "audit-model"
model = "tiny-random"
text = "bible"
test = "jargon"
length = 96
texts = 3
window = 16

[[assignments]]
name = "all dropped"
everywhere = "dropped"

[[assignments]]
name = "first layer"
running = "offline"
rows = ["tilted-gaussian mean mean mean", "exact exact exact exact"]
"#,
    read: |section, seed, instructions| {
        check_instruction_set(section, instructions)?;
        Ok(Box::new(ModelPlan::read(section, seed)?))
    },
};

const COLUMNS: [(&str, Column); 5] = [
    ("assignment", Column::Text),
    ("running", Column::Text),
    ("text", Column::Integer),
    ("quantity", Column::Text),
    ("value", Column::Real),
];

/// What a row holds.
mod quantity {
    /// Mean of −ln p(next token).
    pub(super) const LOG_LOSS: &str = "log-loss";
    /// The share of the hidden codes that are found whole.
    pub(super) const RETRIEVAL: &str = "retrieval";
    /// 1 − cosine to the embedding with exact attention.
    pub(super) const EMBEDDING_DISTANCE: &str = "embedding-distance";
}

/// The implicit first assignment.
const EXACT: &str = "exact attention";

/// The assignment that an audit deploys: the key-value heads that it accepted.
pub(crate) const ACCEPTED: &str = "accepted key-value heads";

/// Needles need this many tokens and a text around them: in shorter ones none are hidden unless somebody asks.
const ROOM_FOR_NEEDLES: usize = 512;

/// Prompts with needles where nobody says how many.
const PROMPTS_WITH_NEEDLES: usize = 4;

const LONGEST_NAME: usize = 80;

/// An audit of a model, ready to run.
pub(crate) struct ModelPlan {
    pub(super) subject: Arc<Subject>,
    pub(super) calibrating: ChosenText,
    pub(super) testing: ChosenText,
    pub(super) length: usize,
    pub(super) frame: Frame,
    pub(super) assignments: Vec<NamedAssignment>,
    pub(super) calibration_segments: usize,
    pub(super) texts: Vec<Vec<u32>>,
    pub(super) haystacks: Vec<Haystack>,
    /// Why no needles are hidden where they would be by default.
    pub(super) no_needles: Option<String>,
    calibrated: Calibrated,
}

/// An assignment and how it runs.
pub(crate) struct NamedAssignment {
    pub(crate) name: String,
    pub(crate) running: Running,
    pub(crate) assignment: Assignment,
}

impl NamedAssignment {
    /// Its name and how it runs, once if the name says so.
    pub(super) fn in_words(&self) -> String {
        let (name, running) = (&self.name, self.running.name());
        if name.ends_with(running) { name.clone() } else { format!("{name}, {running}") }
    }
}

/// What was found on every text, one list per assignment; the first is exact attention.
pub(crate) struct Losses {
    /// Log losses, or distances of embeddings where every token sees all; infinite where they are not finite.
    pub(crate) texts: Vec<Vec<f64>>,
    /// Shares of codes found.
    pub(crate) needles: Vec<Vec<f64>>,
}

impl ModelPlan {
    /// Reads the keys of this kind.
    pub(crate) fn read(section: &mut Section, seed: u64) -> Result<Self, Mistake> {
        let subject = Subject::read(section)?;
        let shape = *subject.model.shape();
        let text = reading::text(section, "text", "text_sha256", Some("bible"))?;
        let calibrating = ChosenText { text, excerpt: Excerpt::read(section, "text_part")? };
        let text = reading::text(section, "test", "test_sha256", Some("jargon"))?;
        let testing = ChosenText { text, excerpt: Excerpt::read(section, "test_part")? };
        if calibrating.text.sha256 == testing.text.sha256 && calibrating.excerpt.overlaps(testing.excerpt) {
            let message = format!(
                "`{}` is the text that calibrates: test on another one, or on another part of it (`text_part`, `test_part`)",
                testing.text.name
            );
            return Err(section.mistake("test", message));
        }
        let default = 256.min(shape.context as u64);
        let length = section.integer("length", SHORTEST..=1 << 20, Some(default))? as usize;
        let frame = frame(section, &shape)?;
        check_context(section, "length", length, shape.context)?;
        check_replaced(section, "length", length, &frame)?;
        let calibration_segments = section.integer("calibration", 1..=64, Some(2))?;
        // An audit cuts the text as its heads were measured, so that both are calibrated on the same tokens.
        let cut =
            section.integer("segments", calibration_segments..=320, Some(calibration_segments))? as usize;
        let calibration_segments = calibration_segments as usize;
        let count = section.integer("texts", 2..=256, Some(8))? as usize;
        let tokens = section.accept("test", subject.tokens(testing.content()))?;
        let template = subject.vocabulary.template();
        // Nobody has asked for the needles of the default: where they do not fit there are none, and the report says why.
        let by_default = match shape.order {
            Order::Causal if length >= ROOM_FOR_NEEDLES => {
                haystacks(&subject, &tokens, length, PROMPTS_WITH_NEEDLES, seed)
            }
            _ => Ok(Vec::new()),
        };
        let default = by_default.as_ref().map_or(0, Vec::len);
        let needles = section.integer("needles", 0..=64, Some(default as u64))? as usize;
        if needles > 0 && shape.order == Order::Whole {
            let message = "every token of this model sees all: it answers no questions, expected 0";
            return Err(section.mistake("needles", message));
        }
        let assignments = assignments(section, &shape)?;
        let calibrating_tokens = section.accept("text", subject.tokens(calibrating.content()))?;
        let cut = segments(&calibrating_tokens, template, length, cut);
        let mut cut = section.accept("text", cut)?;
        cut.truncate(calibration_segments);
        let calibrated = Calibrated::by(cut);
        let texts = section.accept("test", segments(&tokens, template, length, count))?;
        let (haystacks, no_needles) = match by_default {
            Err(reason) if needles == 0 => (Vec::new(), Some(reason.to_string())),
            _ => (section.accept("needles", haystacks(&subject, &tokens, length, needles, seed))?, None),
        };
        Ok(ModelPlan {
            subject,
            calibrating,
            testing,
            length,
            frame,
            assignments,
            calibration_segments,
            texts,
            haystacks,
            no_needles,
            calibrated,
        })
    }

    /// The plan of a specification that is known to be of this kind.
    ///
    /// # Errors
    /// Any other specification.
    pub(crate) fn of_specification(text: &str) -> Result<Self, Mistake> {
        let (plan, _) = specification::read("spec.toml", text, |section| {
            section.choice("kind", &[(KIND.name, ())], None)?;
            section.text("title", Some(KIND.title))?;
            let seed = section.integer("seed", 0..=u64::MAX >> 1, Some(0))?;
            ModelPlan::read(section, seed)
        })?;
        Ok(plan)
    }

    /// The assignments, exact attention first.
    pub(crate) fn assignments(&self) -> &[NamedAssignment] {
        &self.assignments
    }

    /// The cache of an assignment as a share of exact attention's, at so many tokens.
    pub(crate) fn cache_share(&self, assignment: &NamedAssignment, tokens: usize) -> f64 {
        let (exact, ours) = self.cache_bytes(assignment, tokens);
        ours / exact
    }

    /// The bytes of exact attention's cache and of an assignment's, in half precision.
    pub(crate) fn cache_bytes(&self, assignment: &NamedAssignment, tokens: usize) -> (f64, f64) {
        let shape = self.subject.model.shape();
        assignment.assignment.cache_bytes(shape, &self.frame, assignment.running, tokens, BYTES_PER_NUMBER)
    }

    /// Whether codes are hidden and asked for.
    pub(crate) fn hides_needles(&self) -> bool {
        !self.haystacks.is_empty()
    }

    /// What flatters the model on the text that tests it, if something does.
    pub(crate) fn caution(&self) -> Option<String> {
        self.testing.caution(&self.subject)
    }

    /// The text that tests.
    pub(crate) fn testing(&self) -> &ChosenText {
        &self.testing
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.subject.model.shape()
    }

    /// What every assignment made of every text.
    ///
    /// # Errors
    /// A table that is not a result of this plan.
    pub(crate) fn losses(&self, result: &Table) -> Result<Losses, Failure> {
        columns::check(result, &COLUMNS)?;
        let blank = |texts: usize| vec![vec![f64::NAN; texts]; self.assignments.len()];
        let mut losses = Losses { texts: blank(self.texts.len()), needles: blank(self.haystacks.len()) };
        for row in result.rows() {
            let foreign = || Failure::from("the table is a result of another audit");
            let (name, running) = (row.text("assignment")?, row.text("running")?);
            let number = self
                .assignments
                .iter()
                .position(|known| known.name == name && known.running.name() == running)
                .ok_or_else(foreign)?;
            let text = usize::try_from(row.integer("text")?)?;
            let of = match row.text("quantity")? {
                quantity::RETRIEVAL => &mut losses.needles,
                quantity::LOG_LOSS | quantity::EMBEDDING_DISTANCE => &mut losses.texts,
                _ => return Err(foreign()),
            };
            *of[number].get_mut(text).ok_or_else(foreign)? =
                row.optional_real("value")?.unwrap_or(f64::INFINITY);
        }
        if losses.texts.iter().chain(&losses.needles).flatten().any(|value| value.is_nan()) {
            return Err("the table is not a whole result of this audit".into());
        }
        Ok(losses)
    }
}

/// Prompts with needles, each in its own stretch of the text.
fn haystacks(
    subject: &Subject,
    text: &[u32],
    length: usize,
    count: usize,
    seed: u64,
) -> Result<Vec<Haystack>, esscher_audit::Error> {
    (0..count)
        .map(|number| {
            let at = number as f64 / count.saturating_sub(1).max(1) as f64;
            let mut stream = Stream::new(seed, number as u32, 0);
            haystack(&subject.vocabulary, text, at, length, &mut stream)
        })
        .collect()
}

/// Bytes of a number in a cache: half precision, as caches are kept.
pub(crate) const BYTES_PER_NUMBER: usize = 2;

fn assignments(section: &mut Section, shape: &Shape) -> Result<Vec<NamedAssignment>, Mistake> {
    let default = match shape.order {
        Order::Causal => "streaming",
        Order::Whole => "offline",
    };
    let exact = Assignment::everywhere(shape, Candidate::Exact);
    let running = Running::Offline;
    let mut all = vec![NamedAssignment { name: EXACT.to_string(), running, assignment: exact }];
    let read = section.tables("assignments", 1..=64, |table| {
        let name = table.text("name", None)?;
        let count = name.chars().count();
        if !(1..=LONGEST_NAME).contains(&count) {
            let message = format!("expected a name of 1 to {LONGEST_NAME} characters, found {count}");
            return Err(table.mistake("name", message));
        }
        let words = Running::ALL.map(|running| (running.name(), running));
        let running = table.choice("running", &words, Some(default))?;
        if running == Running::Streaming && shape.order == Order::Whole {
            let message = "every token of this model sees all: nothing streams, say \"offline\"";
            return Err(table.mistake("running", message));
        }
        let assignment = match (table.form("everywhere"), table.form("rows")) {
            (Some(_), Some(_)) => {
                return Err(table.mistake("rows", "there is an `everywhere` as well; give one of the two"));
            }
            (Some(_), None) => {
                let name = table.text("everywhere", None)?;
                let candidate = table.accept("everywhere", name.parse::<Candidate>())?;
                Assignment::everywhere(shape, candidate)
            }
            (None, _) => {
                let rows = table.texts("rows", 1..=4096, None)?;
                let parsed: Result<Vec<Vec<Candidate>>, _> =
                    rows.iter().map(|row| row.split_whitespace().map(str::parse).collect()).collect();
                let made = parsed.and_then(|rows| Assignment::new(shape, rows));
                table.accept("rows", made)?
            }
        };
        Ok(NamedAssignment { name, running, assignment })
    })?;
    for one in read {
        if all.iter().any(|other| other.name == one.name) {
            let message = format!("two assignments are called \"{}\"; give them different names", one.name);
            return Err(section.mistake("assignments", message));
        }
        all.push(one);
    }
    Ok(all)
}

impl Plan for ModelPlan {
    fn units(&self) -> Vec<Unit> {
        let shape = self.shape();
        let tokens = self.length as f64;
        let size = 12 * shape.width * shape.width * shape.layers + shape.vocabulary * shape.width;
        let heads = (shape.layers * shape.heads * shape.head_dimension) as f64;
        let cost = 0.01 + 3e-10 * (tokens * size as f64 + tokens * tokens * heads);
        let prompts = self.texts.len() + self.haystacks.len();
        let of = |one: &NamedAssignment, prompt: usize| match prompt.checked_sub(self.texts.len()) {
            None => format!("{}, text {prompt}", one.name),
            Some(needle) => format!("{}, needles {needle}", one.name),
        };
        self.assignments
            .iter()
            .flat_map(|one| (0..prompts).map(move |prompt| Unit { label: of(one, prompt), cost }))
            .collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Table>, Failure> {
        let prompts = self.texts.len() + self.haystacks.len();
        let named = self.assignments.get(unit / prompts).ok_or_else(|| format!("there is no unit {unit}"))?;
        let Some(calibration) = self.calibrated.get(&self.subject, monitor)? else { return Ok(None) };
        let prompt = unit % prompts;
        let measured = match self.texts.get(prompt) {
            Some(text) => self.measured(named, text, &calibration, monitor)?.map(|found| (prompt, found)),
            None => {
                let number = prompt - self.texts.len();
                let model = &self.subject.model;
                let mut attention = self.attention(named, &calibration)?;
                retrieval(model, &self.haystacks[number], &mut *attention, monitor)?
                    .map(|share| (number, (quantity::RETRIEVAL, share)))
            }
        };
        let Some((text, (quantity, value))) = measured else { return Ok(None) };
        let mut table = Table::new(&COLUMNS);
        let row: [Value; 5] = [
            named.name.as_str().into(),
            named.running.name().into(),
            (text as i64).into(),
            quantity.into(),
            // Tables hold finite numbers only: what is missing is read as infinite.
            if value.is_finite() { value.into() } else { Value::Missing },
        ];
        table.push(row)?;
        Ok(Some(table))
    }

    fn sections(&self, result: &Table) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(self.describe(&self.losses(result)?))
    }
}

impl ModelPlan {
    fn attention<'a>(
        &'a self,
        named: &'a NamedAssignment,
        calibration: &'a Calibration,
    ) -> Result<Box<dyn LayerAttention + 'a>, Failure> {
        let (shape, assignment) = (self.shape(), &named.assignment);
        Ok(Box::new(ReplacedAttention::new(shape, assignment, &self.frame, named.running, calibration)?))
    }

    /// The log loss of a decoder on a text, or how far the embedding of an encoder moves.
    fn measured(
        &self,
        named: &NamedAssignment,
        text: &[u32],
        calibration: &Calibration,
        monitor: &dyn Monitor,
    ) -> Result<Option<(&'static str, f64)>, Failure> {
        let model = &self.subject.model;
        let mut attention = self.attention(named, calibration)?;
        match model.shape().order {
            Order::Causal => {
                let found = log_loss(model, text, &mut *attention, monitor)?;
                Ok(found.map(|loss| (quantity::LOG_LOSS, loss)))
            }
            Order::Whole => {
                let Some(ours) = embedding(model, text, &mut *attention, monitor)? else { return Ok(None) };
                let mut exact = ExactAttention::new(model.shape());
                let found = embedding(model, text, &mut exact, monitor)?;
                Ok(found.map(|exact| (quantity::EMBEDDING_DISTANCE, cosine_distance(&ours, &exact))))
            }
        }
    }
}
