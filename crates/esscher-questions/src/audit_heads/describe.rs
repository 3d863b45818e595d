//! The audit of heads in words, tables and heat maps; what replaces them has its own file.

use super::compute::HeadsPlan;
use super::evidence::Evidence;
use crate::audit::counts::Counts;
use crate::audit::{NOT_FINITE, frame_in_words, number_cell};
use crate::measured::figures;
use crate::tabulating::rounded;
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::discrepancy::QUERIES;
use esscher_audit::dossier::{Criterion, Dossier};
use esscher_audit::head::Order;
use esscher_audit::portrait::Portrait;
use esscher_audit::verdict::{CONFIDENCE, Spread, spread};
use esscher_report::{Block, Cell, DataTable, HeatMap, Scale, Section};

/// The tolerances that every report tells.
const TOLERANCES: [f64; 3] = [0.02, 0.05, 0.10];

/// Every candidate that was asked may be accepted.
pub(super) fn any(_: &Candidate) -> bool {
    true
}

impl HeadsPlan {
    /// The sections of a report; what is not about lengths is about the longest.
    pub(super) fn sections_of(&self, dossiers: &[(usize, Dossier)]) -> Vec<Section> {
        let Some((length, longest)) = dossiers.last() else { return Vec::new() };
        let mut sections = vec![
            self.subject_section(),
            self.verdicts_section(*length, longest),
            self.candidates_section(dossiers),
            self.every_head_section(*length, longest),
        ];
        sections.retain(|section| !section.blocks.is_empty());
        sections
    }

    /// The ways of running that were asked.
    fn runnings(&self) -> Vec<Running> {
        let asked = |running: &Running| self.questions.candidates.iter().any(|(_, one)| one == running);
        Running::ALL.into_iter().filter(asked).collect()
    }

    /// How many candidates a verdict chooses from.
    fn candidates_when_deployed(&self) -> usize {
        self.questions.candidates.iter().filter(|(_, running)| *running == self.deployed()).count()
    }

    fn error_in_words(&self) -> String {
        let queries = match self.evidence.shape().order {
            Order::Causal => "of a text's second half",
            Order::Whole => "of a text",
        };
        match self.criterion {
            Criterion::Output => format!(
                "|approximate − exact| / |exact| of a head's output, median over the queries {queries}, at most {QUERIES}"
            ),
            Criterion::Residual => format!(
                "|W_O (approximate − exact)| / |residual stream|, root mean square over the queries {queries}, at most {QUERIES}"
            ),
        }
    }

    fn subject_section(&self) -> Section {
        let shape = self.evidence.shape();
        let fact = |name: &str, value: String| (name.to_string(), value);
        let heads = fact(
            "heads",
            format!(
                "{} layers × {} query heads that read {} key-value heads of dimension {}; context {}",
                shape.layers, shape.heads, shape.key_value_heads, shape.head_dimension, shape.context
            ),
        );
        let lengths: Vec<(usize, usize)> = self.evidence.lengths();
        let in_words = lengths.iter().map(|(length, _)| length.to_string()).collect::<Vec<_>>().join(", ");
        let short = |sha256: &str| sha256.chars().take(16).collect::<String>();
        let mut facts = match &self.evidence {
            Evidence::Run(run) => vec![
                fact(
                    "model",
                    format!(
                        "`{}`, {}, SHA-256 {}…",
                        run.subject.name,
                        run.subject.format,
                        short(&run.subject.sha256)
                    ),
                ),
                heads,
                fact("text", run.text.in_words()),
                fact(
                    "segments",
                    format!(
                        "of {in_words} tokens, disjoint: {} calibrate the readers' tilts, {} others are measured",
                        run.calibrating,
                        lengths.first().map_or(0, |(_, texts)| *texts)
                    ),
                ),
            ],
            Evidence::Dumps(dumps) => {
                let files: Vec<String> = dumps
                    .files()
                    .iter()
                    .map(|file| format!("`{}` (SHA-256 {}…)", file.name, short(file.sha256())))
                    .collect();
                vec![
                    fact("dumps", files.join(", ")),
                    heads,
                    fact("texts", format!("of {in_words} tokens, {}", dumps.in_words())),
                ]
            }
        };
        facts.extend([
            fact("kept exactly", frame_in_words(&self.questions.frame)),
            fact("error", self.error_in_words()),
            fact(
                "verdict",
                format!(
                    "accepted if the mean error over texts is at most the tolerance with confidence {CONFIDENCE} for some candidate \
                     (Student's law over texts, Holm's procedure over candidates: of {} the first must pass at {:.4}), refused \
                     if it is above for each with the same confidence, else uncertain: more texts would decide",
                    self.candidates_when_deployed(),
                    (1.0 - CONFIDENCE) / self.candidates_when_deployed().max(1) as f64
                ),
            ),
            fact(
                "offline and streaming",
                "offline: the measure of the whole cache about the head's own mean tilt; streaming: in constant memory about \
                 one calibrated tilt that the readers of a key-value head share, as it would be deployed"
                    .to_string(),
            ),
        ]);
        if let Evidence::Dumps(dumps) = &self.evidence {
            facts.extend(dumps.advice().map(|advice| fact("advice", advice)));
        }
        Section {
            id: "heads-subject".to_string(),
            title: "What was examined".to_string(),
            verdict: None,
            blocks: vec![Block::Facts(facts)],
        }
    }

