//! Claim: outputs of finite prompts concentrate at a polynomial rate with exponent of order 1/σ².

use super::bound::{self, Held};
use super::evidence::short;
use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_core::Quantity;
use esscher_lab::{Failure, Table};
use esscher_questions::concentration::answer::{Row, rows_of};
use esscher_questions::concentration::describe::error_figure;
use esscher_questions::concentration::panels::main_panels;
use esscher_report::Block;

pub(super) const CLAIM: Claim = Claim {
    name: "output-concentration",
    title: "Outputs concentrate",
    statement: "For sub-Gaussian tokens of parameter at least 1 and centred 1-sub-Gaussian queries, the mean squared \
                distance between attention on a prompt of L tokens and on the infinite prompt falls at least like a \
                power of L with exponent of order one over the squared parameter, up to a logarithm.",
    formula: r"\mathbb E\,\|T[\mu_L]-T[\mu]\|^2_{L^2(\nu)} \le c_1\,\sigma^6\,\frac{\ln L}{L^{c_2/\sigma^2}}",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, the proposition on the concentration of outputs.",
    measurement: "Normal tokens by exact integrals up to $10^{12}$ tokens and by simulation at short lengths; random \
                  signs, cube and sphere by simulation; queries $\\mathcal N(0, I)$. The bound has $c_2 = 1/2$ and one \
                  $c_1$ for all laws and scales: the least for prompts of up to 100 tokens at the smallest $\\sigma$.",
    criterion: "An error, at any length and scale, more than five standard errors above that bound; or a slope at the \
                longest length more than five standard errors below the bound's, where the bound falls. Nothing is \
                decided if the two engines are more than five standard errors apart where both measure. Five standard \
                errors are a false alarm in $6 \\cdot 10^{-7}$ of all comparisons if means over trials are normal \
                (means that rest on few trials are left out), in $2 \\cdot 10^{-3}$ for errors from eight randomisations.",
    quick: include_str!("../../../../experiments/output-concentration/quick.toml"),
    full: include_str!("../../../../experiments/output-concentration/full.toml"),
    judge,
};

fn judge(result: &Table) -> Result<Judgement, Failure> {
    judge_quantities(result, &[Quantity::Output], CLAIM.name)
}

/// Judges quantities by the bound and by the agreement of the engines.
pub(super) fn judge_quantities(
    result: &Table,
    quantities: &[Quantity],
    claim: &str,
) -> Result<Judgement, Failure> {
    let rows: Vec<Row> = result.read()?;
    let mut judging = Judging::default();
    let (mut compared, mut evidence) = (Vec::new(), Vec::new());
    for &quantity in quantities {
        let one = bound::compare(&rows, quantity, &mut judging)?;
        let mine = rows_of(&rows, quantity);
        for panel in main_panels(&mine) {
            let mut figure = error_figure(&mine, quantity, &panel, &one.curves);
            figure.caption.push_str(
                " Dashed, in the colour of what it bounds: the bound with $c_2 = 1/2$ and one $c_1$ for all.",
            );
            evidence.push(Block::Figure(figure));
        }
        compared.push(one);
    }
    let is_complete =
        compared.iter().all(|one| one.engines.1 > 0 && one.held.iter().any(|held| held.margin().is_some()));
    judging.trust(is_complete, || {
        "the result has no slopes where the bound falls, or no law measured by both engines".to_string()
    });
    let held = || compared.iter().flat_map(|one| &one.held);
    let margins: Vec<f64> = held().filter_map(Held::margin).collect();
    let left_out: usize = compared.iter().map(|one| one.left_out).sum();
    let heavy =
        if left_out > 0 { format!(" ({left_out} heavy-tailed means left out)") } else { String::new() };
    let told = is_complete.then(|| {
        format!(
            "With one $c_1$ every other error is at most {} of its bound. At the longest lengths the local slope exceeds that of \
             the bound by at least {}, in the {} of {} cases where the bound falls. The engines agree within {} \
             standard errors in {} comparisons{heavy}.",
            short(held().map(|held| held.closest).fold(0.0, f64::max)),
            short(margins.iter().copied().fold(f64::INFINITY, f64::min)),
            margins.len(),
            held().count(),
            short(compared.iter().map(|one| one.engines.0).fold(0.0, f64::max)),
            compared.iter().map(|one| one.engines.1).sum::<usize>()
        )
    });
    evidence.extend(compared.iter().map(|one| Block::Table(one.table())));
    Ok(judging.judgement(claim, told.unwrap_or_default(), evidence))
}
