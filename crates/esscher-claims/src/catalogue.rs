//! The catalogue: one list of what there is, which feeds help, documents, Python and the web.

use crate::claims;
use esscher_questions::{asking, questions};
#[cfg(feature = "zoo")]
use esscher_zoo::mechanism::Order;

/// What a group of entries is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Families of token and query laws.
    Measure,
    /// Attention mechanisms and their relatives.
    Mechanism,
    /// Questions that can be asked.
    Question,
    /// Claims of the paper.
    Claim,
    /// Checkpoints that can be audited by name.
    Model,
}

impl Group {
    /// All groups, in the order of the catalogue.
    pub const ALL: [Group; 5] =
        [Group::Measure, Group::Mechanism, Group::Question, Group::Claim, Group::Model];

    /// As lists are headed and asked for.
    pub fn name(self) -> &'static str {
        match self {
            Group::Measure => "measures",
            Group::Mechanism => "mechanisms",
            Group::Question => "questions",
            Group::Claim => "claims",
            Group::Model => "models",
        }
    }
}

/// Something that can be asked for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub group: Group,
    /// As specifications and commands name it.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What else is known of it, by name.
    pub details: Vec<(&'static str, String)>,
}

/// Everything there is.
pub fn catalogue() -> Vec<Entry> {
    let measures = asking::FAMILIES.iter().map(|family| (Group::Measure, family.name, family.summary));
    let experiments = questions().iter().map(|question| (Group::Question, question.name, question.summary));
    let claimed = claims().iter().map(|claim| (Group::Claim, claim.name, claim.title));
    let plain = |(group, name, summary)| Entry { group, name, summary, details: Vec::new() };
    measures
        .map(plain)
        .chain(mechanisms())
        .chain(experiments.chain(claimed).map(plain))
        .chain(models())
        .collect()
}

/// The zoo's own catalogue, with its claims.
#[cfg(feature = "zoo")]
fn mechanisms() -> Vec<Entry> {
    let said = |truth: bool| if truth { "yes" } else { "no" }.to_string();
    esscher_zoo::catalogue::catalogue()
        .iter()
        .map(|entry| Entry {
            group: Group::Mechanism,
            name: entry.name,
            summary: entry.summary,
            details: vec![
                ("year", entry.year.to_string()),
                ("paper", entry.paper.to_string()),
                ("causal", said(entry.claims.order == Order::Causal)),
                ("normalised", said(entry.claims.normalised)),
                ("state", entry.claims.state.formula.to_string()),
                ("cost", entry.claims.cost.name().to_string()),
                ("long prompts", entry.claims.fate.name().to_string()),
                ("dynamical system", said(entry.claims.dynamical_system)),
                ("recalls", said(entry.claims.recalls)),
            ],
        })
        .chain(esscher_zoo::catalogue::hybrids().iter().map(|hybrid| Entry {
            group: Group::Mechanism,
            name: hybrid.name,
            summary: hybrid.summary,
            details: vec![
                ("year", hybrid.year.to_string()),
                ("paper", hybrid.paper.to_string()),
                ("recalls", said(hybrid.recalls)),
            ],
        }))
        .collect()
}

#[cfg(not(feature = "zoo"))]
fn mechanisms() -> Vec<Entry> {
    Vec::new()
}

/// The checkpoints that have a name, and the one that is made on the spot.
#[cfg(feature = "audit")]
fn models() -> Vec<Entry> {
    let tiny = Entry {
        group: Group::Model,
        name: esscher_models::tiny::NAME,
        summary: esscher_models::tiny::SUMMARY,
        details: vec![("download", "none".to_string())],
    };
    esscher_models::MODELS
        .iter()
        .map(|model| Entry {
            group: Group::Model,
            name: model.name,
            summary: model.what,
            details: vec![
                ("download", format!("{} MB", model.package.megabytes())),
                ("package", model.package.to_string()),
                ("licence", model.licence.to_string()),
            ],
        })
        .chain([tiny])
        .collect()
}

#[cfg(not(feature = "audit"))]
fn models() -> Vec<Entry> {
    Vec::new()
}
