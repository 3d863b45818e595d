//! Audits a checkpoint: its heads, then the model with the heads replaced that may be, and one report on both; or the heads that
//! dumps hold.

use super::{Error, publish};
use crate::audit::counts::{are, texts};
use crate::audit::{GLOSSARY, LENGTHS_OF_AUDITS, MOST_DUMPS};
use crate::audit_heads::compute::HeadsPlan;
use crate::audit_heads::{TOLERANCES, VERDICTS as HEADS};
use crate::audit_model::compute::ModelPlan;
use crate::audit_model::headline;
use crate::audit_model::{REPLACED, WRITTEN};
use crate::{Planned, Settings, Sources, run_document};
use esscher_audit::candidate::Candidate;
use esscher_audit::controls::controlled;
use esscher_audit::dossier::Standard;
use esscher_lab::specification::{
    self, Bounds, Keys, Kind, Mistake, Section, Written, integer, integers, one_of, real, truth,
};
use esscher_lab::{Failure, Outcome, RunFolder, RunsFolder, Table, keys};
use esscher_report::{Block, Document, literal, plain};
use found::{FULL_ATTENTION_HEADS, REPORT, VERDICTS};
use prepared::Prepared;
use std::path::Path;

mod assignments;
mod files;
mod found;
mod prepared;
mod words;

pub use esscher_audit::assignment::Running;
pub use esscher_audit::dossier::Criterion;
pub use esscher_audit::role::Role;
pub use found::{AssignmentFound, Audit, AuditFound, Counts, Estimated};

keys! {
    /// What is to be audited. Options, keyword arguments and their checks are made from this list.
    #[derive(Debug, Clone)]
    pub struct AuditRequest {
        /// A named model or a checkpoint's file; or dumps of one model, a file for each text, whose heads alone are audited
        models: Vec<String> = specification::texts(1..=MOST_DUMPS),
        /// Text that calibrates and that heads are measured on: stories, bible, jargon, or a file; without it, what suits the model
        text: Option<String> = specification::text().optional(),
        /// Another text to test the model on; without it the last third of the first if that is given, which then keeps two thirds
        test: Option<String> = specification::text().optional(),
        /// Tokens of a segment, at least 128 (encoders: 64); several show how verdicts change, the longest decides; without it 256
        lengths: Vec<u64> = integers(LENGTHS_OF_AUDITS, 1..=16).or([]),
        /// The relative error of a head that is accepted
        tolerance: f64 = real(Bounds::Between(TOLERANCES.0, TOLERANCES.1)).or(0.05),
        /// Which error: of the head's output, or of what it adds to the residual stream
        criterion: Criterion = one_of(&Criterion::ALL.map(|one| (one.name(), one))).or(Criterion::Output.name()),
        /// Names of what may replace a head; `dropped` is always among them; without it ten usual ones
        candidates: Vec<String> = specification::texts(1..=64).or([]),
        /// Measured segments of each text, at least 3; without it 6 and 8, or as many as a short text has
        texts: Option<u64> = integer(3..=256).optional(),
        /// Leave out the model with replaced heads
        heads_only: bool = truth().or(false),
        /// The folder in which the audit makes its own
        out: String = specification::text().or("runs"),
    }
}

impl AuditRequest {
    /// The request that a door has written down.
    ///
    /// # Errors
    /// A key that is none, or a value that does not fit.
    pub fn written(written: Written) -> Result<Self, Mistake> {
        let read = |section: &mut Section| {
            let request = Self::read(section)?;
            match request.models.iter().any(String::is_empty) {
                true => Err(section.mistake("models", "expected a name or a path, found an empty text")),
                false => Ok(request),
            }
        };
        Ok(specification::read_written(written, read)?.0)
    }
}

