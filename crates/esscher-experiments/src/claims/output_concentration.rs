//! Claim: outputs of finite prompts concentrate at a polynomial rate with exponent of order 1/σ².

use super::evidence::{Findings, named, short};
use super::{Claim, Judgement, bound};
use crate::kinds::concentration::drawing::{error_figure, main_panels};
use crate::kinds::concentration::findings::{Finding, findings};
use esscher_lab::{Failure, Table};
use esscher_report::{Block, Verdict};

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
    judge_quantities(result, &["output"], CLAIM.name)
}

/// Judges quantities by the bound and by the agreement of the engines.
pub(super) fn judge_quantities(
    result: &Table,
    quantities: &[&str],
    claim: &str,
) -> Result<Judgement, Failure> {
    let found = findings(result)?;
    let mut against = Findings::default();
    let (mut figures, mut tables) = (Vec::new(), Vec::new());
    let (mut closest, mut margin, mut engines) = (0.0_f64, f64::INFINITY, (0.0_f64, 0));
    let (mut falling, mut tokens) = (0, 0);
    let (mut left_out, mut complete) = (0, true);
    for quantity in quantities {
        let compared = bound::compare(&found, quantity, &mut against)?;
        complete &= compared.falling > 0 && compared.engines.1 > 0;
        (falling, tokens) = (falling + compared.falling, tokens + compared.tokens);
        tables.push(Block::Table(compared.table(quantity)));
        closest = closest.max(compared.closest);
        margin = margin.min(compared.smallest_margin);
        engines = (engines.0.max(compared.engines.0), engines.1 + compared.engines.1);
        left_out += compared.left_out;
        let mine: Vec<&Finding> = found.iter().filter(|one| one.quantity == *quantity).collect();
        for panel in main_panels(&mine) {
            let mut figure = error_figure(&mine, quantity, &panel, &compared.curves);
            figure.caption.push_str(
                " Dashed, in the colour of what it bounds: the bound with $c_2 = 1/2$ and one $c_1$ for all.",
            );
            figures.push(Block::Figure(figure));
        }
    }
    let (verdict, reason) = if complete {
        let heavy =
            if left_out > 0 { format!(" ({left_out} heavy-tailed means left out)") } else { String::new() };
        against.verdict(format!(
            "With one $c_1$ every other error is at most {} of its bound. At the longest lengths the local slope exceeds that of \
             the bound by at least {}, in the {falling} of {tokens} cases where the bound falls. The engines agree within {} \
             standard errors in {} comparisons{heavy}.",
            short(closest),
            short(margin),
            short(engines.0),
            engines.1
        ))
    } else {
        let reason = "The result has no slopes where the bound falls, or no law measured by both engines.";
        (Verdict::NotMeasurable, reason.to_string())
    };
    let mut evidence = figures;
    evidence.extend(tables);
    Ok(Judgement { verdict, reason, evidence: named(claim, evidence) })
}
