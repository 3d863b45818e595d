//! Claim: training flows at finite length approach that of the infinite prompt on bounded times (Gaussian covariates).

use super::evidence::{grouped, largest, listed, number, slope_one, table, two_figures};
use super::flows::{Flow, flows, must_fall, panels_over_time};
use crate::judging::{Found, Judging, undecided};
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{Measured, figures, length_name, rounded_up};
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row};
use esscher_report::{Axis, Block, Cell, Figure, Mark, Point, Series};

claim! {
    name: "training-stability",
    title: "Up to a fixed time, training on long prompts follows the infinite prompt",
    statement: "From the same start, the gradient flow at prompt length L stays close to that of the infinite prompt on every \
                bounded interval of time. The longer the prompt, the closer it stays.",
    formula: r"\|\theta_L(t) - \theta_\infty(t)\| \le g(L)\, t\, e^{\beta t}, \qquad g(L) \to 0",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 4, the theorem on the stability of training.",
    measurement: "In-context linear regression with Gaussian covariates, block form, isotropic, label noise 0.1, from the paper's initialisation: the largest \
                  distance of all parameters on a grid of [0, T], and the largest distance divided by t, which is g(L) \
                  with β = 0. Risks and gradients are exact at every length; the error is the change of a flow when its \
                  integration is a hundred times looser.",
    criterion: "In some dimension one of the two does not fall by more than its error from one length to the next. Or its \
                local rate at the longest lengths is below 0.1: it levels off. Nothing is decided if one of the two flows \
                neither reaches T nor stands still, or if the error of a distance is not known.",
    decided_by: "more lengths and times, the full form of this claim (about ten minutes on two cores)",
    judge: judge,
}

/// What the flow at one length shows.
struct Shown {
    dimension: i64,
    length: i64,
    /// The largest distance to the infinite flow.
    distance: Measured,
    /// The largest distance over time.
    over_time: Measured,
    /// The local rate of the distance since the length before, with its error.
    rate: Option<(f64, f64)>,
    /// The last time at which they are compared.
    end: Option<f64>,
}