/// Audits a model: `run` computes a run in its folder under a label for progress.
///
/// # Errors
/// A model or a text that cannot be had, a request that does not fit the model, what `run` says, what the system refuses.
pub fn audit<E: From<Error>>(
    request: &AuditRequest,
    settings: Settings,
    mut run: impl FnMut(&str, &Planned, &RunFolder) -> Result<Outcome, E>,
    sources: &Sources,
) -> Result<Audit, E> {
    let prepared = Prepared::of(request, settings, sources)?;
    let root = Path::new(&request.out).join(&prepared.name);
    let about_both = RunsFolder::open(&root, &["heads", "model"]).map_err(Error::from)?;
    let mut conducted = |label: &str, planned: &Planned| -> Result<Option<(Table, Document)>, E> {
        let folder = RunFolder::open(&root.join(label), planned).map_err(Error::from)?;
        let Outcome::Finished { result, provenance, .. } = run(label, planned, &folder)? else {
            return Ok(None);
        };
        let document = run_document(planned, &result, &provenance).map_err(failed)?;
        publish(&folder, &document)?;
        Ok(Some((result, document)))
    };
    let Some((result, document)) = conducted("heads", &prepared.heads)? else {
        return Ok(Audit { folder: root, found: None });
    };
    let plan: &HeadsPlan = prepared.heads.plan_of().map_err(failed)?;
    let dossiers = plan.dossiers(&result.read().map_err(failed)?).map_err(failed)?;
    let (length, dossier) = dossiers.last().ok_or_else(|| failed("no length was measured"))?;
    let mut found = AuditFound::of_heads(plan, *length, dossier, &root);
    let (mut documents, mut test, mut outcome) = (vec![document], None, None);
    if let Some(tested) = &prepared.tested {
        let frame = &plan.questions.frame;
        let assignments = controlled(dossier, &plan.standard, frame, *length, plan.questions.seed);
        let planned = tested.model(settings, &assignments.map_err(Error::from)?, sources)?;
        let Some((result, document)) = conducted("model", &planned)? else {
            return Ok(Audit { folder: root, found: None });
        };
        let plan: &ModelPlan = planned.plan_of().map_err(failed)?;
        let losses = plan.losses(&result.read().map_err(failed)?).map_err(failed)?;
        found.assignments = assignments::found(plan, &losses);
        found.headline = plain(&(plan.lead(&losses) + &plan.also(&losses)));
        // The page tells both where it tells what was found.
        found.advise(plan.caution().into_iter().chain(assignments::doubt(plan, &losses)));
        outcome = plan.groups().map(|groups| plan.outcome(&groups, &losses));
        test = Some(plan.testing.clone());
        documents.insert(0, document);
    }
    let verdicts = files::verdicts(plan, *length, dossier, test.as_ref(), found.advice.as_deref());
    // Whoever reads that table drops the middle of the other heads.
    let dropped = Standard { only: Some(Candidate::DROPPED), ..plan.standard };
    let table = files::full_attention_heads(&dossier.decide_groups(&dropped), request.tolerance);
    let page = esscher_report::html(&joined(&found, outcome, documents));
    for (name, content) in [
        (REPORT, page),
        (VERDICTS, verdicts),
        (FULL_ATTENTION_HEADS, table),
        ("config.json", files::configuration(&plan.questions.frame)),
    ] {
        about_both.write(name, content.as_bytes()).map_err(Error::from)?;
    }
    Ok(Audit { folder: root, found: Some(found) })
}

fn failed(failure: impl Into<Failure>) -> Error {
    Error::Lab(esscher_lab::Error::Result(failure.into()))
}

