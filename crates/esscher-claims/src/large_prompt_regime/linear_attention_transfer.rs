//! Claim: the limits of training known for linear attention are those of softmax attention on infinite prompts.

use super::evidence::{largest, listed, number, table, text, two_figures};
use super::flows::{flows, must_fall, over_time, panels_over_time};
use crate::judging::{Found, Judging, undecided};
use esscher_core::Ending;
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{Measured, figures, length_name, rounded_up};
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row, dimensions};
use esscher_report::{Block, Cell};

claim! {
    name: "linear-attention-transfer",
    title: "At a fixed time, long prompts bring softmax near the limit of linear attention",
    statement: "On Gaussian covariates the infinite softmax prompt is linear attention on infinite prompts. So it trains to the same \
                closed-form limit, with the risk of the noise floor. Softmax at finite length is at a fixed time as near to this \
                limit as one likes, if the prompt is long enough. Linear attention at N examples ends at the limit of Zhang, Frei \
                and Bartlett, which tends to the one above as N grows.",
    formula: r"(U^*, V^*) = \left(c^{-1}\begin{pmatrix}\Sigma^{-1} & 0\\ 0 & 0\end{pmatrix},\ c\, e e^\top\right),\quad c = \operatorname{tr}(\Sigma^{-2})^{1/4}; \qquad b_N A_N = \Gamma_N^{-1},\ \Gamma_N = (1 + \tfrac1N)\Sigma + \tfrac{\operatorname{tr}\Sigma + s^2/k}{N} I",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 5, in-context linear regression; the limit at N examples: \
               [Zhang, Frei & Bartlett 2024](https://arxiv.org/abs/2306.09927).",
    measurement: "Gradient flows with closed-form risks and gradients until they stand still, against the closed-form limits. That \
                  softmax and linear attention agree on infinite prompts is an identity and is not tested. What is tested for \
                  softmax are flows at finite length by the exact risk of that length: their distance from the limit of linear \
                  attention at the time T when the flow of the infinite prompt stands still. Errors are changes when the \
                  integration is a hundred times looser. No label noise.",
    criterion: "A flow of the infinite prompt or of linear attention ends farther than $10^{-6}$ from its closed-form limit; the \
                infinite prompt ends with a risk more than $10^{-9}$ above the floor; the end at some N is not nearer to the \
                infinite limit than at the N before; or softmax at time T and the longest length is not nearer to it, by more \
                than the error, than at the length before, or nearer only with a local rate below 0.1. (Shorter prompts are shown \
                and not judged: the statement is about long prompts.) Nothing is decided if α lies outside the range of a theorem \
                (infinite prompts: $\\sqrt 2/(d^{1/4}\\|\\Sigma\\|)$; linear attention at N: $\\sqrt{2/(\\|\\Gamma_N\\|\\sqrt d)}$), \
                if a flow does not stand still, if softmax is not known at time T with its error, or if the flows of \
                one of the three are missing.",
    decided_by: "more lengths, dimensions and times, the full form of this claim (a few minutes)",
    judge: judge,
}

/// Flows stop at gradients of 1e-10; eigenvalues of the curvature above 1e-4 leave them this close.
const NEAR: f64 = 1e-6;

/// Risks are exact to 1e-9.
const RISK: f64 = 1e-9;

/// Where a flow of the infinite prompt or of linear attention ends.
struct End {
    dimension: i64,
    length: Option<i64>,
    to_own_limit: Measured,
    to_infinite_limit: Measured,
    risk: Measured,
    /// Its risk above the noise floor.
    above: f64,
}

/// How far softmax is from the limit of linear attention at a time.
struct Near {
    dimension: i64,
    length: i64,
    time: f64,
    distance: Measured,
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(Row::is_exact);
    check_flows(&rows)?;
    rows.retain(|row| row.model != Model::OppositeHeads);
    let (softmax, rows): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.model == Model::Softmax);
    let ends = ends(&rows, judging)?;
    let (mut near, mut sentences, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
    for dimension in dimensions(&rows) {
        let here = at_bounded_time(dimension, &rows, &softmax)?;
        let distances: Vec<(i64, Measured)> = here.iter().map(|one| (one.length, one.distance)).collect();
        let name = format!("d = {dimension}: the distance of softmax to the limit of linear attention");
        let rates = must_fall(&name, &distances[distances.len().saturating_sub(2)..], judging)?;
        let told =
            |one: &Near| format!("{} at {}", figures(one.distance.value), length_name(Some(one.length)));
        sentences.push(format!(
            "In d = {dimension} at time {}, the distance of softmax to the limit of linear attention is {}; its local rate at the \
             longest lengths is {} (at least 0.1)",
            figures(here[0].time),
            listed(here.iter().map(told), ", "),
            listed(rates.iter().map(|rate| format!("{:.2}", rate.slope)), ", ")
        ));
        near.extend(here);
        drawn.push(over_time(
            &rows,
            dimension,
            Quantity::DistanceToOwnLimit,
            [
                "against-time",
                "Linear attention and the infinite prompt: distance to the own closed-form limit",
                "distance to its limit",
                "Exact. Where curves lie on one another, these flows come equally fast to limits of their own. A flow is followed until its \
                 gradient is below $10^{-10}$, where it stands still, or to the last time asked for. The band is the error of the integration.",
            ],
        ));
    }
    let told = format!(
        "Exact. Of the flows of infinite prompts and linear attention, from α in the range of their theorems, {} were followed until \
         they stood still. These end at most {} from the closed-form limits; the risk of the infinite prompt ends at most {} from \
         the noise floor. {}.",
        ends.len(),
        rounded_up(largest(ends.iter().map(|end| end.to_own_limit.value + end.to_own_limit.error()))),
        rounded_up(largest(
            ends.iter().filter(|end| end.length.is_none()).map(|end| end.above + end.risk.error())
        )),
        sentences.join(". ")
    );
    // Both are there: distances were held against one another.
    let longest = near.iter().max_by(|a, b| {
        (a.length, a.distance.value)
            .partial_cmp(&(b.length, b.distance.value))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let Some(longest) = longest else { return Err(undecided("softmax was not trained")) };
    let (distance, length) = (two_figures(longest.distance.value), length_name(Some(longest.length)));
    let explained = near.windows(2).find(|pair| {
        pair[0].dimension == pair[1].dimension && pair[0].distance.value < pair[1].distance.value
    });
    let explained = explained.map(|pair| {
        format!(
            "A shorter prompt can be nearer at that time: {} at {}, but {} at {}. This is no error. At every finite length, also the longest, \
             training first comes near to this limit and later leaves it for an end of its own (see the claim on the drift of finite prompts). \
             Longer prompts come nearer, and leave later: so the distance is compared at one fixed time, and only the two longest prompts are \
             judged.",
            figures(pair[0].distance.value),
            length_name(Some(pair[0].length)),
            figures(pair[1].distance.value),
            length_name(Some(pair[1].length))
        )
    });
    Ok(Found {
        lead: format!(
            "With long prompts softmax comes near the limit that is known for the training of linear attention, and leaves it again later: in {} \
             dimensions at time {}, when training on the infinite prompt stands still, softmax at {length} is {distance} away from it. Linear \
             attention itself ends within {} of its own limit.",
            longest.dimension,
            figures(longest.time),
            rounded_up(largest(ends.iter().map(|end| end.to_own_limit.value + end.to_own_limit.error())))
        ),
        number: distance,
        meaning: format!(
            "distance of softmax at {length} from the limit of linear attention, at time {}",
            figures(longest.time)
        ),
        told,
        main: Some(panels_over_time(
            &softmax,
            Quantity::DistanceToInfiniteLimit,
            [
                "softmax-against-time",
                "Softmax at finite length: distance to the limit of linear attention during training",
                "|θ_L(t) − θ_∞(∞)|",
                "The distance of all parameters to the limit of the infinite prompt, which is that of linear attention. Nothing is sampled; \
                 the band, where it can be seen, is the error of the integration.",
            ],
        )),
        headline:
            "Long prompts bring softmax close to the limit of linear attention, until they leave it again"
                .to_string(),
        explained: explained.into_iter().collect(),
        tables: vec![end_table(&ends), near_table(&near)],
        more: drawn,
    })
}

fn end_table(ends: &[End]) -> Block {
    table(
        "ends",
        "Where the flows end: distances to the own closed-form limit and to that of the infinite prompt ($N = \\infty$, softmax \
         and linear attention alike), and the risk. Exact: nothing is sampled.",
        ends,
        &[
            ("$d$", &|end| Cell::Integer(end.dimension)),
            ("$N$", &|end| end.length.map_or(text("$\\infty$"), Cell::Integer)),
            ("to its limit", &|end| end.to_own_limit.cell()),
            ("to the infinite limit", &|end| end.to_infinite_limit.cell()),
            ("risk", &|end| end.risk.cell()),
        ],
    )
}

fn near_table(near: &[Near]) -> Block {
    table(
        "softmax",
        "Softmax at finite length: its distance to the limit of linear attention at the time $T$ when training on the infinite \
         prompt stands still. Exact: nothing is sampled.",
        near,
        &[
            ("$d$", &|one| Cell::Integer(one.dimension)),
            ("$L$", &|one| Cell::Integer(one.length)),
            ("$T$", &|one| number(Some(one.time), None)),
            ("distance", &|one| one.distance.cell()),
        ],
    )
}

/// No model may be missing in a dimension or start outside the range of its theorem.
fn check_flows(rows: &[Row]) -> Result<(), Failure> {
    for model in [Model::Infinite, Model::Linear, Model::Softmax] {
        let is_there = |dimension| rows.iter().any(|row| (row.model, row.dimension) == (model, dimension));
        if let Some(dimension) = dimensions(rows).into_iter().find(|dimension| !is_there(*dimension)) {
            return Err(undecided(format!("{model} was not trained in d = {dimension}")));
        }
    }
    // Each theorem has its range: the paper's on infinite prompts, that of Zhang, Frei and Bartlett at N examples.
    let ranges = [(Model::Infinite, Quantity::PaperBound), (Model::Linear, Quantity::SufficientBound)];
    for (model, quantity) in ranges {
        let mut bounds = rows.iter().filter(|row| (row.model, row.quantity) == (model, quantity)).peekable();
        if bounds.peek().is_none() {
            return Err(undecided(format!("the range of the theorem on {model} is not known")));
        }
        if let Some(row) = bounds.find(|row| row.initial_scale >= row.number.value) {
            let (length, scale, bound) =
                (length_name(row.length), row.initial_scale, figures(row.number.value));
            return Err(undecided(format!(
                "{model}, {length}: α = {scale} is outside the range α < {bound} of the theorem"
            )));
        }
    }
    Ok(())
}

/// The ends of the flows that stand still, held against their limits.
fn ends(rows: &[Row], judging: &mut Judging) -> Result<Vec<End>, Failure> {
    let mut ends: Vec<End> = Vec::new();
    for flow in flows(rows) {
        let (name, own) = (flow.name(), flow.last(Quantity::DistanceToOwnLimit)?);
        let to_infinite_limit = flow.last(Quantity::DistanceToInfiniteLimit)?.number;
        let risk = flow.last(Quantity::FinalRisk)?.number;
        let above = (risk.value - flow.last(Quantity::NoiseFloor)?.number.value).abs();
        if own.ending != Some(Ending::Stationary) {
            judging.leave_open(format!("{name}: {}", own.ended()));
            continue;
        }
        judging.require(own.number.value <= NEAR, || {
            format!("{name}: ends {} from its closed-form limit", figures(own.number.value))
        });
        if flow.length.is_none() {
            judging.require(above <= RISK, || format!("{name}: ends {} above the floor", figures(above)));
        }
        let before = ends.last().filter(|end| end.dimension == flow.dimension && end.length.is_some());
        judging
            .require(before.is_none_or(|end| to_infinite_limit.value < end.to_infinite_limit.value), || {
                format!("{name}: not nearer to the infinite limit than with fewer examples")
            });
        let (dimension, length, to_own_limit) = (flow.dimension, flow.length, own.number);
        ends.push(End { dimension, length, to_own_limit, to_infinite_limit, risk, above });
    }
    Ok(ends)
}

/// How far softmax is from the limit of linear attention, by length, at the last time asked for before the flow of the
/// infinite prompt stood still.
fn at_bounded_time(dimension: i64, rows: &[Row], softmax: &[Row]) -> Result<Vec<Near>, Failure> {
    let is_infinite = |row: &&Row| {
        (row.model, row.dimension, row.quantity)
            == (Model::Infinite, dimension, Quantity::DistanceToInfiniteLimit)
    };
    // The last row is where it stands, at a time of its own.
    let Some(time) = rows.iter().rev().filter(is_infinite).nth(1).map(|row| row.time) else {
        return Err(undecided(format!("d = {dimension}: the flow of the infinite prompt has no rows")));
    };
    let mut near = Vec::new();
    for flow in flows(softmax).iter().filter(|flow| flow.dimension == dimension) {
        let Some(found) = flow.of(Quantity::DistanceToInfiniteLimit).find(|row| row.time == time) else {
            return Err(undecided(format!("softmax in {} was not followed to time {time}", flow.name())));
        };
        if found.number.error.is_none() {
            return Err(undecided(format!("the error of softmax in {} is not known", flow.name())));
        }
        near.push(Near { dimension, length: flow.tokens(), time, distance: found.number });
    }
    Ok(near)
}
