//! Claim: along one growing prompt, attention converges to that of the infinite prompt almost surely.

use super::evidence::{Findings, named, short};
use super::{Claim, Judgement};
use crate::kinds::path::{Paths, figures, paths, table};
use crate::tabulating::rounded;
use esscher_lab::{Failure, Table};
use esscher_report::{Block, Cell, DataTable, Verdict};

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

/// What one law's prompts show.
struct Shown {
    /// The largest distance over the expected one at the longest length.
    ratio: f64,
    /// The largest share of the first decade's distance that is left in the last decade.
    left: f64,
    /// The smallest distance at the longest length over the size of the limit.
    relative: f64,
}

fn shown(known: &Paths) -> Option<Shown> {
    let expected = known.theory.last()?.1;
    let (mut ratio, mut left, mut relative) = (0.0_f64, 0.0_f64, f64::INFINITY);
    for prompt in &known.prompts {
        let (first, last) = (prompt.first()?, prompt.last()?);
        let largest = |keep: &dyn Fn(f64) -> bool| {
            prompt.iter().filter(|point| keep(point.0)).map(|point| point.1).fold(0.0, f64::max)
        };
        let early = largest(&|length| length <= 10.0 * first.0);
        let late = largest(&|length| 10.0 * length >= last.0);
        ratio = ratio.max(last.1 / expected);
        left = left.max(late / early);
        relative = relative.min(last.1 / known.limit);
    }
    Some(Shown { ratio, left, relative })
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let paths = paths(result)?;
    let mut findings = Findings::default();
    let (mut measured, mut controls, mut prompts) = (0, 0, 0);
    let (mut ratio, mut left, mut relative, mut length) = (0.0_f64, 0.0_f64, f64::INFINITY, 0.0_f64);
    let mut rows = Vec::new();
    for known in &paths {
        let Some(found) = shown(known) else { continue };
        let is_control = known.law.contains(CONTROL);
        if is_control {
            controls += 1;
            relative = relative.min(found.relative);
            findings.trust(found.relative >= FROZEN, || {
                format!(
                    "the control {} came within {} of its limit, so the measurement sees convergence where there is \
                     none yet",
                    known.law,
                    short(found.relative)
                )
            });
        } else {
            measured += 1;
            prompts += known.prompts.len();
            (ratio, left) = (ratio.max(found.ratio), left.max(found.left));
            length = length.max(known.theory.last().map_or(0.0, |point| point.0));
            findings.require(found.ratio <= FARTHEST, || {
                format!("a prompt of {} ends {} expected distances away", known.law, short(found.ratio))
            });
            findings.require(found.left < LEFT, || {
                format!(
                    "a prompt of {} keeps {} of its first distance in the last decade",
                    known.law,
                    short(found.left)
                )
            });
        }
        rows.push(vec![
            Cell::Text(known.law.clone()),
            rounded(found.ratio),
            rounded(found.left),
            rounded(found.relative),
        ]);
    }
    let (verdict, reason) = if measured == 0 || controls == 0 {
        (
            Verdict::NotMeasurable,
            "The result has no law with an expected distance, or no control.".to_string(),
        )
    } else {
        findings.verdict(format!(
            "At {} tokens all {prompts} prompts are within {} expected distances of their limit (allowed: 5). In the last \
             decade of lengths they keep at most {} of their distance in the first (allowed: 0.5). The frozen control \
             is still {} of the size of its limit away.",
            short(length),
            short(ratio),
            short(left),
            short(relative)
        ))
    };
    let numbers = DataTable {
        id: "judged".to_string(),
        caption: "What is judged: the largest final distance over the expected one; the largest share of the first \
                  decade's distance left in the last decade; the smallest final distance over $|T[\\mu]|$. Sampled, \
                  extremes over single prompts."
            .to_string(),
        columns: ["law", "final/expected", "last/first decade", "final/limit"].map(str::to_string).to_vec(),
        rows,
    };
    let mut evidence: Vec<Block> = figures(&paths).into_iter().map(Block::Figure).collect();
    evidence.extend([Block::Table(numbers), Block::Table(table(&paths))]);
    Ok(Judgement { verdict, reason, evidence: named(CLAIM.name, evidence) })
}
