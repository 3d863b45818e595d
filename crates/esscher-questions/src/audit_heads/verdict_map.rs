//! The verdicts: a map of layers and heads, and for every layer what is known of its heads.

use super::compute::HeadsPlan;
use crate::audit::counts::{Counts, are, texts};
use crate::audit::{NOT_FINITE, number_cell};
use crate::measured::figures;
use crate::tabulating::{code, rounded, table, whole, words};
use esscher_audit::assignment::Running;
use esscher_audit::candidate::Candidate;
use esscher_audit::dossier::{Criterion, Dossier};
use esscher_audit::portrait::{Portrait, TokenWeight, shown_query};
use esscher_audit::replacement::Middle;
use esscher_audit::verdict::{Decision, Verdict};
use esscher_report::{Block, Cell, Kind, Section, Tile, Tiles, Tone, literal};

/// The id of the section on verdicts.
pub(crate) const VERDICTS: &str = "verdicts";

/// Below this share of the last query's tokens little is replaced, and small errors say little.
const LITTLE: f64 = 0.3;

/// As many tokens before the shown query are quoted.
const QUOTED: usize = 12;

impl HeadsPlan {
    pub(super) fn verdicts_section(&self, length: usize, dossier: &Dossier) -> Section {
        let decisions = dossier.decide_heads(&self.standard);
        let mut blocks = vec![Block::Lead(self.lead(length, dossier))];
        blocks.push(Block::Tiles(self.tiles(length, dossier, &decisions)));
        blocks.extend(self.shown_query_in_words(length, dossier).map(Block::Prose));
        blocks.push(Block::Prose(
            "Errors are means over texts. s² is the variance of the scores; $e^{s^2}$ the length that the theory asks for, a sufficient \
             one: heads with less are accepted if what they return is measured to be close. Effective tokens: over how many a query \
             spreads its weight. Half-token noise: how far the output moves if a query sees a random half."
                .to_string(),
        ));
        blocks.extend(
            (0..dossier.shape().layers).map(|layer| self.layer(length, dossier, layer, &decisions[layer])),
        );
        Section::new(VERDICTS, "Which heads", blocks)
    }

    /// The finding, prose.
    pub(crate) fn lead(&self, length: usize, dossier: &Dossier) -> String {
        let decisions = dossier.decide_heads(&self.standard);
        let (heads, groups) = (Counts::of(&decisions), Counts::of(&dossier.decide_groups(&self.standard)));
        let tolerance = percent(self.standard.tolerance);
        let meaning = match self.standard.criterion {
            Criterion::Output => {
                format!(
                    "some small state answers the head’s median query within {tolerance} of exact attention"
                )
            }
            Criterion::Residual => format!(
                "what some small state adds to the residual stream differs from what exact attention adds by at most {tolerance} of the \
                 stream, in root mean square over queries"
            ),
        };
        let running = match self.standard.running {
            Running::Streaming => ", in constant memory, as they would be deployed",
            Running::Offline => "",
        };
        let lead = format!(
            "**{} of {} query heads {} accepted** at {length} tokens{running}; {} {} refused and {} not decided by {}. Accepted means that \
             {meaning}. Of {} key-value heads, whose caches may go only if all that read them agree, {} {} accepted.",
            heads.accepted,
            heads.all(),
            are(heads.accepted),
            heads.refused,
            are(heads.refused),
            heads.uncertain,
            texts(dossier.findings(0, 0).count()),
            groups.all(),
            groups.accepted,
            are(groups.accepted),
        );
        match self.little_is_replaced(length) {
            Some(warning) => format!("{lead} But {warning}."),
            None => lead,
        }
    }

    /// A warning where almost all is kept exactly.
    pub(crate) fn little_is_replaced(&self, length: usize) -> Option<String> {
        let (least, most) = self.middle_share(length);
        (most < LITTLE).then(|| {
            format!(
                "at {length} tokens only {:.0} to {:.0} % of what the last query sees is replaced, the rest is kept exactly: that many \
                 heads are accepted says little, measure at longer texts",
                100.0 * least,
                100.0 * most
            )
        })
    }

    fn tiles(&self, length: usize, dossier: &Dossier, decisions: &[Vec<Decision>]) -> Tiles {
        let shape = dossier.shape();
        let numbers = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        let tile = |layer: usize, head: usize| {
            let decision = decisions.get(layer)?.get(head)?;
            let kind = match decision.verdict {
                Verdict::Accepted => 0,
                Verdict::Uncertain => 1,
                Verdict::Refused => 2,
            };
            let by = decision.candidate.map_or(String::new(), |candidate| format!(" with {candidate}"));
            let error = match decision.best_error.is_finite() {
                true => format!("least error {}", figures(decision.best_error)),
                false => format!("errors {NOT_FINITE}"),
            };
            Some(Tile {
                kind,
                words: decision.candidate.map_or(String::new(), abbreviated),
                detail: format!("layer {layer}, head {head}: {}{by}, {error}", decision.verdict),
                target: layer_id(layer),
            })
        };
        let kinds = [("accepted", Tone::Good), ("uncertain", Tone::Open), ("refused", Tone::Bad)];
        let counts = Counts::of(decisions);
        Tiles {
            id: "verdict-map".to_string(),
            title: format!(
                "{} of {} query heads are accepted{}",
                counts.accepted,
                counts.all(),
                if self.standard.running == Running::Streaming { ", in constant memory" } else { "" }
            ),
            caption: format!(
                "Every head at {length} tokens, {}, tolerance {}. Words are the cheapest accepted candidate: `0` nothing, `mean`, `G` the \
                 plain Gaussian, `tG` the tilted one, `rG` with its rank, `tM` so many tilted means, `+` tokens kept beside. A click \
                 leads to the layer.{}",
                self.standard.running,
                percent(self.standard.tolerance),
                match shape.heads / shape.key_value_heads.max(1) {
                    0 | 1 => String::new(),
                    shared => format!(
                        " Query heads 0 to {} share a key-value head, and so on: its cache is freed if one candidate is accepted for all of \
                         them.",
                        shared - 1
                    ),
                }
            ),
            x: "query head".to_string(),
            y: "layer".to_string(),
            columns: numbers(shape.heads),
            rows: numbers(shape.layers),
            kinds: kinds.map(|(name, tone)| Kind { name: name.to_string(), tone }).to_vec(),
            cells: (0..shape.layers)
                .map(|layer| (0..shape.heads).map(|head| tile(layer, head)).collect())
                .collect(),
        }
    }