    fn verdicts_section(&self, length: usize, dossier: &Dossier) -> Section {
        let mut tolerances = TOLERANCES.to_vec();
        if !tolerances.contains(&self.tolerance) {
            tolerances.push(self.tolerance);
            tolerances.sort_by(f64::total_cmp);
        }
        let mut rows = Vec::new();
        for tolerance in tolerances {
            for running in self.runnings() {
                let heads = Counts::of(&dossier.decide_heads(running, self.criterion, tolerance, &any));
                let groups = Counts::of(&dossier.decide_groups(running, self.criterion, tolerance, &any));
                let mut row = vec![
                    Cell::Number { value: tolerance, error: None },
                    Cell::Text(running.name().to_string()),
                ];
                for counts in [heads, groups] {
                    let counts = [counts.accepted, counts.uncertain, counts.refused];
                    row.extend(counts.map(|count| Cell::Integer(count as i64)));
                }
                rows.push(row);
            }
        }
        let columns = [
            "tolerance",
            "running",
            "heads accepted",
            "uncertain",
            "refused",
            "key-value heads accepted",
            "uncertain",
            "refused",
        ];
        let table = DataTable {
            id: "verdicts".to_string(),
            caption: format!(
                "Verdicts at {length} tokens: a head is accepted if some candidate is; a key-value head if all its readers accept \
                 the same candidate. Only accepted key-value heads free memory."
            ),
            columns: columns.map(String::from).to_vec(),
            rows,
        };
        let mut blocks = vec![Block::Table(table)];
        blocks.extend(self.heat_maps(length, dossier).into_iter().map(Block::HeatMap));
        Section {
            id: "verdicts".to_string(),
            title: "Which heads may be replaced".to_string(),
            verdict: None,
            blocks,
        }
    }

    fn heat_maps(&self, length: usize, dossier: &Dossier) -> Vec<HeatMap> {
        let shape = dossier.shape();
        let numbers = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let map = |id: &str,
                   title: &str,
                   caption: String,
                   label: &str,
                   cell: &dyn Fn(usize, usize) -> Option<Spread>| HeatMap {
            id: id.to_string(),
            title: title.to_string(),
            caption,
            x: "query head".to_string(),
            y: "layer".to_string(),
            columns: numbers(shape.heads),
            rows: numbers(shape.layers),
            // What is not finite is a number off the scale, which the map tells from what was not measured.
            cells: (0..shape.layers)
                .map(|layer| {
                    let mean = |head| cell(layer, head).map_or(f64::INFINITY, |spread| spread.mean);
                    (0..shape.heads).map(|head| Some(mean(head))).collect()
                })
                .collect(),
            colour_label: label.to_string(),
            scale: Scale::Logarithmic,
            threshold: None,
        };
        let portrait = |pick: fn(&Portrait) -> f64| {
            move |layer: usize, head: usize| {
                let values: Vec<f64> =
                    dossier.findings(layer, head).map(|found| pick(&found.portrait)).collect();
                spread(&values)
            }
        };
        let mut maps = Vec::new();
        if let Some((number, name)) = self.shown_candidate() {
            let error = |layer: usize, head: usize| dossier.spread(layer, head, number, self.criterion);
            let caption = format!(
                "{name} at {length} tokens, mean over texts; dots mark heads at or below the tolerance of {} (a verdict also asks \
                 for the uncertainty over texts).",
                self.tolerance
            );
            let title = "Error of the replacement";
            let error = map("replacement-error", title, caption, "relative error", &error);
            maps.push(HeatMap { threshold: Some(self.tolerance), ..error });
        }
        maps.push(map(
            "score-variance",
            "Score variance s²",
            "The theory asks for prompts well above $e^{s^2}$ tokens; mean over queries and texts, the first tokens left out."
                .to_string(),
            "s²",
            &portrait(|portrait| portrait.score_variance),
        ));
        maps.push(map(
            "effective-tokens",
            "Effective tokens",
            "1/Σp²: over how many tokens a query spreads its weight; median over queries, mean over texts."
                .to_string(),
            "tokens",
            &portrait(|portrait| portrait.effective_tokens),
        ));
        maps.push(map(
            "half-token-noise",
            "Half-token noise",
            "How far the output moves when a query sees a random half of its tokens: what a prompt of this length knows of its \
             own limit."
                .to_string(),
            "relative change",
            &portrait(|portrait| portrait.half_token_noise),
        ));
        maps
    }

