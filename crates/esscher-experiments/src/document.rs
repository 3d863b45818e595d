//! Documents of runs and of the reproduction, from results and their provenance alone.

use crate::claims::{Claim, Judgement};
use crate::planned::Planned;
use esscher_lab::{Failure, Provenance, Table};
use esscher_report::{Block, Cell, DataTable, Document, Section, Verdict};

/// The report of one run.
///
/// # Errors
/// A result of another experiment.
pub fn run_document(planned: &Planned, result: &Table, provenance: &Provenance) -> Result<Document, Failure> {
    Ok(Document {
        title: planned.title().to_string(),
        summary: planned.kind().summary.to_string(),
        sections: planned.sections(result)?,
        provenance: provenance_lines(planned, provenance),
    })
}

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
             exact at any length, up to $L = 10^{{12}}$; everything else is simulated with a standard error. Each \
             claim says what would refute it."
        ),
        sections,
        provenance: judged.first().map_or(Vec::new(), |one| {
            let mut lines = provenance_lines(one.planned, &one.provenance);
            lines.retain(|(name, _)| !matches!(name.as_str(), "specification" | "units" | "seed"));
            lines
        }),
    }
}

fn provenance_lines(planned: &Planned, provenance: &Provenance) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push((name.to_string(), value));
    if let Some(session) = provenance.sessions.last() {
        let origin = &session.origin;
        let commit = origin.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
        line("program", format!("{} {}{commit}", origin.program, origin.version));
    }
    line("instruction set", provenance.instruction_set.clone());
    line("seed", planned.seed().to_string());
    line("units", provenance.units.to_string());
    line("specification", format!("SHA-256 {}", provenance.specification_sha256));
    if let Some(digest) = &provenance.result_sha256 {
        line("result", format!("SHA-256 {digest}"));
    }
    for session in &provenance.sessions {
        let ended = session.ended.as_deref().unwrap_or("interrupted");
        let text = format!(
            "{} to {ended}, {} units on {} ({}, {} threads)",
            session.started, session.units, session.host, session.system, session.threads
        );
        line("session", text);
    }
    line("kind", planned.kind().name.to_string());
    lines
}