    /// What the query whose weights are shown has just read.
    fn shown_query_in_words(&self, length: usize, dossier: &Dossier) -> Option<String> {
        let at = shown_query(dossier.shape().order, length);
        let read = self.evidence.words(length, at.saturating_sub(QUOTED - 1)..=at)?;
        Some(format!(
            "Below, layer by layer, every head: its verdict, its errors, and the tokens to which one query gives most weight. It is the \
             query of token {at} of the first text, where the text reads “… {}”. A number in brackets says how many tokens back.",
            literal(read.split_whitespace().collect::<Vec<_>>().join(" "))
        ))
    }

    fn layer(&self, length: usize, dossier: &Dossier, layer: usize, decisions: &[Decision]) -> Block {
        let row = |(head, decision): (usize, &Decision)| {
            let of = |pick: fn(&Portrait) -> f64| dossier.portrayed(layer, head, pick);
            let score_variance = of(|portrait| portrait.score_variance);
            let asked = match score_variance.map(|spread| spread.mean.exp()) {
                Some(length) if length.is_finite() => rounded(length),
                // The largest number of double precision.
                Some(_) => words("above 10³⁰⁸"),
                None => words(NOT_FINITE),
            };
            vec![
                ("head", whole(head)),
                ("verdict", words(decision.verdict)),
                ("cheapest accepted", decision.candidate.map_or(Cell::Missing, code)),
                ("least errors", Cell::Text(self.best_in_words(dossier, layer, head))),
                ("looks at", Cell::Text(self.looks_at(length, dossier, layer, head))),
                ("s²", number_cell(score_variance)),
                ("$e^{s^2}$", asked),
                ("effective tokens", number_cell(of(|portrait| portrait.effective_tokens))),
                ("half-token noise", number_cell(of(|portrait| portrait.half_token_noise))),
            ]
        };
        let counts = Counts::of(&[decisions.to_vec()]);
        let caption = format!("The heads of layer {layer} at {length} tokens.");
        let rows = decisions.iter().enumerate().map(row).collect();
        Block::Folded {
            id: layer_id(layer),
            title: format!(
                "Layer {layer}: {} accepted, {} uncertain, {} refused",
                counts.accepted, counts.uncertain, counts.refused
            ),
            blocks: vec![table(&format!("heads-of-layer-{layer}"), caption, rows)],
        }
    }

    /// The heaviest tokens of the shown query on the first text, prose.
    fn looks_at(&self, length: usize, dossier: &Dossier, layer: usize, head: usize) -> String {
        let Some(found) = dossier.findings(layer, head).next() else { return String::new() };
        let at = shown_query(dossier.shape().order, length);
        let word = |token: &TokenWeight| {
            let place = match at.checked_sub(token.position) {
                Some(0) => "itself".to_string(),
                Some(back) => format!("−{back}"),
                None => format!("+{}", token.position - at),
            };
            let text = self.evidence.token(length, token.position);
            let text = text.map_or(String::new(), |text| format!("“{}” ", literal(text.trim())));
            match token.weight.is_finite() {
                true => format!("{text}{} ({place})", percent(token.weight)),
                false => format!("{text}{NOT_FINITE} ({place})"),
            }
        };
        found.portrait.heaviest.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

fn layer_id(layer: usize) -> String {
    format!("layer-{layer}")
}

/// A share in per cent as people write it: 0.7 %, 5 %, 42 %.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let written = match percent {
        0.1..9.95 => format!("{percent:.1}"),
        9.95.. => format!("{percent:.0}"),
        _ => figures(percent),
    };
    format!("{} %", written.strip_suffix(".0").unwrap_or(&written))
}

/// At most about eight characters.
fn abbreviated(candidate: Candidate) -> String {
    let Candidate::Measure { top, middle } = candidate else { return candidate.to_string() };
    let short = match middle {
        Middle::Dropped => "0".to_string(),
        Middle::Gaussian => "G".to_string(),
        Middle::TiltedGaussian => "tG".to_string(),
        other => other
            .to_string()
            .replace("reduced-gaussian/", "rG")
            .replace("tilted-means/", "tM")
            .replace("tilted-gaussians/", "tG×"),
    };
    if top == 0 { short } else { format!("{top}+{short}") }
}
