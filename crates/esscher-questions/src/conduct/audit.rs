//! Audits a checkpoint: its heads, then the model with the heads replaced that may be, and one report on both; or the heads that
//! dumps hold.

use super::{Error, publish};
use crate::audit_heads::compute::HeadsPlan;
use crate::audit_model::compute::ModelPlan;
use crate::{Planned, Settings, Sources, run_document};
use esscher_audit::candidate::Candidate;
use esscher_audit::controls::controlled;
use esscher_audit::dossier::Standard;
use esscher_lab::{Failure, Outcome, RunFolder, Table, write_file};
use esscher_report::Document;
use prepared::Prepared;
use std::path::PathBuf;

mod assignments;
mod files;
mod found;
mod prepared;

pub use esscher_audit::assignment::Running;
pub use esscher_audit::dossier::Criterion;
pub use esscher_audit::role::Role;
pub use found::{AssignmentFound, Audit, AuditFound, Counts, Estimated};

/// What is to be audited.
#[derive(Debug, Clone)]
pub struct AuditRequest {
    /// A named model or the path of a checkpoint; or the paths of dumps of one model, one per text, whose heads alone are audited.
    pub models: Vec<String>,
    /// The text that calibrates and that heads are measured on, by name or path; one that suits the model if there is none.
    pub text: Option<String>,
    /// The text that the model is tested on; if only `text` is given, its last third, and the first two thirds calibrate.
    pub test: Option<String>,
    /// Tokens of a text; 256 or the model's context for none. The model is tested at the longest.
    pub lengths: Vec<u64>,
    /// Relative error of a head that is accepted.
    pub tolerance: f64,
    /// By which error.
    pub criterion: Criterion,
    /// What may replace a head; the usual ones for none. `dropped`, which costs nothing, is always among them.
    pub candidates: Vec<String>,
    /// Measured segments of each text; six of the first and eight of the second, or as many as there are, for none.
    pub texts: Option<u64>,
    /// Leave the model out.
    pub heads_only: bool,
    /// The folder that gets the audit's.
    pub out: PathBuf,
    /// Seed and instruction set.
    pub settings: Settings,
}

impl AuditRequest {
    /// An audit of this model with everything else as usual, below the folder `runs`.
    pub fn of(model: &str) -> Self {
        AuditRequest {
            models: vec![model.to_string()],
            text: None,
            test: None,
            lengths: Vec::new(),
            tolerance: 0.05,
            criterion: Criterion::Output,
            candidates: Vec::new(),
            texts: None,
            heads_only: false,
            out: PathBuf::from("runs"),
            settings: Settings::default(),
        }
    }
}

/// Audits a model: `run` computes a run in its folder under a label for progress.
///
/// # Errors
/// A model or a text that cannot be had, a request that does not fit the model, what `run` says, what the system refuses.
pub fn audit<E: From<Error>>(
    request: &AuditRequest,
    mut run: impl FnMut(&str, &Planned, &RunFolder) -> Result<Outcome, E>,
    sources: &Sources,
) -> Result<Audit, E> {
    let prepared = Prepared::of(request, sources)?;
    let root = request.out.join(&prepared.name);
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
        let planned = tested.model(request, &assignments.map_err(Error::from)?, sources)?;
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
    for (path, content) in [
        (&found.report, page),
        (&found.verdicts, verdicts),
        (&found.full_attention_heads, table),
        (&root.join("config.json"), files::configuration(&plan.questions.frame)),
    ] {
        write_file(path, content.as_bytes()).map_err(Error::from)?;
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
        summary.push_str(&format!(" **Note:** {advice}."));
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
        let title = document.title;
        sections.extend(document.sections);
        provenance
            .extend(document.provenance.into_iter().map(|(name, value)| (format!("{title}: {name}"), value)));
    }
    Document { title: format!("The audit of {}", found.model), summary, sections, provenance }
}