    /// The candidate of the first heat map: the tilted Gaussian as it would be deployed, or else the last that was asked so.
    fn shown_candidate(&self) -> Option<(usize, String)> {
        let deployed = self.deployed();
        let asked =
            self.questions.candidates.iter().enumerate().filter(|(_, (_, running))| *running == deployed);
        let named = asked.map(|(number, (candidate, running))| {
            (number, candidate.to_string(), format!("`{candidate}`, {}", running.name()))
        });
        let named: Vec<_> = named.collect();
        let tilted = named.iter().find(|(_, name, _)| name == "tilted-gaussian");
        tilted.or(named.last()).map(|(number, _, words)| (*number, words.clone()))
    }

    fn every_head_section(&self, length: usize, dossier: &Dossier) -> Section {
        let shape = dossier.shape();
        let deployed = self.deployed();
        let decisions = dossier.decide_heads(deployed, self.criterion, self.tolerance, &any);
        let mut rows = Vec::new();
        for (layer, of_layer) in decisions.iter().enumerate() {
            for (head, decision) in of_layer.iter().enumerate() {
                let portraits: Vec<&Portrait> =
                    dossier.findings(layer, head).map(|found| &found.portrait).collect();
                let of = |pick: fn(&Portrait) -> f64| {
                    spread(&portraits.iter().map(|portrait| pick(portrait)).collect::<Vec<_>>())
                };
                let cell = |pick| number_cell(of(pick));
                let asked = of(|portrait| portrait.score_variance).map(|spread| spread.mean.exp());
                let asked = match asked {
                    Some(length) if length.is_finite() => rounded(length),
                    // The largest number of double precision.
                    Some(_) => Cell::Text("above 10³⁰⁸".to_string()),
                    None => Cell::Text(NOT_FINITE.to_string()),
                };
                rows.push(vec![
                    Cell::Integer(layer as i64),
                    Cell::Integer(head as i64),
                    cell(|portrait| portrait.score_variance),
                    asked,
                    cell(|portrait| portrait.effective_tokens),
                    cell(|portrait| portrait.half_token_noise),
                    Cell::Text(self.sink_in_words(length, &portraits)),
                    Cell::Text(self.best_in_words(dossier, layer, head)),
                    Cell::Text(decision.verdict.name().to_string()),
                    decision
                        .candidate
                        .map_or(Cell::Missing, |candidate| Cell::Text(format!("`{candidate}`"))),
                ]);
            }
        }
        let table = DataTable {
            id: "heads".to_string(),
            caption: format!(
                "Every one of {} heads at {length} tokens, {}, tolerance {}: means over texts with standard errors. $e^{{s^2}}$ is the \
                 length that the theory asks for; the sink is the token with the largest mean weight on the first text.",
                shape.layers * shape.heads,
                deployed.name(),
                self.tolerance
            ),
            columns: [
                "layer",
                "head",
                "s²",
                "$e^{s^2}$",
                "effective tokens",
                "half-token noise",
                "sink",
                "best three",
                "verdict",
                "cheapest accepted",
            ]
            .map(String::from)
            .to_vec(),
            rows,
        };
        Section {
            id: "every-head".to_string(),
            title: "Every head".to_string(),
            verdict: None,
            blocks: vec![Block::Table(table)],
        }
    }

    /// The sink on the first text: position, token, weight.
    fn sink_in_words(&self, length: usize, portraits: &[&Portrait]) -> String {
        let Some(portrait) = portraits.first() else { return String::new() };
        let sink = portrait.sink;
        let token = self.evidence.token(length, sink.position);
        // Backquotes and dollars would be read as markup.
        let token = token.map_or(String::new(), |token| {
            let plain: String = token.chars().filter(|sign| !"`$*".contains(*sign)).collect();
            format!(" “{plain}”")
        });
        format!("{}{token} {}", sink.position, figures(sink.weight))
    }

    /// The three candidates of least error as they would be deployed, and those whose error is not finite on some text.
    fn best_in_words(&self, dossier: &Dossier, layer: usize, head: usize) -> String {
        let deployed = self.deployed();
        let (mut best, mut failed): (Vec<(Spread, Candidate)>, Vec<String>) = (Vec::new(), Vec::new());
        for (number, (candidate, running)) in self.questions.candidates.iter().enumerate() {
            if *running != deployed {
                continue;
            }
            match dossier.spread(layer, head, number, self.criterion).filter(|spread| spread.mean.is_finite())
            {
                Some(spread) => best.push((spread, *candidate)),
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
