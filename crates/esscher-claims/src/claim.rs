//! What a claim is: what is said, how it is measured, what would refute it, and how it fared.

use crate::judging::{Judge, Judging};
use esscher_lab::specification::Mistake;
use esscher_lab::{Failure, Table};
use esscher_questions::{Planned, Settings};
use esscher_report::{Block, Figure, Section, Verdict};

/// How much is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Seconds: decides every claim that seconds can decide.
    Quick,
    /// The paper's scale: minutes to hours.
    Full,
}

/// A statement of the paper that a computation can contradict.
pub struct Claim {
    /// For `--only`, run folders and links: lower case with hyphens.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// In words.
    pub statement: &'static str,
    /// In LaTeX.
    pub formula: &'static str,
    /// Where it is said.
    pub citation: &'static str,
    /// What is computed, by which engine, against what.
    pub measurement: &'static str,
    /// What would refute it.
    pub criterion: &'static str,
    /// What decides it where its quick form does not, and how long that takes: the rest of a sentence, prose.
    pub decided_by: &'static str,
    /// The specification for seconds.
    pub quick: &'static str,
    /// The specification at the paper's scale.
    pub full: &'static str,
    pub(crate) judge: Judge,
}

/// Makes the `CLAIM` of a file, with the specifications of the folder that has its name.
macro_rules! claim {
    (name: $name:literal, $($field:ident: $value:expr,)*) => {
        pub(super) const CLAIM: $crate::Claim = $crate::Claim {
            name: $name,
            quick: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/", $name, "/quick.toml")),
            full: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/", $name, "/full.toml")),
            $($field: $value,)*
        };
    };
}

/// What a judge found.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Whether the claim holds.
    pub verdict: Verdict,
    /// The result in one plain sentence, prose.
    pub lead: String,
    /// The number that decides, as a person writes it: `14 digits`, prose.
    pub number: String,
    /// What this number is, in a few words, prose.
    pub meaning: String,
    /// Why, with numbers: one or two sentences.
    pub reason: String,
    /// The drawing that shows the finding, under the finding as its title if the claim holds.
    pub figure: Option<Block>,
    /// The same for a card.
    pub picture: Option<Figure>,
    /// What looks wrong and is not: paragraphs of prose.
    pub explained: Vec<String>,
    /// All numbers.
    pub tables: Vec<Block>,
    /// More drawings.
    pub more: Vec<Block>,
}

impl Judgement {
    /// All drawings and tables, in reading order.
    pub fn evidence(&self) -> impl Iterator<Item = &Block> {
        self.figure.iter().chain(&self.tables).chain(&self.more)
    }
}

impl Claim {
    /// The experiment that decides it.
    ///
    /// # Errors
    /// None for shipped specifications; they are tested.
    pub fn experiment(&self, scale: Scale, settings: Settings) -> Result<Planned, Mistake> {
        let (file, text) = match scale {
            Scale::Quick => ("quick.toml", self.quick),
            Scale::Full => ("full.toml", self.full),
        };
        Planned::read(&format!("experiments/{}/{file}", self.name), text, settings)
    }

    /// Judges a result of its experiment.
    ///
    /// # Errors
    /// A table that is no such result.
    pub fn judge(&self, result: &Table) -> Result<Judgement, Failure> {
        Judging::by(self.name, self.judge, result)
    }

    /// The section of a report on this claim, with what would decide it where something is known that does.
    pub fn section(&self, judgement: &Judgement, decided_by: Option<&str>) -> Section {
        let Judgement { verdict, lead, figure, explained, reason, .. } = judgement;
        let mut blocks = vec![Block::Lead(lead.clone())];
        blocks.extend(decided_by.map(|by| Block::Prose(format!("**What would decide it:** {by}."))));
        blocks.push(Block::Prose(format!("**The claim.** {}", self.statement)));
        blocks.push(Block::Formula(self.formula.to_string()));
        blocks.extend(figure.clone());
        blocks.extend(explained.iter().cloned().map(Block::Prose));
        let facts = [
            ("Where it is said", self.citation),
            ("Measured", self.measurement),
            ("Refuted if", self.criterion),
            ("Found", reason),
        ];
        let facts = facts.map(|(name, text)| (name.to_string(), text.to_string())).to_vec();
        let parts = [
            ("method", "How it was measured, and what would refute it", vec![Block::Facts(facts)]),
            ("numbers", "The numbers", judgement.tables.clone()),
            ("figures", "More figures", judgement.more.clone()),
        ];
        let parts = parts.into_iter().filter(|(_, _, blocks)| !blocks.is_empty());
        blocks.extend(parts.map(|(id, title, blocks)| Block::Folded {
            id: format!("{}-{id}", self.name),
            title: title.to_string(),
            blocks,
        }));
        let (id, title) = (self.name.to_string(), self.title.to_string());
        Section { id, title, verdict: Some(*verdict), blocks }
    }
}