/// One document on both runs: what can be replaced and what it costs, which heads, what to do with it; then how it was found. `outcome`
/// is how accepted key-value heads fared, if the model was tested with them.
fn joined(found: &AuditFound, outcome: Option<headline::Outcome>, documents: Vec<Document>) -> Document {
    let mut summary = format!(
        "Which attention heads of {} read their prompt as a whole, so that something small may stand for it? Each of {} query heads was \
         measured on {} of {} tokens;",
        literal(&found.model),
        found.heads.all(),
        texts(found.texts),
        found.length,
    );
    summary.push_str(match found.assignments.is_empty() {
        true => " what replaced heads do to the model’s predictions was not measured.",
        false => {
            " those whose output something small reproduces within the tolerance were replaced, and the model was tested on text that \
             calibrated nothing, beside controls."
        }
    });
    if let Some(note) = &found.note {
        summary.push_str(&format!(" **Note:** {}.", literal(note)));
    }
    let (mut sections, mut provenance) = (Vec::new(), Vec::new());
    for document in documents {
        let title = plain(&document.title);
        sections.extend(document.sections);
        provenance
            .extend(document.provenance.into_iter().map(|(name, value)| (format!("{title}: {name}"), value)));
    }
    // The answers, in the order of a reader's questions; the method follows.
    let answers = [REPLACED, WRITTEN, HEADS];
    let place = |section: &esscher_report::Section| {
        answers.iter().position(|id| *id == section.id).unwrap_or(answers.len())
    };
    sections.sort_by_key(place);
    let method = sections.partition_point(|section| place(section) < answers.len());
    sections.insert(method, use_of_it(found, outcome));
    // Both runs explain the same words.
    let mut told = false;
    let mut is_new = |block: &Block| {
        let is_glossary = matches!(block, Block::Folded { id, .. } if id == GLOSSARY);
        let again = is_glossary && told;
        told |= is_glossary;
        !again
    };
    for section in &mut sections {
        section.blocks.retain(&mut is_new);
        for block in &mut section.blocks {
            if let Block::Folded { blocks, .. } = block {
                blocks.retain(&mut is_new);
            }
        }
    }
    Document { title: format!("The audit of {}", literal(&found.model)), summary, sections, provenance }
}

/// What a reader can do with the verdicts.
fn use_of_it(found: &AuditFound, outcome: Option<headline::Outcome>) -> esscher_report::Section {
    use headline::Outcome::{Contradicted, NoChoice, NotFinite, NotToldApart, ToldApart};
    let (accepted, all) = (found.key_value_heads.accepted, found.key_value_heads.all());
    let but =
        |why: &str| format!("**{accepted} of {all} key-value heads {} accepted**, but {why}", are(accepted));
    let lead = match outcome {
        _ if accepted == 0 => {
            "No key-value head is accepted, so that no cache can be freed; single query heads are of use for study.".to_string()
        }
        Some(ToldApart) => format!(
            "**Replace what was accepted, {accepted} of {all} key-value heads, and leave the others exact**, for texts like these and up \
             to {} tokens. Test on what you serve before you rely on it.",
            found.length
        ),
        Some(NotToldApart) => but(
            "the test of the model does not support a replacement: its texts do not tell accepted heads from random ones. Test on longer \
             texts, or on texts that the model must remember, before you replace any.",
        ),
        Some(Contradicted) => but("the test of the model speaks against a replacement: as many random ones cost less."),
        Some(NotFinite) => but("the test of the model does not support a replacement: a loss is not finite on some text."),
        Some(NoChoice) => but(
            "there are no others to compare them with, so that the test of the model does not tell whether the choice matters. Judge by \
             the loss above.",
        ),
        None => but("the model was not tested with a replacement. Test that before you rely on the verdicts."),
    };
    let ways = [
        ("every verdict", format!("`{VERDICTS}` beside this page: verdict, cheapest candidate, errors and portrait of each head")),
        (
            "in Python",
            "`from esscher import audit`; `audit.audit(…)` gives the same as tables (`heads`, `key_value_heads`, `assignments`); \
             `audit.StreamingCache(candidate, dimension, readers)` is the cache that replaces a key-value head, token by token"
                .to_string(),
        ),
        (
            "with DuoAttention",
            format!(
                "`{FULL_ATTENTION_HEADS}` with `config.json`: a key-value head keeps full attention where the number is at least 0.5; it \
                 is about dropping the middle and about nothing else"
            ),
        ),
        ("in scripts", "`esscher audit … --json` prints the numbers of this page".to_string()),
        (
            "the replaced model again",
            "`model/spec.toml`, where the model was tested, holds the candidate of every head, row by row under `assignments`".to_string(),
        ),
    ];
    let ways = ways.map(|(name, way)| (name.to_string(), way)).to_vec();
    let caution = "A verdict is about its length, its kind of text and the median query: a head that needs one token for one query in a \
                   hundred passes. Each head was judged with all others exact; only the loss of the replaced model says what many do \
                   together.";
    let blocks = vec![Block::Lead(lead), Block::Facts(ways), Block::Prose(caution.to_string())];
    esscher_report::Section::new("use", "What to do with it", blocks)
}
