//! How heads were measured, in words, tables and heat maps; verdicts and what replaces heads have their own files.

use super::compute::HeadsPlan;
use super::evidence::Evidence;
use crate::audit::counts::Counts;
use crate::audit::dumps::DumpFile;
use crate::audit::{NOT_FINITE, files, frame_in_words, glossary};
use crate::measured::figures;
use crate::tabulating::{facts, table, whole, words};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::discrepancy::QUERIES;
use esscher_audit::dossier::{Criterion, Dossier, Standard};
use esscher_audit::head::Order;
use esscher_audit::portrait::Portrait;
use esscher_audit::verdict::{CONFIDENCE, Spread};
use esscher_report::{Block, Cell, HeatMap, Scale, Section, literal};

/// The tolerances that every report tells.
const TOLERANCES: [f64; 3] = [0.02, 0.05, 0.10];

impl HeadsPlan {
    /// The sections of a report; what is not about lengths is about the longest.
    pub(super) fn sections_of(&self, dossiers: &[(usize, Dossier)]) -> Vec<Section> {
        let Some((length, longest)) = dossiers.last() else { return Vec::new() };
        let mut sections = vec![
            self.verdicts_section(*length, longest),
            self.candidates_section(dossiers),
            self.subject_section(*length, longest),
        ];
        sections.retain(|section| !section.blocks.is_empty());
        sections
    }

    /// The ways of running that were asked.
    fn runnings(&self) -> Vec<Running> {
        let asked = |running: &Running| self.questions.candidates.iter().any(|(_, one)| one == running);
        Running::ALL.into_iter().filter(asked).collect()
    }

    /// The candidates that a verdict chooses from, as they would be deployed, with their numbers.
    pub(super) fn deployed(&self) -> impl Iterator<Item = (usize, Candidate)> + Clone {
        let asked = self.questions.candidates.iter().enumerate();
        asked.filter_map(|(number, (candidate, running))| {
            (*running == self.standard.running).then_some((number, *candidate))
        })
    }

    fn error_in_words(&self) -> String {
        let queries = match self.evidence.shape().order {
            Order::Causal => "of a text's second half",
            Order::Whole => "of a text",
        };
        match self.standard.criterion {
            Criterion::Output => format!(
                "|approximate − exact| / |exact| of a head's output, median over the queries {queries}, at most {QUERIES}"
            ),
            Criterion::Residual => format!(
                "|W_O (approximate − exact)| / |residual stream|, root mean square over the queries {queries}, at most {QUERIES}"
            ),
        }
    }

    fn subject_section(&self, length: usize, dossier: &Dossier) -> Section {
        let shape = self.evidence.shape();
        let heads = format!(
            "{} layers × {} query heads that read {} key-value heads of dimension {}; context {}",
            shape.layers, shape.heads, shape.key_value_heads, shape.head_dimension, shape.context
        );
        let lengths = self.evidence.lengths();
        let in_words = lengths.iter().map(|(length, _)| length.to_string()).collect::<Vec<_>>().join(", ");
        let mut all = match &self.evidence {
            Evidence::Run(run) => vec![
                ("model", run.subject.in_words()),
                ("heads", heads),
                ("text", run.text.in_words()),
                (
                    "segments",
                    format!(
                        "of {in_words} tokens, disjoint: {} calibrate the readers' tilts, {} others are measured",
                        run.calibrating,
                        lengths.first().map_or(0, |(_, texts)| *texts)
                    ),
                ),
            ],
            Evidence::Dumps(dumps) => {
                let file =
                    |file: &DumpFile| format!("`{}` ({})", literal(&file.name), files::short(file.sha256()));
                let files: Vec<String> = dumps.files.iter().map(file).collect();
                vec![
                    ("dumps", files.join(", ")),
                    ("heads", heads),
                    ("texts", format!("of {in_words} tokens, {}", dumps.in_words())),
                ]
            }
        };
        let candidates = self.deployed().count();
        all.extend([
            ("kept exactly", frame_in_words(&self.questions.frame)),
            ("error", self.error_in_words()),
            (
                "verdict",
                format!(
                    "accepted if the mean error over texts is at most the tolerance with confidence {CONFIDENCE} for some candidate \
                     (Student's law over texts, Holm's procedure over candidates: of {candidates} the first must pass at {:.4}), refused \
                     if it is above for each with the same confidence, else uncertain: more texts would decide",
                    (1.0 - CONFIDENCE) / candidates.max(1) as f64
                ),
            ),
            (
                "offline and streaming",
                "offline: the measure of the whole cache about the head's own mean tilt; streaming: in constant memory about \
                 one calibrated tilt that the readers of a key-value head share, as it would be deployed"
                    .to_string(),
            ),
        ]);
        all.extend(self.evidence.advice().map(|advice| ("advice", advice)));
        let mut blocks = vec![glossary(shape.order), facts(all), self.counts(length, dossier)];
        blocks.extend(self.heat_maps(length, dossier).into_iter().map(Block::HeatMap));
        let folded = Block::Folded {
            id: "heads-measured-how".to_string(),
            title: "Texts, words, counts for other tolerances, and maps of every measured number".to_string(),
            blocks,
        };
        Section::new("heads-subject", "How heads were measured", vec![folded])
    }

