//! Claim: along one growing prompt, attention converges to that of the infinite prompt almost surely.

use super::evidence::{and, at_least_percent, at_most_percent, grouped, largest, smallest, table, text};
use crate::judging::{Found, Judging, undecided};
use esscher_lab::{Failure, Table};
use esscher_questions::measured::figures;
use esscher_questions::path::answer::{Paths, Row, paths};
use esscher_questions::path::describe;
use esscher_questions::tabulating::rounded;
use esscher_report::{Block, literal};

claim! {
    name: "almost-sure",
    title: "Single prompts converge as they grow",
    statement: "As one prompt of independent tokens grows, its attention at a query converges almost surely to that of \
                the infinite prompt, wherever the mean with weights $e^{\\langle Uz, z'\\rangle}$ exists.",
    formula: r"T[\mu_L](z) \xrightarrow[L\to\infty]{\text{a.s.}} T[\mu](z), \qquad \mu_L = \frac1L \sum_{l\le L} \delta_{z_l}",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), the large-prompt limit.",
    measurement: "Single prompts, simulated token by token; all lengths are prefixes of the same tokens. The distance is \
                  the root mean square over four queries of size 1. It is compared with the root of its expected square: \
                  exact for normal tokens and mixtures, the asymptote for long prompts, whose square falls like $1/L$, for bounded ones. Three dimensions. Control: normal tokens of \
                  scale 8, whose softmax is frozen on its largest scores at these lengths.",
    criterion: "At its longest length a prompt is more than five times the expected distance away (a false alarm has probability below \
                $6 \\cdot 10^{-7}$ for each where the distance is about normal, below $10^{-4}$ for all together). Or its \
                largest distance over the last decade of lengths is not below half of that over the first (a false alarm: below \
                $10^{-3}$ for all together). Nothing is decided if the control comes within 5 % of its limit, which would take a \
                score more than seven deviations out (below $10^{-5}$): the measurement would then see convergence where \
                there is none yet.",
    decided_by: "prompts a hundred times as long, the full form of this claim (about an hour of one core)",
    judge: judge,
}

/// In expected distances.
const FARTHEST: f64 = 5.0;
/// The share of the first decade's distance that the last one may keep.
const LEFT: f64 = 0.5;
/// A control is at least so far from its limit, relatively.
const FROZEN: f64 = 0.05;
const CONTROL: &str = "(control)";

/// The extremes of the prompts of one law.
struct Shown<'a> {
    law: &'a str,
    prompts: usize,
    longest: f64,
    /// The largest distance over the expected one at the longest length.
    ratio: f64,
    /// The largest share of the first decade's distance that is left in the last decade.
    left: f64,
    /// The smallest distance at the longest length over the size of the limit.
    relative: f64,
}

