//! Describes a finished run, as a claim if its specification is that of a claim; and the reproduction of all claims.

use crate::{Claim, Judgement, Scale, claims};
use esscher_lab::{Experiment, Provenance, Table};
use esscher_questions::conduct::Error;
use esscher_questions::{Planned, program, provenance_lines, run_document};
use esscher_report::{Block, Cell, DataTable, Document, Section, Verdict};
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

/// A claim with what was found and where the numbers come from.
pub(crate) struct Judged<'a> {
    claim: &'static Claim,
    planned: &'a Planned,
    judgement: Judgement,
    provenance: Provenance,
}

/// Describes a result: as a claim if the specification is that of a claim.
///
/// # Errors
/// A table that is not a result of this experiment.
pub fn describe(planned: &Planned, result: &Table, provenance: &Provenance) -> Result<Described, Error> {
    let Some(claim) = claim_of(planned) else {
        let document = run_document(planned, result, provenance).map_err(esscher_lab::Error::Result)?;
        return Ok(Described { document, finding: None });
    };
    let judged = Judged::of(claim, planned, result, provenance.clone())?;
    Ok(Described { document: judged.document(), finding: Some(judged.finding(None)) })
}

/// The claim that has this specification, at either scale and with any seed.
fn claim_of(planned: &Planned) -> Option<&'static Claim> {
    claims().iter().find(|claim| {
        [Scale::Quick, Scale::Full].into_iter().any(|scale| {
            let ours = claim.experiment(scale, planned.settings());
            ours.is_ok_and(|ours| ours.specification() == planned.specification())
        })
    })
}

impl<'a> Judged<'a> {
    /// Judges the result of a claim's experiment.
    pub(crate) fn of(
        claim: &'static Claim,
        planned: &'a Planned,
        result: &Table,
        provenance: Provenance,
    ) -> Result<Self, Error> {
        let judgement = claim.judge(result).map_err(esscher_lab::Error::Result)?;
        Ok(Judged { claim, planned, judgement, provenance })
    }

    pub(crate) fn finding(&self, folder: Option<PathBuf>) -> Finding {
        let (verdict, reason) = (self.judgement.verdict, self.judgement.reason.clone());
        Finding { claim: self.claim, verdict, reason, folder }
    }

    /// The report of this claim alone.
    pub(crate) fn document(&self) -> Document {
        Document {
            title: self.claim.title.to_string(),
            summary: "One claim of Boursier & Boyer, Softmax as Linear Attention in the Large-Prompt Regime (arXiv \
                      2512.11784), measured."
                .to_string(),
            sections: vec![self.claim.section(&self.judgement)],
            provenance: provenance_lines(self.planned, &self.provenance),
        }
    }

    /// Its line in the table of all claims.
    fn cells(&self) -> Vec<Cell> {
        let verdict = match self.judgement.verdict {
            Verdict::Fails => "**fails**",
            other => verdict_word(other),
        };
        [self.claim.title, verdict, &self.judgement.reason].map(|text| Cell::Text(text.to_string())).to_vec()
    }

    /// Where its numbers come from, in one line.
    fn source(&self) -> (String, String) {
        let Provenance { sessions, units, instruction_set, result_sha256, .. } = &self.provenance;
        let (by, when) = sessions
            .last()
            .map_or_else(Default::default, |last| (program(&last.origin), last.started.clone()));
        let digest: String = result_sha256.iter().flat_map(|digest| digest.chars().take(16)).collect();
        let seed = self.planned.seed();
        let line =
            format!("{by}, {when}, {units} units, seed {seed}, {instruction_set}, result SHA-256 {digest}…");
        (self.claim.name.to_string(), line)
    }
}

/// A verdict in a word or three.
pub fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::NotMeasurable => "not measurable here",
    }
}

/// Which claims a report leaves out, and why.
pub fn left_out_sentence(left_out: &[&Claim]) -> String {
    let names: Vec<&str> = left_out.iter().map(|claim| claim.name).collect();
    format!(
        "Left out, because their folders hold runs of another specification (another seed or question): {}. To \
         measure them, move those folders away.",
        names.join(", ")
    )
}

/// The report of the whole reproduction.
pub(crate) fn reproduction_document(judged: &[Judged<'_>], left_out: &[&Claim]) -> Document {
    let count = |verdict| judged.iter().filter(|one| one.judgement.verdict == verdict).count();
    let (holds, fails, open) = (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::NotMeasurable));
    let mut blocks = vec![Block::Table(DataTable {
        id: "claims".to_string(),
        caption: "Every claim, its verdict and the numbers that decide it.".to_string(),
        columns: ["claim", "verdict", "found"].map(str::to_string).to_vec(),
        rows: judged.iter().map(Judged::cells).collect(),
    })];
    if !left_out.is_empty() {
        blocks.push(Block::Prose(left_out_sentence(left_out)));
    }
    let overview =
        Section { id: "overview".to_string(), title: "At a glance".to_string(), verdict: None, blocks };
    let sections = judged.iter().map(|one| one.claim.section(&one.judgement));
    Document {
        title: "Softmax as linear attention in the large-prompt regime, reproduced".to_string(),
        summary: format!(
            "The claims of Boursier & Boyer (arXiv 2512.11784), measured: **{holds} hold, {fails} fail, {open} not \
             measurable here**. For Gaussian tokens finite prompts are one-dimensional integrals, so their numbers are \
             computed, not simulated, at any length up to $L = 10^{{12}}$; other laws are simulated. Each claim says what \
             would refute it, and each number how it was obtained."
        ),
        sections: [overview].into_iter().chain(sections).collect(),
        provenance: judged.iter().map(Judged::source).collect(),
    }
}
