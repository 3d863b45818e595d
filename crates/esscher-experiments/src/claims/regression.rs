//! What the judges of the regression claims share.

use super::Judgement;
use super::evidence::named;
use crate::kinds::Record;
use esscher_report::{Block, Verdict};

/// Fails if there are problems; otherwise nothing is decided if something is open; otherwise holds. The reason names them
/// first. Evidence is called after the claim.
pub(super) fn weighed(
    claim: &str,
    problems: Vec<String>,
    open: Vec<String>,
    found: String,
    evidence: Vec<Block>,
) -> Judgement {
    let (verdict, first) = if !problems.is_empty() {
        (Verdict::Fails, format!("Refuted: {}. ", problems.join("; ")))
    } else if !open.is_empty() {
        (Verdict::NotMeasurable, format!("Not decided by this result: {}. ", open.join("; ")))
    } else {
        (Verdict::Holds, String::new())
    };
    Judgement { verdict, reason: first + &found, evidence: named(claim, evidence) }
}

/// What was computed cannot decide.
pub(super) fn undecided(why: &str) -> Judgement {
    Judgement {
        verdict: Verdict::NotMeasurable,
        reason: format!("Not decided by this result: {why}."),
        evidence: Vec::new(),
    }
}

/// The dimensions of some rows, each once, in order.
pub(super) fn dimensions(records: &[Record]) -> Vec<i64> {
    let mut found: Vec<i64> = records.iter().map(|record| record.dimension).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The finite lengths in this dimension, each once, in order.
pub(super) fn lengths(records: &[Record], dimension: i64) -> Vec<i64> {
    let here = records.iter().filter(|record| record.dimension == dimension);
    let mut found: Vec<i64> = here.filter_map(|record| record.length).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a flow was followed to the end of its interval: until T, or until it stood still.
pub(super) fn is_followed(ending: &str) -> bool {
    ending.starts_with("stationary") || ending.starts_with("reached the end time")
}
