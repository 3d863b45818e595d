//! Describes a finished run: as a claim if its specification is that of a claim.

use crate::document::{Judged, claim_document};
use crate::{Claim, Scale, claims};
use esscher_lab::{Experiment, Provenance, Table};
use esscher_questions::conduct::Error;
use esscher_questions::{Planned, run_document};
use esscher_report::{Document, Verdict};
use std::path::PathBuf;

/// A run's document, and what it says of a claim if it measures one.
pub struct Described {
    /// The document.
    pub document: Document,
    /// The claim and how it fared.
    pub finding: Option<Finding>,
}

/// How a claim fared in a run.
#[derive(Clone)]
pub struct Finding {
    /// The claim.
    pub claim: &'static Claim,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why, with numbers.
    pub reason: String,
    /// The run folder, where there is one.
    pub folder: Option<PathBuf>,
}

/// Describes a result: as a claim if the specification is that of a claim.
///
/// # Errors
/// A table that is not a result of this experiment.
pub fn describe(planned: &Planned, result: &Table, provenance: &Provenance) -> Result<Described, Error> {
    let described = match claim_of(planned) {
        Some(claim) => (claim.judge)(result).map(|judgement| {
            let (verdict, reason) = (judgement.verdict, judgement.reason.clone());
            let finding = Finding { claim, verdict, reason, folder: None };
            let judged = Judged { claim, planned, judgement, provenance: provenance.clone() };
            Described { document: claim_document(&judged), finding: Some(finding) }
        }),
        None => {
            run_document(planned, result, provenance).map(|document| Described { document, finding: None })
        }
    };
    described.map_err(|error| Error::Lab(esscher_lab::Error::Result(error)))
}

/// The claim that has this specification, at either scale and with any seed.
fn claim_of(planned: &Planned) -> Option<&'static Claim> {
    let settings = planned.settings();
    claims().iter().find(|claim| {
        [Scale::Quick, Scale::Full].into_iter().any(|scale| {
            let ours = claim.experiment(scale, settings);
            ours.is_ok_and(|ours| ours.specification() == planned.specification())
        })
    })
}
