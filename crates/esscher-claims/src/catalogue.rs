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

impl Entry {
    fn of<const N: usize>(
        group: Group,
        name: &'static str,
        summary: &'static str,
        details: [(&'static str, &dyn ToString); N],
    ) -> Self {
        let details = details.map(|(what, detail)| (what, detail.to_string())).to_vec();
        Entry { group, name, summary, details }
    }
}

/// Everything there is.
pub fn catalogue() -> Vec<Entry> {
    let families = asking::FAMILIES.iter();
    let mut all: Vec<Entry> =
        families.map(|family| Entry::of(Group::Measure, family.name, family.summary, [])).collect();
    #[cfg(feature = "zoo")]
    all.extend(mechanisms());
    all.extend(questions().iter().map(|one| Entry::of(Group::Question, one.name, one.summary, [])));
    all.extend(claims().iter().map(|claim| Entry::of(Group::Claim, claim.name, claim.title, [])));
    #[cfg(feature = "audit")]
    all.extend(models());
    all
}

/// The zoo's own catalogue, with its claims.
#[cfg(feature = "zoo")]
fn mechanisms() -> impl Iterator<Item = Entry> {
    let said = |truth: bool| if truth { "yes" } else { "no" };
    let mechanisms = esscher_zoo::catalogue::catalogue().iter().map(move |entry| {
        let claims = &entry.claims;
        let details: [(&str, &dyn ToString); 9] = [
            ("year", &entry.year),
            ("paper", &entry.paper),
            ("causal", &said(claims.order == Order::Causal)),
            ("normalised", &said(claims.normalised)),
            ("state", &claims.state.formula),
            ("cost", &claims.cost.name()),
            ("long prompts", &claims.fate.name()),
            ("dynamical system", &said(claims.dynamical_system)),
            ("recalls", &said(claims.recalls)),
        ];
        Entry::of(Group::Mechanism, entry.name, entry.summary, details)
    });
    let hybrids = esscher_zoo::catalogue::hybrids().iter().map(move |hybrid| {
        let details: [(&str, &dyn ToString); 3] =
            [("year", &hybrid.year), ("paper", &hybrid.paper), ("recalls", &said(hybrid.recalls))];
        Entry::of(Group::Mechanism, hybrid.name, hybrid.summary, details)
    });
    mechanisms.chain(hybrids)
}

/// The checkpoints that have a name, and the one that is made on the spot.
#[cfg(feature = "audit")]
fn models() -> impl Iterator<Item = Entry> {
    use esscher_models::{MODELS, tiny};
    let named = MODELS.iter().map(|model| {
        let download = format!("{} MB", model.package.megabytes());
        let details: [(&str, &dyn ToString); 3] =
            [("download", &download), ("package", &model.package), ("licence", &model.licence)];
        let mut entry = Entry::of(Group::Model, model.name, model.what, details);
        if !model.aliases.is_empty() {
            entry.details.insert(0, ("also called", model.aliases.join(", ")));
        }
        entry
    });
    named.chain([Entry::of(Group::Model, tiny::NAME, tiny::SUMMARY, [("download", &"none")])])
}
