//! What replaces heads: every candidate on every head, and against length.

use super::compute::HeadsPlan;
use crate::audit::counts::Counts;
use crate::audit::number_cell;
use crate::tabulating::{code, facts, rounded, table, whole, words};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::{Dossier, Standard};
use esscher_audit::head::Order;
use esscher_audit::portrait::median;
use esscher_audit::verdict::{Spread, spread};
use esscher_report::{Axis, Block, Figure, Mark, Point, Section, Series, literal};

impl HeadsPlan {
    /// The errors of every head with a candidate, one per text.
    fn errors(&self, dossier: &Dossier, number: usize) -> Vec<Vec<f64>> {
        let of = |(layer, head)| dossier.errors(layer, head, number, self.standard.criterion);
        dossier.shape().places().map(of).collect()
    }

    /// The median over heads of a candidate's error, with its uncertainty over texts; nothing if it is not finite on some text.
    fn median_error(&self, dossier: &Dossier, number: usize) -> Option<Spread> {
        let by_head = self.errors(dossier, number);
        let texts = by_head.iter().map(Vec::len).min()?;
        let medians: Vec<f64> = (0..texts)
            .filter_map(|text| median(&mut by_head.iter().map(|errors| errors[text]).collect::<Vec<_>>()))
            .collect();
        spread(&medians)
    }

    pub(super) fn candidates_section(&self, dossiers: &[(usize, Dossier)]) -> Section {
        let Some((length, longest)) = dossiers.last() else {
            return Section::default();
        };
        let dimension = longest.shape().head_dimension;
        let accepted = |dossier: &Dossier, candidate: Candidate, running: Running| {
            let standard = Standard { running, only: Some(candidate), ..self.standard };
            Counts::of(&dossier.decide_heads(&standard)).accepted
        };
        let asked = &self.questions.candidates;
        // Heads whose error is not finite on some text.
        let fails = |errors: &&Vec<f64>| errors.iter().any(|error| !error.is_finite());
        let failed: Vec<usize> = (0..asked.len())
            .map(|number| self.errors(longest, number).iter().filter(fails).count())
            .collect();
        let some_failed = failed.iter().any(|heads| *heads > 0);
        let row = |(number, &(candidate, running)): (usize, &(Candidate, Running))| {
            let mut row = vec![
                ("candidate", code(candidate)),
                ("running", words(running)),
                ("median error", number_cell(self.median_error(longest, number))),
                ("heads accepted", whole(accepted(longest, candidate, running))),
                ("state, tokens", rounded(candidate.middle_tokens(dimension))),
            ];
            if some_failed {
                row.push(("heads whose error is not finite on some text", whole(failed[number])));
            }
            row
        };
        let (least, most) = self.middle_share(*length);
        let caption = format!(
            "Every candidate on every head at {length} tokens: the median error over heads with its standard error over texts, \
             the heads that it alone is accepted for at tolerance {}, and its state beside the {} tokens at most that all keep, \
             in tokens. What it stands for, the middle, is {:.0} % to {:.0} % of what the last query sees.",
            self.standard.tolerance,
            self.questions.frame.tokens(),
            100.0 * least,
            100.0 * most
        );
        let mut blocks = vec![table("candidates", caption, asked.iter().enumerate().map(row).collect())];
        if dossiers.len() > 1 {
            let heads = longest.shape().places().count().max(1) as f64;
            let running = self.standard.running;
            let error = |(number, _): (usize, Candidate), length: f64, dossier: &Dossier| {
                let spread = self.median_error(dossier, number)?;
                Some(Point::with_error(length, spread.mean, spread.standard_error.unwrap_or(0.0)))
            };
            let share = |(_, candidate): (usize, Candidate), length: f64, dossier: &Dossier| {
                Some(Point::new(length, accepted(dossier, candidate, running) as f64 / heads))
            };
            blocks.push(self.against_length(
                "error-against-length",
                "The error of every candidate, against the length of the text",
                &format!(
                    "Median over heads, {running}; bands are one standard error over texts, and there is no point where the median of \
                     some text is not finite. Short texts are mostly atoms and window: their errors are small for that reason, see the \
                     table below."
                ),
                Axis::logarithmic("median relative error"),
                dossiers,
                error,
            ));
            blocks.push(self.middle_table(dossiers.iter().map(|(length, _)| *length)));
            blocks.push(self.against_length(
                "accepted-against-length",
                "The share of heads that one candidate alone replaces, against the length",
                &format!("The share of query heads that each candidate alone is accepted for, {running}."),
                Axis::from_zero("share of heads"),
                dossiers,
                share,
            ));
        }
        blocks.push(surprises(longest.shape().order));
        let folded = Block::Folded {
            id: "every-candidate".to_string(),
            title: "Every candidate on every head, and what looks wrong and is not".to_string(),
            blocks,
        };
        Section::new("candidates", "What replaces them", vec![folded])
    }

