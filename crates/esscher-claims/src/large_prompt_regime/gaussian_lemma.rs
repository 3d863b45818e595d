//! Claim: for Gaussian tokens softmax attention on the infinite prompt is linear in the query.

use super::evidence::{at_least_percent, at_most_two_figures, table, text};
use crate::judging::{Found, Judging, undecided};
use esscher_lab::{Failure, Table};
use esscher_questions::linearity::answer::{Row, Statistic, laws, points_of};
use esscher_questions::linearity::describe::deviation_figure;
use esscher_questions::measured::{GREY, Measured, figures};
use esscher_report::{Axis, Block, Cell, Figure, Mark, Point, Series, literal};

claim! {
    name: "gaussian-lemma",
    title: "On infinite prompts of normal tokens softmax attention is affine",
    statement: "For Gaussian tokens, softmax attention on the infinite prompt is an affine map of the query; for centred \
                tokens it is linear attention. The other laws shown do not have this property: with mixtures large queries see one of their parts \
                only, with bounded laws outputs saturate.",
    formula: r"\mu = \mathcal N(m, \Gamma) \implies T[\mu](z) = V\nabla\Lambda_\mu(Uz) = Vm + V\Gamma U z",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), the lemma on Gaussian tokens.",
    measurement: "The tilted mean at queries of many directions (drawn from the seed) and sizes, for normal laws and mixtures by \
                  quadrature of its definition $\\mathbb E[z\\,e^{\\langle\\theta,z\\rangle}]/\\mathbb E[e^{\\langle\\theta,z\\rangle}]$. \
                  It is compared with the affine map that the tokens' mean and covariance give, and with the best affine map \
                  over all queries up to that size. Controls: random signs, cube, sphere, two normals.",
    criterion: "At some query a normal law is further from its linear map than rounding allows, which is $10^{-13}$ of the \
                numbers that enter. Nothing is decided if the best affine map leaves less than 5 % of a control at the \
                largest queries (root of the unexplained share of the variance): the measurement could then not see a map \
                that is not linear.",
    decided_by: "more sizes and directions of the query, the full form of this claim (a minute)",
    judge: judge,
}

/// What the best affine map must leave of a control.
const VISIBLE: f64 = 0.05;

/// Laws of this name must not look linear.
const CONTROL: &str = "(control)";

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let rows: Vec<Row> = result.read()?;
    let (controls, normals): (Vec<&str>, Vec<&str>) =
        laws(&rows).into_iter().partition(|law| law.contains(CONTROL));
    let mut least: Option<(f64, &str)> = None;
    for law in controls {
        let Some((radius, residual)) = points_of(&rows, law, Statistic::Residual).pop() else { continue };
        let left = residual.value;
        judging.trust(left >= VISIBLE, || {
            let left = figures(left);
            format!("{law} looks linear up to |z| = {radius}: the best affine map leaves only {left} of it")
        });
        least = least.filter(|(known, _)| *known <= left).or(Some((left, law)));
    }
    let (mut largest, mut queries, mut compared) = (0.0_f64, 0.0_f64, 0);
    for law in normals {
        let maps = [(Statistic::Deviation, "the linear map"), (Statistic::Residual, "its best affine map")];
        for (statistic, map) in maps {
            for (radius, found) in points_of(&rows, law, statistic) {
                let (value, rounding) = (found.value, found.error());
                (largest, queries) = (largest.max(value / rounding), queries.max(radius));
                compared += usize::from(statistic == Statistic::Deviation);
                judging.require(value <= rounding, || {
                    let (away, allowed) = (figures(value), figures(rounding));
                    format!("{law} is {away} away from {map} at |z| = {radius}; rounding allows {allowed}")
                });
            }
        }
    }
    let Some((residual, law)) = least.filter(|_| compared > 0) else {
        return Err(undecided("the result has no normal law or no control"));
    };
    let told = format!(
        "At all queries up to $|z| = {queries}$, attention over normal tokens differs from linear attention by at most {} \
         of what rounding can explain; above 1 the claim would be refuted. Over other tokens, the controls, \
         the best affine map misses the output by at least {} of its variation (root mean square; least: {}).",
        figures(largest),
        figures(residual),
        literal(shown(law))
    );
    let controls = laws(&rows).iter().filter(|law| law.contains(CONTROL)).count();
    let digits = digits(&rows);
    Ok(Found {
        lead: format!(
            "On an infinite prompt of normal tokens softmax attention is an affine map of the query, to at least {digits} digits: the \
             largest relative difference that rounding could hide is {}. On {controls} other laws of tokens it bends: for queries up to \
             a size of {queries} even the best affine map misses the output by {} or more of its standard deviation.",
            at_most_two_figures(deviation(&rows, Measured::error)),
            at_least_percent(residual)
        ),
        number: format!("{digits} digits"),
        meaning: "of agreement with an affine map, at least, on infinite prompts of normal tokens"
            .to_string(),
        told,
        main: Some(Block::Figure(gains(&rows))),
        headline: "Normal tokens keep softmax linear, other tokens bend it".to_string(),
        explained: Vec::new(),
        tables: vec![judged(&rows)],
        more: vec![Block::Figure(deviation_figure(&rows))],
    })
}

