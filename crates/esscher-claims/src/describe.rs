//! Describes a finished run, as a claim if its specification is that of a claim; and the reproduction of all claims.

use crate::large_prompt_regime::READING_ORDER;
use crate::letters::letters;
use crate::{Claim, Judgement, Scale, claims};
use esscher_lab::{Experiment, Provenance, Table};
use esscher_questions::conduct::Error;
use esscher_questions::{Planned, program, provenance_lines, run_document};
use esscher_report::{Block, Card, Document, Section, Verdict};
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
    /// The number that decides, as a person writes it, prose.
    pub number: String,
    /// What this number is, in a few words, prose.
    pub meaning: String,
    /// The result in one plain sentence, prose.
    pub lead: String,
    /// Why, with numbers.
    pub reason: String,
    /// Of a claim without a verdict in its quick form: what would decide it, and how long that takes, prose.
    pub decided_by: Option<&'static str>,
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
        let Judgement { verdict, number, meaning, lead, reason, .. } = self.judgement.clone();
        let decided_by = self.decided_by();
        Finding { claim: self.claim, verdict, number, meaning, lead, reason, decided_by, folder }
    }

    /// What would decide it where it is open. Beyond the full form nothing is known that does.
    fn decided_by(&self) -> Option<&'static str> {
        let full = self.claim.experiment(Scale::Full, self.planned.settings());
        let is_full = full.is_ok_and(|full| full.specification() == self.planned.specification());
        (self.judgement.verdict == Verdict::NotMeasurable && !is_full).then_some(self.claim.decided_by)
    }

    /// Its section in a report.
    fn section(&self) -> Section {
        self.claim.section(&self.judgement, self.decided_by())
    }

    /// The report of this claim alone.
    pub(crate) fn document(&self) -> Document {
        let mut section = self.section();
        section.blocks.push(letters());
        Document {
            title: self.claim.title.to_string(),
            summary:
                "One claim about Softmax as Linear Attention in the Large-Prompt Regime (Boursier & Boyer, \
                      [arXiv 2512.11784](https://arxiv.org/abs/2512.11784)), measured."
                    .to_string(),
            sections: vec![section],
            provenance: provenance_lines(self.planned, &self.provenance),
        }
    }

    /// Its card among those of all claims.
    fn card(&self) -> Card {
        let Judgement { verdict, number, meaning, picture, .. } = self.judgement.clone();
        let (section, title) = (self.claim.name.to_string(), self.claim.title.to_string());
        Card { section, title, verdict: Some(verdict), number, meaning, picture }
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

/// The report of the whole reproduction, the claims in the order in which they are best read.
pub(crate) fn reproduction_document(judged: &[Judged<'_>], left_out: &[&Claim]) -> Document {
    let place = |one: &&Judged<'_>| READING_ORDER.iter().position(|name| *name == one.claim.name);
    let mut read: Vec<&Judged<'_>> = judged.iter().collect();
    read.sort_by_key(place);
    let mut blocks = vec![Block::Cards(read.iter().map(|one| one.card()).collect())];
    let open = read.iter().filter(|one| one.judgement.verdict == Verdict::NotMeasurable);
    blocks.extend(open.map(|one| {
        let Claim { name, title, .. } = one.claim;
        let by = one.decided_by().map(|by| format!(" What would decide it: {by}.")).unwrap_or_default();
        Block::Prose(format!("**[{title}](#{name})** is not decided here.{by}"))
    }));
    if !left_out.is_empty() {
        blocks.push(Block::Prose(left_out_sentence(left_out)));
    }
    blocks.push(letters());
    let overview =
        Section { id: "overview".to_string(), title: "At a glance".to_string(), verdict: None, blocks };
    let sections = read.iter().map(|one| one.section());
    Document {
        title: "Softmax as linear attention in the large-prompt regime, reproduced".to_string(),
        summary: summary(judged),
        sections: [overview].into_iter().chain(sections).collect(),
        provenance: judged.iter().map(Judged::source).collect(),
    }
}

/// What a reader should know first.
fn summary(judged: &[Judged<'_>]) -> String {
    let count = |verdict| judged.iter().filter(|one| one.judgement.verdict == verdict).count();
    let counted = [(Verdict::Holds, "hold"), (Verdict::Fails, "fail"), (Verdict::NotMeasurable, "undecided")];
    let counted: Vec<String> = counted
        .into_iter()
        .filter(|(verdict, _)| *verdict == Verdict::Holds || count(*verdict) > 0)
        .map(|(verdict, word)| match (count(verdict), word) {
            (number, "undecided") => format!("{number} cannot be decided here"),
            (1, word) => format!("1 {word}s"),
            (number, word) => format!("{number} {word}"),
        })
        .collect();
    format!(
        "On long prompts of normal (Gaussian) tokens, softmax attention becomes linear attention: so Boursier and Boyer prove \
         ([arXiv 2512.11784](https://arxiv.org/abs/2512.11784)). Here their claims, and some of our own, are held against \
         numbers: **of {} {}**, in the cases that were computed. Most are theorems: what is tested is that no number contradicts them, by \
         the criterion that stands with each. Averages over normal tokens are integrals, for up to $10^{{12}}$ tokens; other \
         tokens are drawn at random, and their numbers have standard errors.",
        if judged.len() == 1 { "1 claim".to_string() } else { format!("{} claims", judged.len()) },
        counted.join(", ")
    )
}
