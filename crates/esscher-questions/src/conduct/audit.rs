//! Audits a checkpoint: its heads, then the model with the heads replaced that may be, and one report on both; or the heads that
//! dumps hold.

use super::{Error, publish};
use crate::audit::{LENGTHS_OF_AUDITS, MOST_DUMPS};
use crate::audit_heads::TOLERANCES;
use crate::audit_heads::compute::HeadsPlan;
use crate::audit_model::compute::ModelPlan;
use crate::{Planned, Settings, Sources, run_document};
use esscher_audit::candidate::Candidate;
use esscher_audit::controls::controlled;
use esscher_audit::dossier::Standard;
use esscher_lab::specification::{
    self, Bounds, Keys, Kind, Mistake, Section, Written, integer, integers, one_of, real, truth,
};
use esscher_lab::{Failure, Outcome, RunFolder, RunsFolder, Table, keys};
use esscher_report::{Document, literal, plain};
use found::{FULL_ATTENTION_HEADS, REPORT, VERDICTS};
use prepared::Prepared;
use std::path::Path;

mod assignments;
mod files;
mod found;
mod prepared;

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
    let (mut documents, mut test) = (vec![document], None);
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
        let advice: Vec<String> =
            [found.advice, plan.caution(), assignments::doubt(plan, &losses)].into_iter().flatten().collect();
        found.advice = (!advice.is_empty()).then(|| advice.join(". Also, "));
        test = Some(plan.testing.clone());
        documents.insert(0, document);
    }
    let verdicts = files::verdicts(plan, *length, dossier, test.as_ref(), found.advice.as_deref());
    // Whoever reads that table drops the middle of the other heads.
    let dropped = Standard { only: Some(Candidate::DROPPED), ..plan.standard };
    let table = files::full_attention_heads(&dossier.decide_groups(&dropped), request.tolerance);
    let page = esscher_report::html(&joined(&found, documents));
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

/// One document on both runs: what can be saved, then why.
fn joined(found: &AuditFound, documents: Vec<Document>) -> Document {
    let (heads, groups) = (found.heads, found.key_value_heads);
    let mut summary = format!(
        "**{} of {} query heads and {} of {} key-value heads may be replaced** within a relative error of {} at {} tokens, {} \
         ({} and {} are uncertain).",
        heads.accepted,
        heads.all(),
        groups.accepted,
        groups.all(),
        found.tolerance,
        found.length,
        found.running,
        heads.uncertain,
        groups.uncertain
    );
    if let Some(advice) = &found.advice {
        summary.push_str(&format!(" **Note:** {}.", literal(advice)));
    }
    if found.assignments.is_empty() {
        summary.push_str(" What that does to the model's predictions was not measured.");
    } else {
        summary.push_str(
            " The first table says what that saves and what it does to predictions on text that calibrated nothing, beside as many \
             random heads, all heads, and equal bytes of what is used today.",
        );
    }
    let (mut sections, mut provenance) = (Vec::new(), Vec::new());
    for document in documents {
        let title = plain(&document.title);
        sections.extend(document.sections);
        provenance
            .extend(document.provenance.into_iter().map(|(name, value)| (format!("{title}: {name}"), value)));
    }
    Document { title: format!("The audit of {}", literal(&found.model)), summary, sections, provenance }
}