    /// How many heads get which verdict at which tolerance.
    fn counts(&self, length: usize, dossier: &Dossier) -> Block {
        let mut tolerances = TOLERANCES.to_vec();
        if !tolerances.contains(&self.standard.tolerance) {
            tolerances.push(self.standard.tolerance);
            tolerances.sort_by(f64::total_cmp);
        }
        let row = |tolerance: f64, running: Running| {
            let standard = Standard { tolerance, running, ..self.standard };
            let heads = Counts::of(&dossier.decide_heads(&standard));
            let groups = Counts::of(&dossier.decide_groups(&standard));
            vec![
                ("tolerance", Cell::Number { value: tolerance, error: None }),
                ("running", words(running)),
                ("heads accepted", whole(heads.accepted)),
                ("uncertain", whole(heads.uncertain)),
                ("refused", whole(heads.refused)),
                ("key-value heads accepted", whole(groups.accepted)),
                ("uncertain", whole(groups.uncertain)),
                ("refused", whole(groups.refused)),
            ]
        };
        let runnings = self.runnings();
        let rows =
            tolerances.iter().flat_map(|tolerance| runnings.iter().map(|running| row(*tolerance, *running)));
        let caption = format!(
            "Verdicts at {length} tokens: a head is accepted if some candidate is; a key-value head if all its readers accept \
             the same candidate. Only accepted key-value heads free memory."
        );
        table("verdicts", caption, rows.collect())
    }

    fn heat_maps(&self, length: usize, dossier: &Dossier) -> Vec<HeatMap> {
        let shape = dossier.shape();
        let numbers = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let map = |[id, title, caption, label]: [&str; 4], cell: &dyn Fn(usize, usize) -> Option<Spread>| {
            // What is not finite is a number off the scale, which the map tells from what was not measured.
            let mean = |layer, head| cell(layer, head).map_or(f64::INFINITY, |spread| spread.mean);
            let row = |layer| (0..shape.heads).map(|head| Some(mean(layer, head))).collect();
            HeatMap {
                id: id.to_string(),
                title: title.to_string(),
                caption: caption.to_string(),
                x: "query head".to_string(),
                y: "layer".to_string(),
                columns: numbers(shape.heads),
                rows: numbers(shape.layers),
                cells: (0..shape.layers).map(row).collect(),
                colour_label: label.to_string(),
                scale: Scale::Logarithmic,
                threshold: None,
            }
        };
        // The tilted Gaussian, or else the last that was asked.
        let shown = self.deployed().find(|(_, candidate)| *candidate == Candidate::TILTED_GAUSSIAN);
        let error = shown.or(self.deployed().last()).map(|(number, candidate)| {
            let Standard { running, criterion, tolerance, .. } = self.standard;
            let caption = format!(
                "One candidate alone, `{candidate}`, {running} at {length} tokens, mean over texts; dots mark heads at or below the tolerance of \
                 {tolerance} (a verdict also asks for the uncertainty over texts)."
            );
            let title = format!("Error of `{candidate}`");
            let said = ["replacement-error", &title, &caption, "relative error"];
            let map = map(said, &|layer, head| dossier.spread(layer, head, number, criterion));
            HeatMap { threshold: Some(tolerance), ..map }
        });
        let portrayed =
            |said, pick: fn(&Portrait) -> f64| map(said, &|layer, head| dossier.portrayed(layer, head, pick));
        let portraits = [
            portrayed(
                [
                    "score-variance",
                    "Score variance s²",
                    "The theory asks for prompts well above $e^{s^2}$ tokens; mean over queries and texts, the first tokens left out.",
                    "s²",
                ],
                |portrait| portrait.score_variance,
            ),
            portrayed(
                [
                    "effective-tokens",
                    "Effective tokens",
                    "1/Σp²: over how many tokens a query spreads its weight; median over queries, mean over texts.",
                    "tokens",
                ],
                |portrait| portrait.effective_tokens,
            ),
            portrayed(
                [
                    "half-token-noise",
                    "Half-token noise",
                    "How far the output moves when a query sees a random half of its tokens: a scale for errors. A replacement that \
                     knows all tokens can do better.",
                    "relative change",
                ],
                |portrait| portrait.half_token_noise,
            ),
        ];
        error.into_iter().chain(portraits).collect()
    }

    /// The three candidates of least error as they would be deployed, and those whose error is not finite on some text.
    pub(super) fn best_in_words(&self, dossier: &Dossier, layer: usize, head: usize) -> String {
        let (mut best, mut failed): (Vec<(Spread, Candidate)>, Vec<String>) = (Vec::new(), Vec::new());
        for (number, candidate) in self.deployed() {
            let spread = dossier.spread(layer, head, number, self.standard.criterion);
            match spread.filter(|spread| spread.mean.is_finite()) {
                Some(spread) => best.push((spread, candidate)),
                None => failed.push(format!("`{candidate}`")),
            }
        }
        best.sort_by(|(one, _), (other, _)| one.mean.total_cmp(&other.mean));
        let words = best.iter().take(3).map(|(spread, candidate)| {
            let error = spread.standard_error.map_or(String::new(), |error| format!(" ± {}", figures(error)));
            format!("`{candidate}` {}{error}", figures(spread.mean))
        });
        let mut words = words.collect::<Vec<_>>().join(", ");
        if !failed.is_empty() {
            let separator = if words.is_empty() { "" } else { "; " };
            words.push_str(&format!("{separator}{NOT_FINITE}: {}", failed.join(", ")));
        }
        words
    }
}
