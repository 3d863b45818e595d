//! What a judge collects, and which of it decides: doubt before refutation, refutation before what is open.

use crate::Judgement;
use esscher_lab::{Failure, Table};
use esscher_report::{Block, Verdict};
use std::fmt;

/// What a judge found in any case: one or two sentences with numbers, and the blocks that show them.
pub(crate) type Found = (String, Vec<Block>);

/// Weighs a result. It fails on a table of another question, or as [`undecided`].
pub(crate) type Judge = fn(&Table, &mut Judging) -> Result<Found, Failure>;

/// What a judge has found against the measurement, against the claim, and what it could not decide.
#[derive(Debug, Default)]
pub(crate) struct Judging {
    doubts: Vec<String>,
    refutations: Vec<String>,
    open: Vec<String>,
}

impl Judging {
    /// Notes a comparison that this result does not decide.
    pub(crate) fn leave_open(&mut self, told: String) {
        self.open.push(told);
    }

    /// Refutes the claim unless the condition holds.
    pub(crate) fn require(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.refutations.push(otherwise());
        }
    }

    /// Notes what makes the measurement itself doubtful unless the condition holds: what it refutes is then no refutation.
    pub(crate) fn trust(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.doubts.push(otherwise());
        }
    }

    /// A number that must be positive: refuted if it is below `least` with its error, open if the error reaches 0.
    pub(crate) fn positive(&mut self, number: f64, error: f64, least: f64, told: impl FnOnce() -> String) {
        if number + error < least {
            self.refutations.push(told());
        } else if number - error <= 0.0 {
            self.leave_open(format!("{}, which the errors leave open", told()));
        }
    }

    /// The judgement of a claim: the findings that decide, then what was found in any case.
    pub(crate) fn by(claim: &str, judge: Judge, result: &Table) -> Result<Judgement, Failure> {
        let mut judging = Judging::default();
        let (found, mut evidence) = judge(result, &mut judging).or_else(|error| {
            let Undecided(why) = *error.downcast()?;
            judging = Judging { open: vec![why], ..Judging::default() };
            Ok::<Found, Failure>(Default::default())
        })?;
        // A document may hold several claims of one kind.
        for block in &mut evidence {
            match block {
                Block::Figure(figure) => figure.id = format!("{claim}-{}", figure.id),
                Block::HeatMap(map) => map.id = format!("{claim}-{}", map.id),
                Block::Table(table) => table.id = format!("{claim}-{}", table.id),
                Block::Prose(_) | Block::Formula(_) | Block::Facts(_) => {}
            }
        }
        let (verdict, reason) = judging.decided(found);
        Ok(Judgement { verdict, reason, evidence })
    }

    fn decided(self, found: String) -> (Verdict, String) {
        let (verdict, word, told) = if !self.doubts.is_empty() {
            (Verdict::NotMeasurable, "The measurement is in doubt", self.doubts)
        } else if !self.refutations.is_empty() {
            (Verdict::Fails, "Refuted", self.refutations)
        } else if !self.open.is_empty() {
            (Verdict::NotMeasurable, "Not decided by this result", self.open)
        } else {
            return (Verdict::Holds, found);
        };
        // The tables have them all.
        const NAMED: usize = 3;
        let more = told.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let reason = format!("{word}: {}{more}. {found}", told[..told.len().min(NAMED)].join("; "));
        (verdict, reason.trim_end().to_string())
    }
}

/// The end of a judge whose result cannot decide at all.
pub(crate) fn undecided(why: impl Into<String>) -> Failure {
    Box::new(Undecided(why.into()))
}

#[derive(Debug)]
struct Undecided(String);

impl fmt::Display for Undecided {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Undecided {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_beats_refutation_beats_open_beats_holding() {
        let decided = |doubts: usize, refutations: usize, open: usize| {
            let some = |count: usize| vec!["a finding".to_string(); count];
            let judging = Judging { doubts: some(doubts), refutations: some(refutations), open: some(open) };
            judging.decided("Numbers.".to_string())
        };
        for (found, expected, reason) in [
            ((0, 0, 0), Verdict::Holds, "Numbers."),
            ((0, 0, 1), Verdict::NotMeasurable, "Not decided by this result: a finding. Numbers."),
            ((0, 1, 1), Verdict::Fails, "Refuted: a finding. Numbers."),
            ((1, 1, 1), Verdict::NotMeasurable, "The measurement is in doubt: a finding. Numbers."),
            ((0, 5, 0), Verdict::Fails, "Refuted: a finding; a finding; a finding; and 2 more. Numbers."),
        ] {
            assert_eq!(decided(found.0, found.1, found.2), (expected, reason.to_string()));
        }
    }

    #[test]
    fn a_result_that_cannot_decide_is_a_judgement_and_a_foreign_one_an_error() {
        let judged = |judge: Judge| Judging::by("claim", judge, &Table::new(&[]));
        let told = judged(|_, judging| {
            judging.require(false, || "a finding".to_string());
            Err(undecided("too short"))
        });
        let told = told.unwrap();
        assert_eq!(told.verdict, Verdict::NotMeasurable);
        assert_eq!(told.reason, "Not decided by this result: too short.");
        assert!(judged(|_, _| Err("foreign".into())).is_err());
    }
}
