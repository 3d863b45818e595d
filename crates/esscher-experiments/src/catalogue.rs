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