impl<'a> Shown<'a> {
    fn of(known: &'a Paths) -> Option<Self> {
        let (longest, expected) = *known.theory.last()?;
        let (mut ratio, mut left, mut relative) = (0.0_f64, 0.0_f64, f64::INFINITY);
        for prompt in &known.prompts {
            let (first, last) = (prompt.first()?, prompt.last()?);
            let early = prompt.iter().filter(|point| point.0 <= 10.0 * first.0).map(|point| point.1);
            let late = prompt.iter().filter(|point| 10.0 * point.0 >= last.0).map(|point| point.1);
            ratio = ratio.max(last.1 / expected);
            left = left.max(largest(late) / largest(early));
            relative = relative.min(last.1 / known.limit);
        }
        Some(Shown { law: &known.law, prompts: known.prompts.len(), longest, ratio, left, relative })
    }
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let paths = paths(&result.read::<Row>()?);
    let shown: Vec<Shown<'_>> = paths.iter().filter_map(Shown::of).collect();
    let (controls, measured): (Vec<&Shown>, Vec<&Shown>) =
        shown.iter().partition(|one| one.law.contains(CONTROL));
    if controls.is_empty() || measured.is_empty() {
        return Err(undecided("no law has an expected distance, or there is no control"));
    }
    for Shown { law, relative, .. } in &controls {
        judging.trust(*relative >= FROZEN, || {
            let relative = figures(*relative);
            format!("the control {law} came within {relative} of its limit, where nothing converges yet")
        });
    }
    for Shown { law, ratio, left, .. } in &measured {
        judging.require(*ratio <= FARTHEST, || {
            format!("a prompt of {law} ends {} expected distances away", figures(*ratio))
        });
        judging.require(*left < LEFT, || {
            format!("a prompt of {law} keeps {} of its first distance in the last decade", figures(*left))
        });
    }
    let most = |number: fn(&Shown<'_>) -> f64| figures(largest(measured.iter().map(|one| number(one))));
    let told = format!(
        "At {} tokens all {} prompts are within {} expected distances of their limit (allowed: 5). In the last \
         decade of lengths they keep at most {} of their distance in the first (allowed: 0.5). The frozen control \
         is still {} of the size of its limit away.",
        most(|one| one.longest),
        measured.iter().map(|one| one.prompts).sum::<usize>(),
        most(|one| one.ratio),
        most(|one| one.left),
        figures(controls.iter().map(|one| one.relative).fold(f64::INFINITY, f64::min))
    );
    let judged = table(
        "judged",
        "What is judged: the largest final distance over the expected one; the largest share of the first decade's \
         distance left in the last decade; the smallest final distance over $|T[\\mu]|$. Sampled, extremes over single \
         prompts.",
        &shown,
        &[
            ("law", &|one| text(literal(one.law))),
            ("final/expected", &|one| rounded(one.ratio)),
            ("last/first decade", &|one| rounded(one.left)),
            ("final/limit", &|one| rounded(one.relative)),
        ],
    );
    let farthest = largest(measured.iter().map(|one| one.ratio));
    let kept = largest(measured.iter().map(|one| one.left));
    let prompts: usize = measured.iter().map(|one| one.prompts).sum();
    let tokens = grouped(largest(measured.iter().map(|one| one.longest)) as i64);
    let frozen: Vec<String> = controls.iter().map(|one| literal(plain(one.law))).collect();
    Ok(Found {
        lead: format!(
            "Each of {prompts} random prompts comes about as close to the infinite prompt as theory expects: at {tokens} tokens the farthest is \
             at {} times the expected distance (allowed: 5), and over the last decade of lengths no prompt is farther than {} of its \
             largest distance over the first (allowed: 50 %). So few prompts cannot prove convergence of almost all; they could have \
             contradicted it.",
            figures(farthest),
            at_most_percent(kept)
        ),
        number: at_most_percent(kept),
        meaning: format!(
            "of the distances at 10 to 100 tokens is left at most, for {prompts} prompts up to {tokens} tokens (a control keeps {})",
            at_least_percent(largest(controls.iter().map(|one| one.left)))
        ),
        told,
        main: Some(Block::Panels(describe::panels(&paths))),
        headline:
            "Single prompts come as close as theory expects; for the control it expects no closeness yet"
                .to_string(),
        explained: vec![format!(
            "One law is not meant to converge yet at these lengths: {}. Its softmax gives nearly all weight to the few highest scores, and it would \
             take far more tokens than these: its outputs are still {} of the size of the limit away, and keep {} of their first distances, \
             where 50 % is allowed. It is as far away as theory expects: that it fails the second test, and no other law does, shows that this \
             test notices what has not converged.",
            and(&frozen),
            at_least_percent(smallest(controls.iter().map(|one| one.relative))),
            at_least_percent(largest(controls.iter().map(|one| one.left)))
        )],
        tables: vec![judged, Block::Table(describe::table(&paths))],
        more: Vec::new(),
    })
}

/// A law without the word that marks controls.
fn plain(law: &str) -> &str {
    law.strip_suffix(CONTROL).unwrap_or(law).trim()
}
