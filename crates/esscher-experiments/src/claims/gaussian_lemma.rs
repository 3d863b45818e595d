//! Claim: for Gaussian tokens softmax attention on the infinite prompt is linear in the query.

use super::evidence::{Findings, named, short};
use super::{Claim, Judgement};
use crate::kinds::linearity::{deviation_figure, gain_figure, laws, points_of, statistic};
use esscher_lab::{Failure, Table};
use esscher_report::{Block, Cell, DataTable, Verdict};

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
    let mut findings = Findings::default();
    let (mut largest, mut queries) = (0.0_f64, 0.0_f64);
    let mut controls: Vec<(f64, &str)> = Vec::new();
    let mut normals = 0;
    for law in laws(result)? {
        let residuals = points_of(result, law, statistic::RESIDUAL)?;
        if law.contains(CONTROL) {
            let Some(&(radius, residual, _)) = residuals.last() else { continue };
            controls.push((residual, law));
            findings.trust(residual >= VISIBLE, || {
                format!(
                    "{law} looks linear up to |z| = {radius}: the best affine map leaves {}, so the measurement \
                     distinguishes nothing",
                    short(residual)
                )
            });
            continue;
        }
        let deviations = points_of(result, law, statistic::DEVIATION)?;
        normals += usize::from(!deviations.is_empty());
        for (name, points) in [("the linear map", deviations), ("its best affine map", residuals)] {
            for (radius, value, rounding) in points {
                (largest, queries) = (largest.max(value / rounding), queries.max(radius));
                findings.require(value <= rounding, || {
                    format!(
                        "{law} is {} away from {name} at |z| = {radius}, rounding allows {}",
                        short(value),
                        short(rounding)
                    )
                });
            }
        }
    }
    let least = controls.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (verdict, reason) = match least {
        Some((residual, law)) if normals > 0 => findings.verdict(format!(
            "Normal tokens are linear up to {} of what rounding allows, at all queries up to $|z| = {queries}$; the best \
             affine map leaves at least {} of every control (least: {}).",
            short(largest),
            short(*residual),
            law.replace(CONTROL, "").trim()
        )),
        _ => (Verdict::NotMeasurable, "The result has no normal law or no control.".to_string()),
    };
    let evidence = vec![
        Block::Figure(gain_figure(result)?),
        Block::Figure(deviation_figure(result)?),
        Block::Table(table(result)?),
    ];
    Ok(Judgement { verdict, reason, evidence: named(CLAIM.name, evidence) })
}

/// A row per law: the largest deviation, and what is found at the largest queries.
fn table(result: &Table) -> Result<DataTable, Failure> {
    let (mut rows, mut radius) = (Vec::new(), 0.0_f64);
    for law in laws(result)? {
        let cell = |point: Option<&(f64, f64, f64)>| {
            point.map_or(Cell::Missing, |&(_, value, error)| Cell::Number { value, error: Some(error) })
        };
        let gains = points_of(result, law, statistic::GAIN)?;
        let deviations = points_of(result, law, statistic::DEVIATION)?;
        let residuals = points_of(result, law, statistic::RESIDUAL)?;
        radius = residuals.iter().map(|point| point.0).fold(radius, f64::max);
        rows.push(vec![
            Cell::Text(law.to_string()),
            cell(gains.last()),
            cell(deviations.iter().max_by(|a, b| a.1.total_cmp(&b.1))),
            cell(residuals.last()),
        ]);
    }
    Ok(DataTable {
        id: "judged".to_string(),
        caption: format!(
            "Gain at $|z| = {radius}$, largest relative deviation from the linear map at any query, and what the best affine \
             map leaves of all queries up to $|z| = {radius}$. Exact; errors are bounds on rounding."
        ),
        columns: ["law", "gain", "deviation", "residual"].map(str::to_string).to_vec(),
        rows,
    })
}
