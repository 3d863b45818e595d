//! How many heads got which verdict.

use esscher_audit::verdict::{Decision, Verdict};

/// How many heads got which verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Some replacement is within the tolerance.
    pub accepted: usize,
    /// The texts do not decide.
    pub uncertain: usize,
    /// None is.
    pub refused: usize,
}

impl Counts {
    /// The counts of decisions, a row per layer.
    pub(crate) fn of(decisions: &[Vec<Decision>]) -> Self {
        let count =
            |verdict| decisions.iter().flatten().filter(|decision| decision.verdict == verdict).count();
        Counts {
            accepted: count(Verdict::Accepted),
            uncertain: count(Verdict::Uncertain),
            refused: count(Verdict::Refused),
        }
    }

    /// All heads.
    pub fn all(&self) -> usize {
        self.accepted + self.uncertain + self.refused
    }
}

/// `1 text`, `8 texts`.
pub(crate) fn texts(count: usize) -> String {
    format!("{count} {}", if count == 1 { "text" } else { "texts" })
}

/// What so many heads do: 1 is accepted, 2 are.
pub(crate) fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
