//! Documents of claims and of the reproduction, from results and their provenance alone.

use crate::{Claim, Judgement};
use esscher_lab::Provenance;
use esscher_questions::{Planned, program, provenance_lines};
use esscher_report::{Block, Cell, DataTable, Document, Section, Verdict};

/// A claim with what was found.
pub struct Judged<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Its experiment.
    pub planned: &'a Planned,
    /// What was found.
    pub judgement: Judgement,
    /// Where the numbers come from.
    pub provenance: Provenance,
}

/// The report of one claim.
pub fn claim_document(judged: &Judged<'_>) -> Document {
    Document {
        title: judged.claim.title.to_string(),
        summary:
            "One claim of Boursier & Boyer, Softmax as Linear Attention in the Large-Prompt Regime (arXiv \
                  2512.11784), measured."
                .to_string(),
        sections: vec![judged.claim.section(&judged.judgement)],
        provenance: provenance_lines(judged.planned, &judged.provenance),
    }
}

/// The report of the whole reproduction.
pub fn reproduction_document(judged: &[Judged<'_>]) -> Document {
    let count = |verdict| judged.iter().filter(|one| one.judgement.verdict == verdict).count();
    let (holds, fails, open) = (count(Verdict::Holds), count(Verdict::Fails), count(Verdict::NotMeasurable));
    let rows = judged
        .iter()
        .map(|one| {
            let verdict = match one.judgement.verdict {
                Verdict::Holds => "holds",
                Verdict::Fails => "**fails**",
                Verdict::NotMeasurable => "not measurable here",
            };
            [one.claim.title, verdict, &one.judgement.reason]
                .map(|text| Cell::Text(text.to_string()))
                .to_vec()
        })
        .collect();
    let overview = Section {
        id: "overview".to_string(),
        title: "At a glance".to_string(),
        verdict: None,
        blocks: vec![Block::Table(DataTable {
            id: "claims".to_string(),
            caption: "Every claim, its verdict and the numbers that decide it.".to_string(),
            columns: ["claim", "verdict", "found"].map(str::to_string).to_vec(),
            rows,
        })],
    };
    let mut sections = vec![overview];
    sections.extend(judged.iter().map(|one| one.claim.section(&one.judgement)));
    Document {
        title: "Softmax as linear attention in the large-prompt regime, reproduced".to_string(),
        summary: format!(
            "The claims of Boursier & Boyer (arXiv 2512.11784), measured: **{holds} hold, {fails} fail, {open} not \
             measurable here**. For Gaussian tokens finite prompts are one-dimensional integrals, so their numbers are \
             computed, not simulated, at any length up to $L = 10^{{12}}$; other laws are simulated. Each claim says what \
             would refute it, and each number how it was obtained."
        ),
        sections,
        provenance: judged
            .iter()
            .map(|one| {
                let provenance = &one.provenance;
                let when = provenance.sessions.last().map_or("", |session| &session.started);
                let by = provenance.sessions.last().map_or(String::new(), |session| program(&session.origin));
                let digest: String =
                    provenance.result_sha256.iter().flat_map(|digest| digest.chars().take(16)).collect();
                let line = format!(
                    "{by}, {when}, {} units, seed {}, {}, result SHA-256 {digest}…",
                    provenance.units,
                    one.planned.seed(),
                    provenance.instruction_set
                );
                (one.claim.name.to_string(), line)
            })
            .collect(),
    }
}
