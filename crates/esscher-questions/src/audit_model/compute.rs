//! The plan of an audit of a model: a unit for every assignment and text or prompt.

use super::answer::{Quantity, Row};
use super::ask::{Ask, assignments};
use crate::Sources;
use crate::audit::calibrated::Calibrated;
use crate::audit::excerpt::ChosenText;
use crate::audit::subject::Subject;
use crate::audit::{check_context, check_instruction_set, check_replaced, frame};
use crate::question::{Awaiting, Compute, Plan};
use esscher_audit::assignment::Running;
use esscher_audit::calibration::Calibration;
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::continuation::continued;
use esscher_audit::controls::NamedAssignment;
use esscher_audit::decoding::MixedCache;
use esscher_audit::head::Order;
use esscher_audit::likelihood::{cosine_distance, embedding, log_loss, retrieval};
use esscher_audit::model::{ExactAttention, Shape};
use esscher_audit::needle::{Haystack, haystack};
use esscher_audit::replaced::ReplacedAttention;
use esscher_audit::role::Role;
use esscher_audit::segment::segments;
use esscher_core::Monitor;
use esscher_core::numerics::{InstructionSet, Stream};
use esscher_lab::specification::{Keys, Mistake, Section, Written};
use esscher_lab::{Failure, Unit};
use std::sync::Arc;

/// Needles need this many tokens and a text around them: in shorter ones none are hidden unless somebody asks.
const ROOM_FOR_NEEDLES: usize = 512;

/// Prompts with needles where nobody says how many.
const PROMPTS_WITH_NEEDLES: usize = 4;

/// An audit of a model, ready to run.
pub(crate) struct ModelPlan {
    pub(super) subject: Arc<Subject>,
    pub(super) calibrating: ChosenText,
    pub(crate) testing: ChosenText,
    pub(crate) length: usize,
    pub(super) frame: Frame,
    /// Exact attention first.
    pub(crate) assignments: Vec<NamedAssignment>,
    pub(super) calibration_segments: usize,
    pub(super) texts: Vec<Vec<u32>>,
    pub(super) haystacks: Vec<Haystack>,
    /// Why no needles are hidden where they would be by default.
    pub(super) no_needles: Option<String>,
    /// As many of the last tokens of the first text are written by the model itself.
    pub(super) written: usize,
    calibrated: Calibrated,
}

/// What was found on every text, one list per assignment; the first is exact attention.
pub(crate) struct Losses {
    /// Log losses, or distances of embeddings where every token sees all; infinite where they are not finite.
    pub(crate) texts: Vec<Vec<f64>>,
    /// Shares of codes found.
    pub(crate) needles: Vec<Vec<f64>>,
    /// What was written with the assignments of [`ModelPlan::writers`]; none where nothing was a number.
    pub(crate) written: Vec<Vec<Option<u32>>>,
}

impl ModelPlan {
    /// Reads the keys of this kind, and plans if there are sources.
    pub(super) fn read(
        section: &mut Section,
        seed: u64,
        instructions: InstructionSet,
    ) -> Result<Box<dyn Plan>, Mistake> {
        check_instruction_set(section, instructions)?;
        let ask = Ask::read(section)?;
        let Some(sources) = section.provided::<Sources>() else {
            return Ok(Box::new(Awaiting { model: Some(ask.model) }));
        };
        let subject = Subject::read(section, &sources)?;
        let shape = *subject.model.shape();
        let calibrating = ChosenText::read(section, "text", "text_sha256", &ask.text, ask.text_part)?;
        let testing = ChosenText::read(section, "test", "test_sha256", &ask.test, ask.test_part)?;
        if calibrating.text.sha256 == testing.text.sha256 && calibrating.excerpt.overlaps(testing.excerpt) {
            let message = format!(
                "`{}` is the text that calibrates: test on another one, or on another part of it",
                testing.text.name
            );
            return Err(section.mistake("test", message));
        }
        let length = ask.length.unwrap_or_else(|| 256.min(shape.context as u64));
        section.fill("length", &Written::number(length as f64));
        let length = length as usize;
        let frame = frame(section, ask.window, &shape)?;
        check_context(section, "length", length, shape.context)?;
        check_replaced(section, "length", length, None, &frame)?;
        let template = subject.vocabulary.template();
        let needed = |segments: u64| template.room(length).saturating_mul(segments as usize);
        let tokens = section.accept("test", subject.tokens(&testing, needed(ask.texts)))?;
        // Nobody has asked for the needles of the default: where they do not fit there are none, and the report says why.
        let by_default = match shape.order {
            Order::Causal if length >= ROOM_FOR_NEEDLES => {
                haystacks(&subject, &tokens, length, PROMPTS_WITH_NEEDLES, seed)
            }
            _ => Ok(Vec::new()),
        };
        let needles =
            ask.needles.map_or_else(|| by_default.as_ref().map_or(0, Vec::len), |asked| asked as usize);
        section.fill("needles", &Written::number(needles as f64));
        if needles > 0 && shape.order == Order::Whole {
            let message = "every token of this model sees all: it answers no questions, expected 0";
            return Err(section.mistake("needles", message));
        }
        let written = ask.written as usize;
        if written > 0 && shape.order == Order::Whole {
            let message = "every token of this model sees all: it writes nothing, expected 0";
            return Err(section.mistake("written", message));
        }
        if written >= length {
            let message = format!("expected less than the {length} tokens of a segment, found {written}");
            return Err(section.mistake("written", message));
        }
        let assignments = assignments(section, Some(&shape))?;
        let calibrating_tokens =
            section.accept("text", subject.tokens(&calibrating, needed(ask.segments)))?;
        let cut = segments(&calibrating_tokens, template, length, ask.segments as usize);
        let mut cut = section.accept("text", cut)?;
        let calibration_segments = ask.calibration as usize;
        cut.truncate(calibration_segments);
        let calibrated = Calibrated::by(cut);
        let texts = section.accept("test", segments(&tokens, template, length, ask.texts as usize))?;
        let (haystacks, no_needles) = match by_default {
            Err(reason) if needles == 0 => (Vec::new(), Some(reason.to_string())),
            _ => (section.accept("needles", haystacks(&subject, &tokens, length, needles, seed))?, None),
        };
        Ok(Box::new(ModelPlan {
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
            written,
            calibrated,
        }))
    }

