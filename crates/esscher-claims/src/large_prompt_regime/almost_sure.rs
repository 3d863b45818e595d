//! Claim: along one growing prompt, attention converges to that of the infinite prompt almost surely.

use super::evidence::short;
use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_lab::{Failure, Table};
use esscher_questions::path::answer::{Paths, Row, paths};
use esscher_questions::path::describe::{figures, table};
use esscher_questions::tabulating::rounded;
use esscher_report::{Block, Cell, DataTable};

pub(super) const CLAIM: Claim = Claim {
    name: "almost-sure",
    title: "Convergence along one prompt",
    statement: "As one prompt of independent tokens grows, its attention at a query converges almost surely to that of \
                the infinite prompt, wherever the tilted law has a mean.",
    formula: r"T[\mu_L](z) \xrightarrow[L\to\infty]{\text{a.s.}} T[\mu](z), \qquad \mu_L = \frac1L \sum_{l\le L} \delta_{z_l}",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, the large-prompt limit.",
    measurement: "Single prompts, simulated token by token; all lengths are prefixes of the same tokens. The distance is \
                  the root mean square over four queries of size 1. Compared with the root of its expected square, \
                  exact for normal tokens and mixtures, the $1/L$ asymptote for bounded ones. Control: normal tokens of \
                  scale 8, whose softmax is frozen on its largest scores at these lengths.",
    criterion: "A prompt that at its longest length is more than five times the expected distance away (a chance below \
                $6 \\cdot 10^{-7}$ each where the distance is about normal, below $10^{-4}$ for all together); or whose \
                largest distance over the last decade of lengths is not below half of that over the first (below \
                $10^{-3}$ together). Nothing is decided if the control comes within 5 % of its limit, which would take a \
                score more than seven deviations out (below $10^{-5}$): the measurement would see convergence where \
                there is none yet.",
    quick: include_str!("../../../../experiments/almost-sure/quick.toml"),
    full: include_str!("../../../../experiments/almost-sure/full.toml"),
    judge,
};

/// In expected distances.
const FARTHEST: f64 = 5.0;
/// The share of the first decade's distance that the last one may keep.
const LEFT: f64 = 0.5;
/// A control is at least so far from its limit, relatively.
const FROZEN: f64 = 0.05;
const CONTROL: &str = "(control)";

/// The extremes of some prompts.
struct Shown {
    /// The largest distance over the expected one at the longest length.
    ratio: f64,
    /// The largest share of the first decade's distance that is left in the last decade.
    left: f64,
    /// The smallest distance at the longest length over the size of the limit.
    relative: f64,
}

impl Shown {
    const NOTHING: Self = Shown { ratio: 0.0, left: 0.0, relative: f64::INFINITY };

    fn with(self, other: &Shown) -> Self {
        Shown {
            ratio: self.ratio.max(other.ratio),
            left: self.left.max(other.left),
            relative: self.relative.min(other.relative),
        }
    }

    /// What one law's prompts show.
    fn of(known: &Paths) -> Option<Self> {
        let expected = known.theory.last()?.1;
        known.prompts.iter().try_fold(Shown::NOTHING, |shown, prompt| {
            let (first, last) = (prompt.first()?, prompt.last()?);
            let largest = |keep: &dyn Fn(f64) -> bool| {
                prompt.iter().filter(|point| keep(point.0)).map(|point| point.1).fold(0.0, f64::max)
            };
            let early = largest(&|length| length <= 10.0 * first.0);
            let late = largest(&|length| 10.0 * length >= last.0);
            let (ratio, relative) = (last.1 / expected, last.1 / known.limit);
            Some(shown.with(&Shown { ratio, left: late / early, relative }))
        })
    }
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let paths = paths(&result.read::<Row>()?);
    let mut judging = Judging::default();
    let shown: Vec<(&Paths, Shown)> =
        paths.iter().filter_map(|known| Some((known, Shown::of(known)?))).collect();
    let (controls, measured): (Vec<_>, Vec<_>) =
        shown.iter().partition(|(known, _)| known.law.contains(CONTROL));
    for (Paths { law, .. }, found) in &controls {
        judging.trust(found.relative >= FROZEN, || {
            let relative = short(found.relative);
            format!(
                "the control {law} came within {relative} of its limit, so the measurement sees convergence where there \
                 is none yet"
            )
        });
    }
    for (Paths { law, .. }, found) in &measured {
        judging.require(found.ratio <= FARTHEST, || {
            format!("a prompt of {law} ends {} expected distances away", short(found.ratio))
        });
        judging.require(found.left < LEFT, || {
            format!("a prompt of {law} keeps {} of its first distance in the last decade", short(found.left))
        });
    }
    let is_complete = !measured.is_empty() && !controls.is_empty();
    judging.trust(is_complete, || "no law has an expected distance, or there is no control".to_string());
    let extremes =
        |of: &[&(&Paths, Shown)]| of.iter().fold(Shown::NOTHING, |all, (_, found)| all.with(found));
    let (extreme, control) = (extremes(&measured), extremes(&controls));
    let longest = measured.iter().filter_map(|(known, _)| known.theory.last()).map(|point| point.0);
    let prompts: usize = measured.iter().map(|(known, _)| known.prompts.len()).sum();
    let found = is_complete.then(|| {
        format!(
            "At {} tokens all {prompts} prompts are within {} expected distances of their limit (allowed: 5). In the last \
             decade of lengths they keep at most {} of their distance in the first (allowed: 0.5). The frozen control \
             is still {} of the size of its limit away.",
            short(longest.fold(0.0, f64::max)),
            short(extreme.ratio),
            short(extreme.left),
            short(control.relative)
        )
    });
    let mut evidence: Vec<Block> = figures(&paths).into_iter().map(Block::Figure).collect();
    evidence.extend([Block::Table(judged(&shown)), Block::Table(table(&paths))]);
    Ok(judging.judgement(CLAIM.name, found.unwrap_or_default(), evidence))
}

fn judged(shown: &[(&Paths, Shown)]) -> DataTable {
    let line = |(known, found): &(&Paths, Shown)| {
        let numbers = [found.ratio, found.left, found.relative].map(rounded);
        [Cell::Text(known.law.clone())].into_iter().chain(numbers).collect()
    };
    DataTable {
        id: "judged".to_string(),
        caption: "What is judged: the largest final distance over the expected one; the largest share of the first \
                  decade's distance left in the last decade; the smallest final distance over $|T[\\mu]|$. Sampled, \
                  extremes over single prompts."
            .to_string(),
        columns: ["law", "final/expected", "last/first decade", "final/limit"].map(str::to_string).to_vec(),
        rows: shown.iter().map(line).collect(),
    }
}
