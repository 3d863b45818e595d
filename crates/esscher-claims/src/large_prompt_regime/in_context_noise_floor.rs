//! Claim: gradient flow at finite length ends within ε of the noise floor once prompts are long enough.

use super::evidence::{largest, listed};
use crate::judging::{Found, Judging, undecided};
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{figures, rounded_up};
use esscher_questions::training_horizon::answer::{Outcome, Quantity, Row, beside};
use esscher_questions::training_horizon::describe;
use esscher_report::Block;

claim! {
    name: "in-context-noise-floor",
    title: "Training reaches the noise floor in context",
    statement: "For every ε there is a length L(ε) with this property: gradient flow from a proper initialisation, at any length \
                from L(ε) on, ends with a risk at most ε above the noise floor, the risk of the best predictor on the infinite \
                prompt.",
    formula: r"\forall \varepsilon > 0\ \exists L(\varepsilon):\quad \lim_{t \to \infty} R_L(U_L(t), V_L(t)) \le R^* + \varepsilon \quad \text{for all } L \ge L(\varepsilon)",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, in-context linear regression.",
    measurement: "The flow at finite length is followed until it stands still, with exact risks. Bisection finds L(ε), the smallest \
                  length whose limit is good enough; if a length is found at all, the excess there is below ε by construction. \
                  Independently of this search, the flow is followed again from the initialisation at multiples of L(ε). Beside it \
                  the first-order prediction: the smallest coefficient of 1/L in the risk along the valley of the infinite \
                  prompt, divided by ε.",
    criterion: "For some dimension and ε no length up to 10¹² suffices, or the limit at L(ε) or at one of its multiples lies more \
                than ε (and the error) above the floor, or a smaller ε needs a shorter prompt. Nothing is decided for an initial \
                scale α outside the range of the theorem, or for an ε at which no multiple of L(ε) was followed.",
    judge: judge,
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let rows: Vec<Row> = result.read()?;
    let of = |quantity| rows.iter().filter(move |row| row.quantity == quantity);
    if rows.is_empty() {
        return Err(undecided("no horizon was asked for"));
    }
    let mut proved = of(Quantity::ProvedScale);
    if let Some(row) = proved.find(|row| row.initial_scale >= row.number.value) {
        let (dimension, scale, proved) = (row.dimension, row.initial_scale, figures(row.number.value));
        let told = format!("d = {dimension}: α = {scale} is outside the range α < {proved} of the theorem");
        return Err(undecided(told));
    }
    for row in &rows {
        weigh(&rows, row, judging);
    }
    let mut found: Vec<&Row> = of(Quantity::Horizon).collect();
    found.sort_by(|a, b| a.dimension.cmp(&b.dimension).then(b.excess.total_cmp(&a.excess)));
    let mut sentences = Vec::new();
    for here in found.chunk_by(|a, b| a.dimension == b.dimension) {
        let dimension = here[0].dimension;
        for pair in here.windows(2) {
            judging.require(pair[1].length >= pair[0].length, || {
                let (smaller, larger) = (pair[1].excess, pair[0].excess);
                format!("d = {dimension}: ε = {smaller} needs fewer tokens than ε = {larger}")
            });
        }
        let told = |row: &&Row| format!("L({}) = {}", row.excess, row.length.unwrap_or_default());
        sentences.push(format!("d = {dimension}: {}", listed(here.iter().map(told), ", ")));
    }
    let found = format!(
        "Exact, excess risks to {}. {}. At L(ε) the search stops by construction. Independently of it, the flow was followed anew \
         at {} longer lengths. The claim is about all lengths from L(ε) on; those between were not computed.",
        rounded_up(largest(of(Quantity::ExcessRisk).map(|row| row.number.error()))),
        sentences.join("; "),
        of(Quantity::ExcessRiskBeyond).count()
    );
    Ok((found, vec![Block::Table(describe::table(&rows)), Block::Figure(describe::figure(&rows))]))
}

/// What one number says about the claim.
fn weigh(rows: &[Row], row: &Row, judging: &mut Judging) {
    let Row { dimension, excess, number, .. } = row;
    let name = format!("d = {dimension}, ε = {excess}");
    let at = row.length.map_or(String::new(), |length| format!(" at L = {length}"));
    match row.quantity {
        Quantity::NoiseFloor => {
            if beside(rows, row, Quantity::ProvedScale).is_none() {
                judging.leave_open(format!("d = {dimension}: the range of the theorem is not known"));
            }
            let is_beyond = row.outcome == Outcome::Beyond;
            judging.require(!is_beyond, || format!("{name}: no length up to 10¹² suffices"));
            if !is_beyond && beside(rows, row, Quantity::ExcessRiskBeyond).is_none() {
                judging.leave_open(format!("{name}: no flow was followed beyond L(ε)"));
            }
        }
        Quantity::ExcessRisk | Quantity::ExcessRiskBeyond => {
            judging.require(number.value <= excess + number.error(), || {
                let (value, error) = (figures(number.value), rounded_up(number.error()));
                format!("{name}: the excess{at} is {value} ± {error}")
            });
        }
        Quantity::ExcessRiskBefore => {
            judging.require(number.value + number.error() > *excess, || {
                format!("{name}: a shorter prompt{at} suffices")
            });
        }
        Quantity::Horizon | Quantity::FirstOrderHorizon | Quantity::ProvedScale => {}
    }
}
