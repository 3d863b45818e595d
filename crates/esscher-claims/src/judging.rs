//! What a judge collects, and which of it decides: doubt before refutation, refutation before what is open.

use crate::Judgement;
use esscher_lab::{Failure, Table};
use esscher_report::{Block, Figure, Panels, Verdict};
use std::fmt;

/// What a judge found in any case.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The result in one plain sentence, as it is told if the claim holds.
    pub(crate) lead: String,
    /// The number that decides, and what it is; true whatever the verdict is.
    pub(crate) number: String,
    /// In a few words.
    pub(crate) meaning: String,
    /// One or two sentences with numbers; true whatever the verdict is.
    pub(crate) told: String,
    /// The drawing that shows it. Its own title says what is drawn.
    pub(crate) main: Option<Block>,
    /// What the drawing shows if the claim holds: its title then.
    pub(crate) headline: String,
    /// What looks wrong in it and is not, if the claim holds: paragraphs of prose.
    pub(crate) explained: Vec<String>,
    /// All numbers.
    pub(crate) tables: Vec<Block>,
    /// More drawings.
    pub(crate) more: Vec<Block>,
}

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
        let found = judge(result, &mut judging).or_else(|error| {
            let Undecided(why) = *error.downcast()?;
            judging = Judging { open: vec![why], ..Judging::default() };
            let (number, meaning) = ("–".to_string(), "not known from this result".to_string());
            Ok::<Found, Failure>(Found { number, meaning, ..Found::default() })
        })?;
        let Found { lead, number, meaning, told, mut main, headline, explained, mut tables, mut more } =
            found;
        let (verdict, lead, reason) = judging.decided(lead, told);
        // Only of a claim that holds it is known what its drawing shows.
        let explained = if verdict == Verdict::Holds { explained } else { Vec::new() };
        if let (Verdict::Holds, Some(title)) = (verdict, main.as_mut().and_then(title_of)) {
            *title = headline;
        }
        // A document may hold several claims of one kind.
        for block in main.iter_mut().chain(&mut tables).chain(&mut more) {
            block.name_under(claim);
        }
        let picture = main.as_ref().and_then(picture_of);
        Ok(Judgement {
            verdict,
            lead,
            number,
            meaning,
            reason,
            figure: main,
            picture,
            explained,
            tables,
            more,
        })
    }

    /// The verdict, the sentence that leads its section, and why.
    fn decided(self, lead: String, found: String) -> (Verdict, String, String) {
        let (verdict, leading, word, told) = if !self.doubts.is_empty() {
            let leading = "The measurement itself is in doubt, so it decides nothing";
            (Verdict::NotMeasurable, leading, "The measurement is in doubt", self.doubts)
        } else if !self.refutations.is_empty() {
            (Verdict::Fails, "The measurement contradicts the claim", "Refuted", self.refutations)
        } else if !self.open.is_empty() {
            let leading = "This result does not decide the claim";
            (Verdict::NotMeasurable, leading, "Not decided by this result", self.open)
        } else {
            return (Verdict::Holds, lead, found);
        };
        let lead = format!("{leading}: {}.", told[0]);
        // The tables have them all.
        const NAMED: usize = 3;
        let more = told.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let reason = format!("{word}: {}{more}. {found}", told[..told.len().min(NAMED)].join("; "));
        (verdict, lead, reason.trim_end().to_string())
    }
}

/// The title of a drawing.
fn title_of(block: &mut Block) -> Option<&mut String> {
    match block {
        Block::Figure(Figure { title, .. }) | Block::Panels(Panels { title, .. }) => Some(title),
        _ => None,
    }
}

/// What a card shows of a drawing: all of it, or the first panel.
fn picture_of(block: &Block) -> Option<Figure> {
    match block {
        Block::Figure(figure) => Some(figure.clone()),
        Block::Panels(Panels { id, title, x, y, panels, .. }) => Some(Figure {
            id: id.clone(),
            title: title.clone(),
            caption: String::new(),
            x: x.clone(),
            y: y.clone(),
            series: panels.first()?.series.clone(),
        }),
        _ => None,
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
            judging.decided("It is so.".to_string(), "Numbers.".to_string())
        };
        let (open, refuted) =
            ("This result does not decide the claim", "The measurement contradicts the claim");
        let doubted = "The measurement itself is in doubt, so it decides nothing";
        for (found, expected, lead, reason) in [
            ((0, 0, 0), Verdict::Holds, "It is so.", "Numbers."),
            ((0, 0, 1), Verdict::NotMeasurable, open, "Not decided by this result: a finding. Numbers."),
            ((0, 1, 1), Verdict::Fails, refuted, "Refuted: a finding. Numbers."),
            ((1, 1, 1), Verdict::NotMeasurable, doubted, "The measurement is in doubt: a finding. Numbers."),
            (
                (0, 5, 0),
                Verdict::Fails,
                refuted,
                "Refuted: a finding; a finding; a finding; and 2 more. Numbers.",
            ),
        ] {
            let lead =
                if expected == Verdict::Holds { lead.to_string() } else { format!("{lead}: a finding.") };
            assert_eq!(decided(found.0, found.1, found.2), (expected, lead, reason.to_string()));
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
        assert_eq!(told.lead, "This result does not decide the claim: too short.");
        assert!(judged(|_, _| Err("foreign".into())).is_err());
    }
}
