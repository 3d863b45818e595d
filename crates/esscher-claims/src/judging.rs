//! What a judge collects, and which of it decides: doubt before refutation, refutation before what is open.

use crate::Judgement;
use esscher_report::{Block, Verdict};

/// What a judge has found against the measurement, against the claim, and what it could not decide.
#[derive(Debug, Default)]
pub(crate) struct Judging {
    doubts: Vec<String>,
    refutations: Vec<String>,
    open: Vec<String>,
}

impl Judging {
    /// Notes what contradicts the claim.
    pub(crate) fn refute(&mut self, told: String) {
        self.refutations.push(told);
    }

    /// Notes a comparison that this result does not decide.
    pub(crate) fn leave_open(&mut self, told: String) {
        self.open.push(told);
    }

    /// Refutes the claim unless the condition holds.
    pub(crate) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.refute(otherwise());
        }
    }

    /// Notes what makes the measurement itself doubtful unless the condition holds: what it refutes is then no refutation.
    pub(crate) fn trust(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.doubts.push(otherwise());
        }
    }

    /// The judgement: the findings that decide, then what was found in any case. Evidence is called after the claim.
    pub(crate) fn judgement(self, claim: &str, found: String, evidence: Vec<Block>) -> Judgement {
        let (verdict, word, told) = if !self.doubts.is_empty() {
            (Verdict::NotMeasurable, "The measurement is in doubt", self.doubts)
        } else if !self.refutations.is_empty() {
            (Verdict::Fails, "Refuted", self.refutations)
        } else if !self.open.is_empty() {
            (Verdict::NotMeasurable, "Not decided by this result", self.open)
        } else {
            return Judgement { verdict: Verdict::Holds, reason: found, evidence: named(claim, evidence) };
        };
        // The tables have them all.
        const NAMED: usize = 3;
        let more = told.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let reason = format!("{word}: {}{more}. {found}", told[..told.len().min(NAMED)].join("; "));
        Judgement { verdict, reason: reason.trim_end().to_string(), evidence: named(claim, evidence) }
    }

    /// The judgement of a result that cannot decide at all.
    pub(crate) fn undecided(why: &str) -> Judgement {
        let judging = Judging { open: vec![why.to_string()], ..Judging::default() };
        judging.judgement("", String::new(), Vec::new())
    }
}

/// Evidence whose drawings and tables are called after their claim: a document may hold several claims of one kind.
fn named(claim: &str, mut evidence: Vec<Block>) -> Vec<Block> {
    for block in &mut evidence {
        match block {
            Block::Figure(figure) => figure.id = format!("{claim}-{}", figure.id),
            Block::HeatMap(map) => map.id = format!("{claim}-{}", map.id),
            Block::Table(table) => table.id = format!("{claim}-{}", table.id),
            Block::Prose(_) | Block::Formula(_) | Block::Facts(_) => {}
        }
    }
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_beats_refutation_beats_open_beats_holding() {
        let verdict = |doubts: usize, refutations: usize, open: usize| {
            let some = |count: usize| vec!["a finding".to_string(); count];
            let judging = Judging { doubts: some(doubts), refutations: some(refutations), open: some(open) };
            let judged = judging.judgement("claim", "Numbers.".to_string(), Vec::new());
            (judged.verdict, judged.reason)
        };
        let finding = "a finding";
        for (found, expected, reason) in [
            ((0, 0, 0), Verdict::Holds, "Numbers.".to_string()),
            ((0, 0, 1), Verdict::NotMeasurable, format!("Not decided by this result: {finding}. Numbers.")),
            ((0, 1, 1), Verdict::Fails, format!("Refuted: {finding}. Numbers.")),
            ((1, 1, 1), Verdict::NotMeasurable, format!("The measurement is in doubt: {finding}. Numbers.")),
            (
                (0, 5, 0),
                Verdict::Fails,
                format!("Refuted: {finding}; {finding}; {finding}; and 2 more. Numbers."),
            ),
        ] {
            assert_eq!(verdict(found.0, found.1, found.2), (expected, reason));
        }
        assert_eq!(Judging::undecided("too short").reason, "Not decided by this result: too short.");
    }
}
