//! What the judges of the regression claims share.

use super::Judgement;
use super::evidence::named;
use crate::kinds::Record;
use esscher_report::{Block, Verdict};

/// Holds if there are no problems; the reason names them first. Evidence is called after the claim.
pub(super) fn judged(claim: &str, problems: Vec<String>, found: String, evidence: Vec<Block>) -> Judgement {
    let evidence = named(claim, evidence);
    if problems.is_empty() {
        Judgement { verdict: Verdict::Holds, reason: found, evidence }
    } else {
        let reason = format!("Refuted: {}. {found}", problems.join("; "));
        Judgement { verdict: Verdict::Fails, reason, evidence }
    }
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