    /// A curve for every candidate as it would be deployed, with a point at every length that has one.
    fn against_length(
        &self,
        id: &str,
        title: &str,
        caption: &str,
        y: Axis,
        dossiers: &[(usize, Dossier)],
        point: impl Fn((usize, Candidate), f64, &Dossier) -> Option<Point>,
    ) -> Block {
        let series = self.deployed().enumerate().map(|(colour, asked)| {
            let points =
                dossiers.iter().filter_map(|(length, dossier)| point(asked, *length as f64, dossier));
            Series { name: literal(asked.1), mark: Mark::Line, colour, points: points.collect() }
        });
        Block::Figure(Figure {
            id: id.to_string(),
            title: title.to_string(),
            caption: caption.to_string(),
            x: Axis::logarithmic("tokens of a text"),
            y,
            series: series.collect(),
        })
    }

    /// Which share of the tokens that the last query sees the middle is, at least and at most.
    pub(super) fn middle_share(&self, length: usize) -> (f64, f64) {
        let (least, most) = self.questions.frame.middle_at_the_end(self.evidence.shape().order, length);
        let share = |tokens: usize| tokens as f64 / length.max(1) as f64;
        (share(least), share(most))
    }

    /// How much of a text is replaced at all.
    fn middle_table(&self, lengths: impl Iterator<Item = usize>) -> Block {
        let row = |length: usize| {
            let (least, most) = self.middle_share(length);
            vec![
                ("tokens of a text", whole(length)),
                ("middle, at least", rounded(least)),
                ("middle, at most", rounded(most)),
            ]
        };
        let caption = "The middle, for which a candidate stands, as a share of the tokens that the last query of a text sees; the rest \
                       is atoms and window, which every candidate keeps exactly. The least is with all light tokens that a head may \
                       keep, the most with none.";
        table("middle-against-length", caption, lengths.map(row).collect())
    }
}

/// What readers have taken for mistakes.
fn surprises(order: Order) -> Block {
    let mut told = vec![(
        "a head is accepted though $e^{s^2}$ is far above the length",
        "$e^{s^2}$ is the length at which the theory promises that attention is close to its limit, whatever the tokens are. It is \
         sufficient and not necessary: a head may be close much earlier, since its values are alike or since atoms and window carry its \
         weight. The verdict is about the measured error alone.",
    )];
    if order == Order::Causal {
        told.extend([
            (
                "streaming has a smaller error than offline",
                "Offline is no bound. It looks at all tokens so far, but expands about the mean tilt of the queries so far, and knows no \
                 later query. Streaming expands about a tilt that was calibrated on whole texts, which may suit the queries to come \
                 better.",
            ),
            (
                "errors are small for short texts and grow with the length",
                "In a short text most tokens are atoms and window, which are kept exactly: at 128 tokens with the usual window 9 to 22 % \
                 are replaced. Later the middle is most of the text, and text is no sample of independent tokens. So verdicts hold for \
                 shorter texts and not for longer ones.",
            ),
        ]);
    }
    facts(told.into_iter().map(|(what, why)| (what, why.to_string())))
}