/// A law without the word that marks controls.
fn shown(law: &str) -> &str {
    law.strip_suffix(CONTROL).unwrap_or(law).trim()
}

/// The decimal digits to which every normal law agrees with its linear map, whatever rounding did to the difference.
fn digits(rows: &[Row]) -> usize {
    // A double has no more than fifteen.
    let largest = deviation(rows, |found| found.value + found.error()).max(1e-15);
    (-largest.log10()).floor().max(0.0) as usize
}

/// The largest of a number of the deviations of normal laws from their linear maps.
fn deviation(rows: &[Row], number: fn(&Measured) -> f64) -> f64 {
    let normals = laws(rows).into_iter().filter(|law| !law.contains(CONTROL));
    let deviations = normals.flat_map(|law| points_of(rows, law, Statistic::Deviation));
    deviations.map(|(_, found)| number(&found)).fold(0.0, f64::max)
}

/// The gain against the size of the query: normal laws as one, each control by itself.
fn gains(rows: &[Row]) -> Figure {
    let (controls, normals): (Vec<&str>, Vec<&str>) =
        laws(rows).into_iter().partition(|law| law.contains(CONTROL));
    let line = |law: &str, name: String, colour: usize| {
        let points = points_of(rows, law, Statistic::Gain);
        let points = points.iter().map(|(radius, gain)| Point::new(*radius, gain.value)).collect();
        Series { name, mark: Mark::Line, colour, points }
    };
    let count = normals.len();
    let mut series: Vec<Series> = normals
        .into_iter()
        .map(|law| {
            line(law, if count > 1 { format!("normal ({count} laws)") } else { "normal".to_string() }, 0)
        })
        .collect();
    // The colours of the other figure of this claim, in which every normal law has one too.
    let controls = controls.into_iter().enumerate();
    series.extend(controls.map(|(place, law)| line(law, literal(shown(law)), (count + place) % GREY)));
    Figure {
        id: "gain".to_string(),
        title: "The output of softmax attention beside the linear map".to_string(),
        caption: "The gain is the part of the output $T(z) - Vm$ in the direction of the linear map $V\\Gamma U z$, divided by the \
                  length of that map and averaged over directions of the query: 1 if attention is this map, below 1 where it \
                  saturates. $m$ and $\\Gamma$ are mean and covariance of the tokens. Exact."
            .to_string(),
        x: Axis::from_zero("size of the query |z|"),
        y: Axis::from_zero("gain: output over linear map"),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    }
}

/// A row per law: the largest deviation, and what is found at the largest queries.
fn judged(rows: &[Row]) -> Block {
    let residuals = rows.iter().filter(|row| row.statistic == Statistic::Residual && row.value.is_some());
    let radius = residuals.map(|row| row.radius).fold(0.0, f64::max);
    let of = |law: &str, statistic| points_of(rows, law, statistic).into_iter();
    let cell = |point: Option<(f64, Measured)>| point.map_or(Cell::Missing, |(_, number)| number.cell());
    table(
        "judged",
        &format!(
            "Gain at $|z| = {radius}$, largest relative deviation from the linear map at any query, and what the best affine \
             map leaves of all queries up to $|z| = {radius}$. Exact; errors are bounds on rounding."
        ),
        &laws(rows),
        &[
            ("law", &|law| text(literal(*law))),
            ("gain", &|law| cell(of(law, Statistic::Gain).last())),
            ("deviation", &|law| {
                cell(of(law, Statistic::Deviation).max_by(|a, b| a.1.value.total_cmp(&b.1.value)))
            }),
            ("residual", &|law| cell(of(law, Statistic::Residual).last())),
        ],
    )
}
