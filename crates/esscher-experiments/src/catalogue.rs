//! The catalogue: one list of what there is, which feeds help, documents, Python and the web.

use crate::{claims, kinds, reading};

/// What a group of entries is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Families of token and query laws.
    Measure,
    /// Kinds of experiment.
    Experiment,
    /// Claims of the paper.
    Claim,
}

impl Group {
    /// All groups, in the order of the catalogue.
    pub const ALL: [Group; 3] = [Group::Measure, Group::Experiment, Group::Claim];

    /// As lists are headed and asked for.
    pub fn name(self) -> &'static str {
        match self {
            Group::Measure => "measures",
            Group::Experiment => "experiments",
            Group::Claim => "claims",
        }
    }
}

/// Something that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub group: Group,
    /// As specifications and commands name it.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
}

/// Everything there is.
pub fn catalogue() -> Vec<Entry> {
    let measures = reading::FAMILIES.iter().map(|family| (Group::Measure, family.name, family.summary));
    let experiments = kinds().iter().map(|kind| (Group::Experiment, kind.name, kind.summary));
    let claimed = claims().iter().map(|claim| (Group::Claim, claim.name, claim.title));
    measures
        .chain(experiments)
        .chain(claimed)
        .map(|(group, name, summary)| Entry { group, name, summary })
        .collect()
}
