//! Claim: for Gaussian tokens softmax attention on the infinite prompt is linear in the query.

use super::evidence::short;
use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_lab::{Failure, Table};
use esscher_questions::linearity::answer::{Row, Statistic, laws, points_of};
use esscher_questions::linearity::describe::{deviation_figure, gain_figure};
use esscher_questions::measured::Measured;
use esscher_report::{Block, Cell, DataTable};

pub(super) const CLAIM: Claim = Claim {
    name: "gaussian-lemma",
    title: "Normal tokens make softmax attention linear",
    statement: "For Gaussian tokens, softmax attention on the infinite prompt is an affine map of the query, and for \
                centred tokens it is linear attention. This is special to Gaussians: \
                mixtures select a component, bounded laws saturate.",
    formula: r"\mu = \mathcal N(m, \Gamma) \implies T[\mu](z) = V\nabla\Lambda_\mu(Uz) = Vm + V\Gamma U z",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, the lemma on Gaussian tokens.",
    measurement: "The tilted mean, for normal laws and mixtures by quadrature of its definition \
                  $\\mathbb E[z\\,e^{\\langle\\theta,z\\rangle}]/\\mathbb E[e^{\\langle\\theta,z\\rangle}]$, at queries of many \
                  directions (drawn from the seed) and sizes, against the affine map of the tokens' mean and covariance, \
                  and against the best affine map over all queries up to that size. Controls: random signs, cube, sphere, \
                  two normals.",
    criterion: "A normal law further from its linear map than rounding allows, $10^{-13}$ of the numbers that enter, at any \
                of the queries. Nothing is decided if the best affine map leaves less than 5 % (root of the unexplained \
                share of the variance) of a control at the largest queries: the measurement could then not see a map that \
                is not linear.",
    quick: include_str!("../../../../experiments/gaussian-lemma/quick.toml"),
    full: include_str!("../../../../experiments/gaussian-lemma/full.toml"),
    judge,
};

/// What the best affine map must leave of a control.
const VISIBLE: f64 = 0.05;

/// Laws of this name must not look linear.
const CONTROL: &str = "(control)";

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let rows: Vec<Row> = result.read()?;
    let mut judging = Judging::default();
    let (mut largest, mut queries, mut normals) = (0.0_f64, 0.0_f64, 0);
    let mut controls: Vec<(f64, &str)> = Vec::new();
    for law in laws(&rows) {
        let residuals = points_of(&rows, law, Statistic::Residual);
        if law.contains(CONTROL) {
            let Some((radius, residual)) = residuals.last().map(|(radius, last)| (radius, last.value)) else {
                continue;
            };
            controls.push((residual, law));
            judging.trust(residual >= VISIBLE, || {
                format!(
                    "{law} looks linear up to |z| = {radius}: the best affine map leaves {}, so the measurement \
                     distinguishes nothing",
                    short(residual)
                )
            });
            continue;
        }
        let deviations = points_of(&rows, law, Statistic::Deviation);
        normals += usize::from(!deviations.is_empty());
        for (name, points) in [("the linear map", deviations), ("its best affine map", residuals)] {
            for (radius, found) in points {
                let (value, rounding) = (found.value, found.error());
                (largest, queries) = (largest.max(value / rounding), queries.max(radius));
                judging.require(value <= rounding, || {
                    let (away, allowed) = (short(value), short(rounding));
                    format!("{law} is {away} away from {name} at |z| = {radius}, rounding allows {allowed}")
                });
            }
        }
    }
    let least = controls.iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| normals > 0);
    judging.trust(least.is_some(), || "the result has no normal law or no control".to_string());
    let found = least.map_or_else(String::new, |(residual, law)| {
        format!(
            "At all queries up to $|z| = {queries}$, attention over normal tokens differs from linear attention by at most {} \
             times the bound on rounding errors; more than 1 times would refute the claim. Over other tokens, the controls, \
             the best affine map leaves at least {} of the variation unexplained (least: {}).",
            short(largest),
            short(*residual),
            law.replace(CONTROL, "").trim()
        )
    });
    let figures = [gain_figure(&rows), deviation_figure(&rows)].map(Block::Figure);
    let evidence = figures.into_iter().chain([Block::Table(table(&rows))]).collect();
    Ok(judging.judgement(CLAIM.name, found, evidence))
}

/// A row per law: the largest deviation, and what is found at the largest queries.
fn table(found: &[Row]) -> DataTable {
    let (mut rows, mut radius) = (Vec::new(), 0.0_f64);
    for law in laws(found) {
        let cell = |point: Option<&(f64, Measured)>| point.map_or(Cell::Missing, |(_, number)| number.cell());
        let of = |statistic| points_of(found, law, statistic);
        let residuals = of(Statistic::Residual);
        radius = residuals.iter().map(|point| point.0).fold(radius, f64::max);
        rows.push(vec![
            Cell::Text(law.to_string()),
            cell(of(Statistic::Gain).last()),
            cell(of(Statistic::Deviation).iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value))),
            cell(residuals.last()),
        ]);
    }
    DataTable {
        id: "judged".to_string(),
        caption: format!(
            "Gain at $|z| = {radius}$, largest relative deviation from the linear map at any query, and what the best affine \
             map leaves of all queries up to $|z| = {radius}$. Exact; errors are bounds on rounding."
        ),
        columns: ["law", "gain", "deviation", "residual"].map(str::to_string).to_vec(),
        rows,
    }
}
