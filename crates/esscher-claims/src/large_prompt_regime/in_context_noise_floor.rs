//! Claim: gradient flow at finite length ends within ε of the noise floor once prompts are long enough.

use super::evidence::{
    and, at_least_percent, at_most_percent, grouped, largest, listed, number, smallest, table, two_figures,
};
use crate::judging::{Found, Judging, undecided};
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{figures, rounded_up};
use esscher_questions::tabulating::rounded;
use esscher_questions::training_horizon::answer::{Outcome, Quantity, Row, beside};
use esscher_questions::training_horizon::describe;
use esscher_report::{Block, Cell};

claim! {
    name: "in-context-noise-floor",
    title: "Long enough prompts bring training as near to the noise floor as was asked for",
    statement: "For every ε there is a length L(ε) with this property: gradient flow from a proper initialisation, at any length \
                from L(ε) on, ends with a risk at most ε above the noise floor, the risk of the best predictor on the infinite \
                prompt.",
    formula: r"\forall \varepsilon > 0\ \exists L(\varepsilon):\quad \lim_{t \to \infty} R_L(U_L(t), V_L(t)) \le R^* + \varepsilon \quad \text{for all } L \ge L(\varepsilon)",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 5, the theorem on in-context linear regression.",
    measurement: "The flow at finite length is followed until it stands still, with exact risks. Bisection finds L(ε), the smallest \
                  length whose limit is good enough; if a length is found at all, the excess there is below ε by construction. \
                  Independently of this search, the flow is followed again from the initialisation at ten times L(ε). Label noise $s^2 = 0.1$. Beside it \
                  the first-order prediction: the smallest coefficient of 1/L in the risk along the valley of the infinite \
                  prompt, divided by ε.",
    criterion: "For some dimension and ε no length up to 10¹² suffices, or the limit at L(ε) or at one of its multiples lies more \
                than ε (and the error) above the floor, or a smaller ε needs a shorter prompt. Nothing is decided for an initial \
                scale α outside the range of the theorem, or for an ε at which no multiple of L(ε) was followed.",
    decided_by: "more dimensions and smaller ε, the full form of this claim (about ten minutes on two cores)",
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
    let told = format!(
        "Exact, excess risks to {}. {}. At L(ε) the search stops by construction. Independently of it, the flow was followed anew \
         at {} longer lengths: there the excess is at most {} of ε (allowed: 100 %). The claim is about all lengths from L(ε) on; those \
         between were not computed.",
        rounded_up(largest(of(Quantity::ExcessRisk).map(|row| row.number.error()))),
        sentences.join("; "),
        of(Quantity::ExcessRiskBeyond).count(),
        at_most_percent(largest(of(Quantity::ExcessRiskBeyond).map(share)))
    );
    let main = Some(Block::Figure(describe::figure(&rows)));
    let tables = vec![beyond(&rows), Block::Table(describe::table(&rows))];
    // The smallest ε of each dimension, where a length suffices.
    let ends =
        found.chunk_by(|a, b| a.dimension == b.dimension).filter_map(|here| here.first().zip(here.last()));
    let ends: Vec<(&Row, &Row)> = ends
        .filter(|(first, last)| first.length.is_some() && last.length.is_some())
        .map(|(a, b)| (*a, *b))
        .collect();
    let Some((_, hardest)) = ends.iter().max_by_key(|(_, last)| last.length) else {
        return Ok(Found {
            number: "–".to_string(),
            meaning: "no length was found for the smallest excess risk".to_string(),
            told,
            main,
            tables,
            ..Found::default()
        });
    };
    let tokens = |row: &Row| grouped(row.length.unwrap_or_default());
    let told_of: Vec<String> = ends
        .iter()
        .map(|(_, last)| format!("{} tokens in {} dimensions", tokens(last), last.dimension))
        .collect();
    let growth = |pair: &(&Row, &Row)| {
        pair.1.length.unwrap_or_default() as f64 / pair.0.length.unwrap_or(1).max(1) as f64
    };
    let steps = ends.iter().map(|(first, last)| first.excess / last.excess);
    let step = largest(steps);
    let headline = if step <= 1.0 {
        "Prompts of these lengths suffice".to_string()
    } else {
        format!(
            "An excess risk {} times smaller takes prompts {} to {} times as long",
            two_figures(step),
            two_figures(smallest(ends.iter().map(growth))),
            two_figures(largest(ends.iter().map(growth)))
        )
    };
    let mut asked: Vec<f64> = found.iter().map(|row| row.excess).collect();
    asked.sort_by(|a, b| b.total_cmp(a));
    asked.dedup();
    let asked: Vec<String> = asked.iter().map(f64::to_string).collect();
    Ok(Found {
        lead: format!(
            "For each of the excess risks that were asked for, {}, there is a length of prompts with which training ends no further than that \
             above the noise floor. For an excess of {} it is {}; with longer prompts, ten times that length, the excess is {} to {} of what \
             was asked for, about as a fall like $1/L$ would have it.",
            and(&asked),
            hardest.excess,
            and(&told_of),
            at_least_percent(smallest(of(Quantity::ExcessRiskBeyond).map(share))),
            at_most_percent(largest(of(Quantity::ExcessRiskBeyond).map(share)))
        ),
        number: format!("{} tokens", tokens(hardest)),
        meaning: format!(
            "suffice for an excess risk of {} in {} dimensions",
            hardest.excess, hardest.dimension
        ),
        told,
        main,
        headline,
        tables,
        ..Found::default()
    })
}

/// An excess risk, with its error, over the one that was asked for.
fn share(row: &Row) -> f64 {
    (row.number.value + row.number.error()) / row.excess
}

/// What decides: the flows at longer lengths than the search found.
fn beyond(rows: &[Row]) -> Block {
    let found: Vec<&Row> = rows.iter().filter(|row| row.quantity == Quantity::ExcessRiskBeyond).collect();
    table(
        "beyond",
        "The excess risk with prompts longer than $L(\\varepsilon)$, followed independently of the search, and its share of $\\varepsilon$: \
         more than 1 would refute the claim. Exact.",
        &found,
        &[
            ("$d$", &|row| Cell::Integer(row.dimension)),
            ("$\\varepsilon$", &|row| number(Some(row.excess), None)),
            ("$L$", &|row| row.length.map_or(Cell::Missing, Cell::Integer)),
            ("excess", &|row| row.number.cell()),
            ("of $\\varepsilon$", &|row| rounded(share(row))),
        ],
    )
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