impl Shown {
    fn of(flow: &Flow<'_>) -> Result<Self, Failure> {
        let end = flow.last(Quantity::FinalRisk)?;
        if !end.is_followed() {
            return Err(undecided(format!("{}: {}", flow.name(), end.ended())));
        }
        // It is there if the infinite flow was followed too.
        flow.last(Quantity::LargestDistanceToInfinite)?;
        if flow.of(Quantity::DistanceToInfinite).any(|row| row.number.error.is_none()) {
            return Err(undecided(format!("{}: the error of a distance is not known", flow.name())));
        }
        let most = |scale: fn(&Row) -> f64| {
            let moving = flow.of(Quantity::DistanceToInfinite).filter(|row| row.time > 0.0);
            let scaled = moving.map(|row| row.number.times(1.0 / scale(row)));
            scaled.max_by(|a, b| a.value.total_cmp(&b.value))
        };
        let (Some(distance), Some(over_time)) = (most(|_| 1.0), most(|row| row.time)) else {
            return Err(undecided(format!("{}: there is no distance to the infinite flow", flow.name())));
        };
        let end = flow.of(Quantity::DistanceToInfinite).next_back().map(|row| row.time);
        Ok(Shown { dimension: flow.dimension, length: flow.tokens(), distance, over_time, rate: None, end })
    }
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(|row| row.is_exact() && row.model == Model::Softmax);
    let mut shown = flows(&rows).iter().map(Shown::of).collect::<Result<Vec<_>, Failure>>()?;
    if shown.is_empty() {
        return Err(undecided("there is no softmax flow at finite length"));
    }
    let mut sentences = Vec::new();
    for here in shown.chunk_by_mut(|a, b| a.dimension == b.dimension) {
        let dimension = here[0].dimension;
        let of = |number: fn(&Shown) -> Measured| -> Vec<(i64, Measured)> {
            here.iter().map(|one| (one.length, number(one))).collect()
        };
        let distances = of(|one| one.distance);
        let rates = must_fall(&format!("d = {dimension}: the largest distance"), &distances, judging)?;
        must_fall(&format!("d = {dimension}: g(L)"), &of(|one| one.over_time), judging)?;
        let told = |(length, number): &(i64, Measured)| {
            format!("{} at {}", figures(number.value), length_name(Some(*length)))
        };
        sentences.push(format!(
            "d = {dimension}: {}, {}, local rates {}",
            told(&distances[0]),
            told(&distances[distances.len() - 1]),
            listed(rates.iter().map(|rate| format!("{:.2}", rate.slope)), ", ")
        ));
        for (one, rate) in here[1..].iter_mut().zip(rates) {
            one.rate = Some((rate.slope, rate.standard_error));
        }
    }
    let told = format!(
        "Largest distance over the interval, exact to {}. {}.",
        rounded_up(largest(shown.iter().map(|one| one.distance.error()))),
        sentences.join("; ")
    );
    // Where it is largest at the longest prompts.
    let ends =
        shown.chunk_by(|a, b| a.dimension == b.dimension).filter_map(|here| here.first().zip(here.last()));
    let worst = ends.max_by(|a, b| a.1.distance.value.total_cmp(&b.1.distance.value));
    let (first, last) = worst.ok_or_else(|| undecided("there is no softmax flow at finite length"))?;
    let times = shown.iter().flat_map(|one| one.end);
    let [before, after] = [first, last].map(|one| two_figures(one.distance.value));
    let [short, long] = [first, last].map(|one| length_name(Some(one.length)));
    Ok(Found {
        lead: format!(
            "Up to a fixed time, the longer the prompt, the closer training stays to that of the infinite prompt. In {} dimensions, the most \
             that was tried, the largest distance of the parameters up to time {} is {before} at {short} and {after} at {long}.",
            last.dimension,
            two_figures(largest(times.clone()))
        ),
        number: after,
        meaning: format!(
            "the largest distance up to time {} in {} dimensions at {} tokens (at {}: {before})",
            two_figures(largest(times.clone())),
            last.dimension,
            about(last.length),
            about(first.length)
        ),
        told,
        main: Some(panels_over_time(
            &rows,
            Quantity::DistanceToInfinite,
            [
                "against-time",
                "Distance between training at finite length and on the infinite prompt",
                "|θ_L(t) − θ_∞(t)|",
                "All parameters, from the same start. Exact. The band is the error of the integration; where it widens, at early \
                 times and long prompts, the distance is not resolved. The distances still grow at the last time: what comes later is told \
                 by the claim on the drift of finite prompts.",
            ],
        )),
        headline: "The longer the prompt, the closer training stays to the infinite prompt".to_string(),
        explained: Vec::new(),
        tables: vec![judged(&shown)],
        more: vec![Block::Figure(against_length(&shown))],
    })
}

/// A prompt length in a few signs.
fn about(length: i64) -> String {
    if length < 10_000 { grouped(length) } else { figures(length as f64) }
}

fn judged(shown: &[Shown]) -> Block {
    table(
        "distances",
        "Largest distance between the flows over the interval, largest distance divided by time, and the local rate \
         $\\kappa$ of the former since the length before. Exact.",
        shown,
        &[
            ("$d$", &|one| Cell::Integer(one.dimension)),
            ("$L$", &|one| Cell::Integer(one.length)),
            ("distance", &|one| one.distance.cell()),
            ("distance/$t$", &|one| one.over_time.cell()),
            ("$\\kappa$", &|one| number(one.rate.map(|rate| rate.0), one.rate.map(|rate| rate.1))),
        ],
    )
}

/// Dots for each dimension; 1/L through the last, as far as the length before.
fn against_length(shown: &[Shown]) -> Figure {
    let (mut series, mut guides) = (Vec::new(), Vec::new());
    for (colour, here) in shown.chunk_by(|a, b| a.dimension == b.dimension).enumerate() {
        let points: Vec<Point> = here.iter().map(|one| one.distance.point(one.length as f64)).collect();
        guides.extend(slope_one(&points[points.len().saturating_sub(2)..]));
        let name = format!("d = {}", here[0].dimension);
        series.push(Series { name, mark: Mark::Dots, colour, points });
    }
    series.extend(guides);
    Figure {
        id: "against-length".to_string(),
        title: "The largest distance between the flows against the prompt length".to_string(),
        caption: "Exact; bars are the error of the integration, where it can be seen. Dashed: a fall like $1/L$, through the last \
                  dots, as far as the length before. Where the dot before lies below that line, the distance falls more slowly than $1/L$."
            .to_string(),
        x: Axis::logarithmic("prompt length L"),
        y: Axis::logarithmic("largest |θ_L(t) − θ_∞(t)|, t ≤ T"),
        series,
    }
}