    /// The cache of an assignment as a share of exact attention's, at so many tokens.
    pub(crate) fn cache_share(&self, assignment: &NamedAssignment, tokens: usize) -> f64 {
        let (exact, ours) = self.cache_bytes(assignment, tokens);
        ours / exact
    }

    /// The bytes of exact attention's cache and of an assignment's.
    pub(crate) fn cache_bytes(&self, assignment: &NamedAssignment, tokens: usize) -> (f64, f64) {
        assignment.cache_bytes(self.shape(), &self.frame, tokens)
    }

    /// Whether codes are hidden and asked for.
    pub(crate) fn hides_needles(&self) -> bool {
        !self.haystacks.is_empty()
    }

    /// What flatters the model on the text that tests it, if something does.
    pub(crate) fn caution(&self) -> Option<String> {
        self.testing.caution(&self.subject)
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.subject.model.shape()
    }

    /// What every assignment made of every text.
    ///
    /// # Errors
    /// Rows that are not an answer to this plan.
    pub(crate) fn losses(&self, rows: &[Row]) -> Result<Losses, Failure> {
        let blank = |texts: usize| vec![vec![f64::NAN; texts]; self.assignments.len()];
        let mut losses = Losses {
            texts: blank(self.texts.len()),
            needles: blank(self.haystacks.len()),
            written: vec![Vec::new(); self.writers().len()],
        };
        for row in rows {
            let foreign = || Failure::from("the table is a result of another audit");
            let is = |known: &NamedAssignment| {
                known.role.to_string() == row.assignment && known.running.name() == row.running
            };
            let number = self.assignments.iter().position(is).ok_or_else(foreign)?;
            if row.quantity == Quantity::WrittenToken {
                let writer =
                    self.writers().iter().position(|writer| *writer == number).ok_or_else(foreign)?;
                let written = &mut losses.written[writer];
                if row.position != Some(self.length - self.written + written.len()) {
                    return Err(foreign());
                }
                // Tokens are whole numbers that double precision holds.
                written.push(row.value.map(|token| token as u32));
                continue;
            }
            let of = match row.quantity {
                Quantity::Retrieval => &mut losses.needles,
                Quantity::LogLoss | Quantity::EmbeddingDistance | Quantity::WrittenToken => &mut losses.texts,
            };
            // What is missing is not finite.
            *of[number].get_mut(row.text).ok_or_else(foreign)? = row.value.unwrap_or(f64::INFINITY);
        }
        let half_written = losses.written.iter().any(|written| written.len() != self.written);
        if half_written || losses.texts.iter().chain(&losses.needles).flatten().any(|value| value.is_nan()) {
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

impl Compute for ModelPlan {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        let shape = self.shape();
        let tokens = self.length as f64;
        let size = 12 * shape.width * shape.width * shape.layers + shape.vocabulary * shape.width;
        let heads = (shape.layers * shape.heads * shape.head_dimension) as f64;
        let cost = 0.01 + 3e-10 * (tokens * size as f64 + tokens * tokens * heads);
        let prompts = self.texts.len() + self.haystacks.len();
        let of = |one: &NamedAssignment, prompt: usize| match prompt.checked_sub(self.texts.len()) {
            None => format!("{}, text {prompt}", one.role),
            Some(needle) => format!("{}, needles {needle}", one.role),
        };
        let tested = self
            .assignments
            .iter()
            .flat_map(|one| (0..prompts).map(move |prompt| Unit { label: of(one, prompt), cost }));
        // One token alone reads all weights again: about as long as ten of a prompt.
        let cost = cost * (1.0 + 10.0 * self.written as f64 / tokens);
        let writers = self.writers().into_iter();
        let written =
            writers.map(|number| Unit { label: format!("{} writes", self.assignments[number].role), cost });
        tested.chain(written).collect()
    }

    fn run_unit(&self, unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let prompts = self.texts.len() + self.haystacks.len();
        if let Some(writer) = unit.checked_sub(prompts * self.assignments.len()) {
            return self.written_rows(writer, monitor);
        }
        let named = self.assignments.get(unit / prompts).ok_or_else(|| format!("there is no unit {unit}"))?;
        let Some(calibration) = self.calibrated.get(&self.subject, monitor)? else { return Ok(None) };
        let prompt = unit % prompts;
        let measured = match self.texts.get(prompt) {
            Some(text) => self.measured(named, text, &calibration, monitor)?,
            None => {
                let haystack = &self.haystacks[prompt - self.texts.len()];
                let mut attention = self.attention(named, &calibration, monitor)?;
                let share = retrieval(&self.subject.model, haystack, &mut attention, monitor)?;
                share.map(|share| (Quantity::Retrieval, share))
            }
        };
        Ok(measured.map(|(quantity, value)| {
            vec![Row {
                assignment: named.role.to_string(),
                running: named.running.name().to_string(),
                text: prompt.checked_sub(self.texts.len()).unwrap_or(prompt),
                quantity,
                position: None,
                // Tables hold finite numbers only.
                value: Some(value).filter(|value| value.is_finite()),
            }]
        }))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        Ok(self.sections_of(&self.losses(rows)?))
    }
}

impl ModelPlan {
    /// The assignments with which the model writes: exact attention, what would be deployed, a control, and whatever a specification
    /// names, as far as a cache can be read token by token. None if that is exact attention alone.
    pub(super) fn writers(&self) -> Vec<usize> {
        let cached = |candidate: &Candidate| !matches!(candidate, Candidate::Kept { .. });
        let writes = |one: &NamedAssignment| match &one.role {
            Role::Exact => true,
            Role::AcceptedGroups | Role::RandomGroups { draw: 1 } | Role::Named(_) => {
                one.running == Running::Streaming && one.assignment.rows().iter().flatten().all(cached)
            }
            _ => false,
        };
        if self.written == 0 {
            return Vec::new();
        }
        let writers: Vec<usize> =
            (0..self.assignments.len()).filter(|number| writes(&self.assignments[*number])).collect();
        if writers.len() > 1 { writers } else { Vec::new() }
    }

    /// What the model writes with an assignment after the beginning of the first text: a row for each token.
    fn written_rows(&self, writer: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let named = self.writers().get(writer).and_then(|number| self.assignments.get(*number));
        let named = named.ok_or_else(|| format!("there is no writer {writer}"))?;
        let Some(calibration) = self.calibrated.get(&self.subject, monitor)? else { return Ok(None) };
        let cache = MixedCache::new(self.shape(), &named.assignment, &self.frame, &calibration)?;
        let prompt = self.prompt();
        let written = continued(&self.subject.model, prompt, self.written, cache, monitor)?;
        let row = |(number, token): (usize, Option<u32>)| Row {
            assignment: named.role.to_string(),
            running: named.running.name().to_string(),
            text: 0,
            quantity: Quantity::WrittenToken,
            position: Some(prompt.len() + number),
            value: token.map(f64::from),
        };
        Ok(written.map(|written| written.into_iter().enumerate().map(row).collect()))
    }

    /// What the model goes on with.
    pub(super) fn prompt(&self) -> &[u32] {
        let text = self.texts.first().map_or(&[] as &[u32], Vec::as_slice);
        &text[..text.len().saturating_sub(self.written)]
    }

    fn attention<'a>(
        &'a self,
        named: &'a NamedAssignment,
        calibration: &'a Calibration,
        monitor: &'a dyn Monitor,
    ) -> Result<ReplacedAttention<'a>, esscher_audit::Error> {
        let (assignment, running) = (&named.assignment, named.running);
        ReplacedAttention::new(self.shape(), assignment, &self.frame, running, calibration, monitor)
    }

    /// The log loss of a decoder on a text, or how far the embedding of an encoder moves.
    fn measured(
        &self,
        named: &NamedAssignment,
        text: &[u32],
        calibration: &Calibration,
        monitor: &dyn Monitor,
    ) -> Result<Option<(Quantity, f64)>, Failure> {
        let model = &self.subject.model;
        let mut attention = self.attention(named, calibration, monitor)?;
        match model.shape().order {
            Order::Causal => {
                let found = log_loss(model, text, &mut attention, monitor)?;
                Ok(found.map(|loss| (Quantity::LogLoss, loss)))
            }
            Order::Whole => {
                let Some(ours) = embedding(model, text, &mut attention, monitor)? else { return Ok(None) };
                let mut exact = ExactAttention::watched(model.shape(), monitor);
                let found = embedding(model, text, &mut exact, monitor)?;
                Ok(found.map(|exact| (Quantity::EmbeddingDistance, cosine_distance(&ours, &exact))))
            }
        }
    }
}
