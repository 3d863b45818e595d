//! What replaces heads: every candidate on every head, and against length.

use super::compute::HeadsPlan;
use crate::audit::counts::Counts;
use crate::audit::{middle_at_the_end, number_cell};
use crate::tabulating::rounded;
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::Dossier;
use esscher_audit::portrait::median;
use esscher_audit::verdict::{Spread, spread};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

impl HeadsPlan {
    /// The median over heads of a candidate's error, with its uncertainty over texts; nothing if it is not finite on some text.
    fn median_error(&self, dossier: &Dossier, number: usize) -> Option<Spread> {
        let shape = dossier.shape();
        let by_head: Vec<Vec<f64>> = (0..shape.layers)
            .flat_map(|layer| (0..shape.heads).map(move |head| (layer, head)))
            .map(|(layer, head)| dossier.errors(layer, head, number, self.criterion))
            .collect();
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
            let decisions =
                dossier.decide_heads(running, self.criterion, self.tolerance, &|one| *one == candidate);
            Counts::of(&decisions).accepted
        };
        let asked = self.questions.candidates.iter().enumerate();
        let failed: Vec<usize> =
            asked.clone().map(|(number, _)| self.failed_heads(longest, number)).collect();
        let some_failed = failed.iter().any(|heads| *heads > 0);
        let rows = asked
            .clone()
            .map(|(number, &(candidate, running))| {
                let mut row = vec![
                    Cell::Text(format!("`{candidate}`")),
                    Cell::Text(running.name().to_string()),
                    number_cell(self.median_error(longest, number)),
                    Cell::Integer(accepted(longest, candidate, running) as i64),
                    rounded(candidate.middle_tokens(dimension)),
                ];
                row.extend(some_failed.then(|| Cell::Integer(failed[number] as i64)));
                row
            })
            .collect();
        let mut columns = vec!["candidate", "running", "median error", "heads accepted", "state, tokens"];
        columns.extend(some_failed.then_some("heads whose error is not finite on some text"));
        let (least, most) = self.middle_share(*length);
        let table = DataTable {
            id: "candidates".to_string(),
            caption: format!(
                "Every candidate on every head at {length} tokens: the median error over heads with its standard error over texts, \
                 the heads that it alone is accepted for at tolerance {}, and its state beside the {} tokens at most that all keep, \
                 in tokens. What it stands for, the middle, is {} to {} of what the last query sees.",
                self.tolerance,
                self.questions.frame.tokens(),
                percent(least),
                percent(most)
            ),
            columns: columns.into_iter().map(String::from).collect(),
            rows,
        };
        let mut blocks = vec![Block::Table(table)];
        if dossiers.len() > 1 {
            let heads = (longest.shape().layers * longest.shape().heads).max(1) as f64;
            let deployed = self.deployed();
            let line = |point: &dyn Fn(usize, Candidate, f64, &Dossier) -> Option<Point>| -> Vec<Series> {
                asked
                    .clone()
                    .filter(|(_, (_, running))| *running == deployed)
                    .enumerate()
                    .map(|(colour, (number, (candidate, _)))| Series {
                        name: candidate.to_string(),
                        mark: Mark::Line,
                        colour,
                        points: dossiers
                            .iter()
                            .filter_map(|(length, dossier)| {
                                point(number, *candidate, *length as f64, dossier)
                            })
                            .collect(),
                    })
                    .collect()
            };
            let errors = line(&|number, _, length, dossier| {
                let spread = self.median_error(dossier, number)?;
                Some(Point::with_error(length, spread.mean, spread.standard_error.unwrap_or(0.0)))
            });
            let shares = line(&|_, candidate, length, dossier| {
                Some(Point::new(length, accepted(dossier, candidate, deployed) as f64 / heads))
            });
            let figure =
                |id: &str, title: &str, caption: &str, label: &str, scale: Scale, series: Vec<Series>| {
                    Block::Figure(Figure {
                        id: id.to_string(),
                        title: title.to_string(),
                        caption: caption.to_string(),
                        x: Axis { label: "tokens of a text".to_string(), scale: Scale::Logarithmic },
                        y: Axis { label: label.to_string(), scale },
                        series,
                    })
                };
            blocks.push(figure(
                "error-against-length",
                "Error against length",
                &format!(
                    "Median over heads, {}; bands are one standard error over texts, and there is no point where the median of some \
                     text is not finite. Short texts are mostly atoms and window: their errors are small for that reason, see the \
                     table below.",
                    deployed.name()
                ),
                "median relative error",
                Scale::Logarithmic,
                errors,
            ));
            let lengths = dossiers.iter().map(|(length, _)| *length);
            blocks.push(Block::Table(self.middle_table(lengths)));
            blocks.push(figure(
                "accepted-against-length",
                "Accepted heads against length",
                &format!(
                    "The share of query heads that each candidate alone is accepted for, {}.",
                    deployed.name()
                ),
                "share of heads",
                Scale::Linear,
                shares,
            ));
        }
        Section {
            id: "candidates".to_string(),
            title: "What replaces them".to_string(),
            verdict: None,
            blocks,
        }
    }

    /// Heads whose error with a candidate is not finite on some text.
    fn failed_heads(&self, dossier: &Dossier, number: usize) -> usize {
        let shape = dossier.shape();
        (0..shape.layers)
            .flat_map(|layer| (0..shape.heads).map(move |head| (layer, head)))
            .filter(|(layer, head)| {
                let errors = dossier.errors(*layer, *head, number, self.criterion);
                errors.iter().any(|error| !error.is_finite())
            })
            .count()
    }

    /// Which share of the tokens that the last query sees the middle is, at least and at most.
    fn middle_share(&self, length: usize) -> (f64, f64) {
        let (least, most) = middle_at_the_end(&self.questions.frame, self.evidence.shape().order, length);
        let share = |tokens: usize| tokens as f64 / length.max(1) as f64;
        (share(least), share(most))
    }

    /// How much of a text is replaced at all.
    fn middle_table(&self, lengths: impl Iterator<Item = usize>) -> DataTable {
        let row = |length: usize| {
            let (least, most) = self.middle_share(length);
            vec![Cell::Integer(length as i64), rounded(least), rounded(most)]
        };
        DataTable {
            id: "middle-against-length".to_string(),
            caption: "The middle, for which a candidate stands, as a share of the tokens that the last query of a text sees; the rest \
                      is atoms and window, which every candidate keeps exactly. The least is with all light tokens that a head may \
                      keep, the most with none."
                .to_string(),
            columns: ["tokens of a text", "middle, at least", "middle, at most"].map(String::from).to_vec(),
            rows: lengths.map(row).collect(),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
