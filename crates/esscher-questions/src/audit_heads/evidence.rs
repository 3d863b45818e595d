//! The evidence on heads: a checkpoint that is run on segments of a text, or dumps of what was run elsewhere.

use super::ask::{Ask, no_texts};
use crate::Sources;
use crate::audit::calibrated::Calibrated;
use crate::audit::dumps::Dumps;
use crate::audit::excerpt::ChosenText;
use crate::audit::subject::Subject;
use crate::audit::{check_context, files};
use esscher_audit::examination::{Findings, Questions, examine};
use esscher_audit::model::Shape;
use esscher_audit::segment::segments;
use esscher_core::Monitor;
use esscher_lab::Failure;
use esscher_lab::specification::{Mistake, Section, Written};
use esscher_models::is_dump;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// What heads are measured on.
pub(crate) enum Evidence {
    /// A checkpoint and the text that it is run on.
    Run(Run),
    /// A dump for every text.
    Dumps(Arc<Dumps>),
}

/// A checkpoint on segments of a text.
pub(crate) struct Run {
    pub(crate) subject: Arc<Subject>,
    pub(crate) text: ChosenText,
    pub(super) calibrating: usize,
    lengths: Vec<AtLength>,
}

/// The segments of one length.
struct AtLength {
    length: usize,
    texts: Vec<Vec<u32>>,
    calibrated: Calibrated,
}

impl Evidence {
    /// The checkpoint with its text, or the dumps, that are asked for.
    pub(super) fn find(ask: &Ask, section: &mut Section, sources: &Sources) -> Result<Self, Mistake> {
        if let Some(paths) = &ask.dumps {
            let dumps = Dumps::asked(section, paths, ask.dumps_sha256.as_deref(), sources)?;
            return Ok(Evidence::Dumps(dumps));
        }
        let store = sources.store().map_err(|error| files::told(section, "model", error))?;
        let choice = files::model(section, store)?;
        if store.named(&choice.name).is_none() && is_dump(Path::new(&choice.name)) {
            let dumps = Dumps::chosen(&choice, sources);
            let dumps = dumps.map_err(|error| files::told(section, "model", error))?;
            no_texts(section)?;
            return Ok(Evidence::Dumps(dumps));
        }
        let subject = Subject::load(&choice, sources);
        let subject = subject.map_err(|error| files::told(section, "model", error))?;
        Ok(Evidence::Run(Run::find(ask, section, subject)?))
    }

    /// The sizes of the model; of dumps the context is the length of their texts.
    pub(crate) fn shape(&self) -> &Shape {
        match self {
            Evidence::Run(run) => run.subject.model.shape(),
            Evidence::Dumps(dumps) => &dumps.shape,
        }
    }

    /// What to call the model.
    pub(crate) fn name(&self) -> String {
        match self {
            Evidence::Run(run) => run.subject.name.clone(),
            Evidence::Dumps(dumps) => dumps.name(),
        }
    }

    /// What to try if the texts can decide nothing.
    pub(crate) fn advice(&self) -> Option<String> {
        match self {
            Evidence::Run(_) => None,
            Evidence::Dumps(dumps) => dumps.advice(),
        }
    }

    /// Lengths of measured texts, the shortest first, and how many there are of each.
    pub(super) fn lengths(&self) -> Vec<(usize, usize)> {
        match self {
            Evidence::Run(run) => run.lengths.iter().map(|at| (at.length, at.texts.len())).collect(),
            Evidence::Dumps(dumps) => vec![(dumps.shape.context, dumps.measured().len())],
        }
    }

    /// The key that decides the heads.
    pub(super) fn model_key(&self) -> &'static str {
        match self {
            Evidence::Run(_) => "model",
            Evidence::Dumps(_) => "dumps",
        }
    }

    /// The key that decides the lengths.
    pub(super) fn length_key(&self) -> &'static str {
        match self {
            Evidence::Run(_) => "lengths",
            Evidence::Dumps(_) => "dumps",
        }
    }

    /// What has the lengths, if their key does not say it.
    pub(super) fn whose_length(&self) -> Option<String> {
        match self {
            Evidence::Run(_) => None,
            Evidence::Dumps(dumps) => Some(dumps.name()),
        }
    }

    /// A measured text in words.
    pub(super) fn label(&self, length: usize, text: usize) -> String {
        match self {
            Evidence::Run(_) => format!("text {text} of {length} tokens"),
            Evidence::Dumps(dumps) => {
                let file = dumps.measured().nth(text).and_then(|number| dumps.files.get(number));
                format!("{} of {length} tokens", file.map_or("dump", |file| &file.name))
            }
        }
    }

    /// Examines all heads on a measured text of a length, both by their numbers; nothing if the monitor asked to stop.
    pub(super) fn examine(
        &self,
        length: usize,
        text: usize,
        questions: &Questions,
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<Findings>>, Failure> {
        let missing = || format!("there is no text {text} of length {length}");
        match self {
            Evidence::Run(run) => {
                let at = run.lengths.get(length).ok_or_else(missing)?;
                let tokens = at.texts.get(text).ok_or_else(missing)?;
                let Some(calibration) = at.calibrated.get(&run.subject, monitor)? else { return Ok(None) };
                Ok(examine(&run.subject.model, tokens, questions, &calibration, monitor)?)
            }
            Evidence::Dumps(dumps) => {
                let number = dumps.measured().nth(text).ok_or_else(missing)?;
                dumps.examine(number, questions, monitor)
            }
        }
    }

    /// What stands at these positions of the first measured text of a length, if it is known.
    pub(super) fn words(&self, length: usize, positions: RangeInclusive<usize>) -> Option<String> {
        let Evidence::Run(run) = self else { return None };
        let text = run.lengths.iter().find(|at| at.length == length)?.texts.first()?;
        Some(run.subject.vocabulary.decode(text.get(positions)?))
    }

    /// The token at a position of the first measured text of a length, if it is known.
    pub(super) fn token(&self, length: usize, position: usize) -> Option<String> {
        let Evidence::Run(run) = self else { return None };
        let text = run.lengths.iter().find(|at| at.length == length)?.texts.first()?;
        Some(run.subject.vocabulary.token(*text.get(position)?))
    }
}

impl Run {
    fn find(ask: &Ask, section: &mut Section, subject: Arc<Subject>) -> Result<Self, Mistake> {
        let context = subject.model.shape().context;
        let text = ChosenText::read(section, "text", "text_sha256", &ask.text, ask.text_part)?;
        let lengths = ask.lengths.clone().unwrap_or_else(|| vec![256.min(context as u64)]);
        section.fill("lengths", &Written::list(lengths.iter().map(|length| Written::number(*length as f64))));
        let (calibrating, count) = (ask.calibration as usize, ask.texts as usize);
        for length in &lengths {
            check_context(section, "lengths", *length as usize, context)?;
        }
        let template = subject.vocabulary.template();
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        let needed = template.room(longest).saturating_mul(calibrating + count);
        let tokens = section.accept("text", subject.tokens(&text, needed))?;
        let mut at_lengths: Vec<AtLength> = Vec::new();
        for length in lengths.into_iter().map(|length| length as usize) {
            let cut = segments(&tokens, template, length, calibrating + count);
            let mut cut = section.accept("text", cut)?;
            let texts = cut.split_off(calibrating);
            at_lengths.push(AtLength { length, texts, calibrated: Calibrated::by(cut) });
        }
        at_lengths.sort_by_key(|at| at.length);
        Ok(Run { subject, text, calibrating, lengths: at_lengths })
    }
}
