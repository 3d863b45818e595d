//! Claim: gradient flow at finite length ends within ε of the noise floor once prompts are long enough.

use super::{Claim, Judgement, regression};
use crate::kinds::{HorizonRecord, horizon_figure, horizon_table, horizons};
use crate::measured::{figures, rounded_up};
use esscher_lab::{Failure, Table};
use esscher_report::Block;

pub(super) const CLAIM: Claim = Claim {
    name: "in-context-noise-floor",
    title: "Training reaches the noise floor in context",
    statement: "For every ε there is a length L(ε) such that gradient flow from a proper initialisation, at any length from there on, \
                ends with a risk at most ε above the noise floor, the risk of the best predictor on the infinite prompt.",
    formula: r"\forall \varepsilon > 0\ \exists L(\varepsilon):\quad \lim_{t \to \infty} R_L(U_L(t), V_L(t)) \le R^* + \varepsilon \quad \text{for all } L \ge L(\varepsilon)",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, in-context linear regression.",
    measurement: "The flow at finite length is followed until it stands still, with exact risks; L(ε), the smallest length whose limit \
                  is good enough, is found by bisection, so that the excess there is below ε by construction, if a length is found at \
                  all; independent of the search, the flow is followed again from the initialisation at multiples of L(ε). Beside it the \
                  first-order prediction: the smallest coefficient of 1/L in the risk along the valley of the infinite \
                  prompt, divided by ε.",
    criterion: "For some dimension and ε no length up to 10¹² suffices, or the limit at L(ε) or at one of its multiples lies more than ε \
                (and the error) above the floor, or a smaller ε needs a shorter prompt. Nothing is decided for an initial scale α outside the range of the theorem, or for \
                an ε at which no multiple of L(ε) was followed.",
    quick: include_str!("../../../../experiments/in-context-noise-floor/quick.toml"),
    full: include_str!("../../../../experiments/in-context-noise-floor/full.toml"),
    judge,
};

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let rows = horizons(result)?;
    if rows.is_empty() {
        return Ok(regression::undecided("no horizon was asked for"));
    }
    let of = |row: &HorizonRecord, quantity: &str| {
        rows.iter()
            .find(|other| {
                other.quantity == quantity && other.dimension == row.dimension && other.excess == row.excess
            })
            .map(|found| found.number.value)
    };
    let (mut problems, mut open) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.quantity == "noise-floor") {
        let HorizonRecord { dimension, excess, initial_scale, .. } = row;
        match of(row, "proved-scale") {
            Some(proved) if *initial_scale < proved => {}
            Some(proved) => {
                let proved = figures(proved);
                return Ok(regression::undecided(&format!(
                    "d = {dimension}: α = {initial_scale} is outside the range α < {proved} of the theorem"
                )));
            }
            None => open.push(format!("d = {dimension}: the range of the theorem is not known")),
        }
        if !row.outcome.starts_with("beyond") && of(row, "excess-risk-beyond").is_none() {
            open.push(format!("d = {dimension}, ε = {excess}: no flow was followed beyond L(ε)"));
        }
    }
    for row in &rows {
        let HorizonRecord { dimension, excess, .. } = row;
        let at = row.length.map_or(String::new(), |length| format!(" at L = {length}"));
        match row.quantity.as_str() {
            "noise-floor" if row.outcome.starts_with("beyond") => {
                problems.push(format!("d = {dimension}, ε = {excess}: no length up to 10¹² suffices"));
            }
            "excess-risk" | "excess-risk-beyond" if row.number.value > excess + row.number.error() => {
                problems.push(format!(
                    "d = {dimension}, ε = {excess}: the excess{at} is {} ± {}",
                    figures(row.number.value),
                    rounded_up(row.number.error())
                ));
            }
            "excess-risk-before" if row.number.value + row.number.error() <= *excess => {
                problems.push(format!("d = {dimension}, ε = {excess}: a shorter prompt{at} suffices"));
            }
            _ => {}
        }
    }
    let found: Vec<&HorizonRecord> = rows.iter().filter(|row| row.quantity == "horizon").collect();
    let mut dimensions: Vec<i64> = found.iter().map(|row| row.dimension).collect();
    dimensions.sort_unstable();
    dimensions.dedup();
    let mut sentences = Vec::new();
    for dimension in dimensions {
        let mut here: Vec<&&HorizonRecord> = found.iter().filter(|row| row.dimension == dimension).collect();
        here.sort_by(|a, b| b.excess.total_cmp(&a.excess));
        for pair in here.windows(2) {
            if pair[1].length < pair[0].length {
                problems.push(format!(
                    "d = {dimension}: ε = {} needs fewer tokens than ε = {}",
                    pair[1].excess, pair[0].excess
                ));
            }
        }
        let listed: Vec<String> = here
            .iter()
            .map(|row| format!("L({}) = {}", row.excess, row.length.unwrap_or_default()))
            .collect();
        sentences.push(format!("d = {dimension}: {}", listed.join(", ")));
    }
    let beyond = rows.iter().filter(|row| row.quantity == "excess-risk-beyond").count();
    let tolerance = rows.iter().filter(|row| row.quantity == "excess-risk");
    let tolerance = tolerance.map(|row| row.number.error()).fold(0.0, f64::max);
    let reason = format!(
        "Exact, excess risks to {}. {}. At L(ε) the search stops by construction; independent of it, the flow was followed anew at {beyond} longer lengths. The claim is about all lengths from L(ε) on; \
         those between were not computed.",
        rounded_up(tolerance),
        sentences.join("; ")
    );
    let evidence = vec![Block::Table(horizon_table(&rows)), Block::Figure(horizon_figure(&rows))];
    Ok(regression::weighed(CLAIM.name, problems, open, reason, evidence))
}
