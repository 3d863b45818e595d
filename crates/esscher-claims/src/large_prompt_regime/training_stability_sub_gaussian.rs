//! Claim: the same stability for covariates that are sub-Gaussian and not Gaussian.

use super::evidence::{and, listed, smallest, table, text, two_figures};
use crate::judging::{Found, Judging, undecided};
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::student;
use esscher_lab::{Failure, Named, Table};
use esscher_questions::asking::Covariates;
use esscher_questions::measured::{Measured, length_name};
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row};
use esscher_report::{Axis, Block, Cell, Figure, Mark, Point, Series};
use std::collections::{BTreeMap, BTreeSet};

claim! {
    name: "training-stability-sub-gaussian",
    title: "With two bounded laws of covariates, too, longer prompts keep training closer",
    statement: "Training is stable in the same sense for sub-Gaussian tokens, not only for Gaussian ones.",
    formula: r"\sup_{t \le T} \|\theta_L(t) - \theta_\infty(t)\| \to 0 \quad (L \to \infty), \qquad \mu \text{ sub-Gaussian}",
    citation: "[Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 4, the theorem on the stability of training, which holds for \
               sub-Gaussian tokens.",
    measurement: "Covariates with independent signs or uniform coordinates; isotropic, label noise 0.1, from a start of size $\\alpha = 0.7$ to \
                  time 20. Both flows minimise the average risk over one finite \
                  set of drawn prompts and queries, not the risk of the population: the infinite prompt through the law's tilted \
                  mean, finite prompts on drawn covariates that all lengths of a draw share. For each draw the rate $\\kappa$ of \
                  $cL^{-\\kappa}$ is fitted to the largest distances at all lengths, and once more to the two longest alone. \
                  Draws are independent. Student's interval for the mean of a rate is exact if rates of draws are normal, which \
                  is assumed and not tested, because there are few draws.",
    criterion: "For some law and dimension the interval of one of the two rates lies below 0.1. The confidence is 99.9 % for all \
                intervals together: a law whose distances fall at a rate of 0.1 or more is called refuted with probability at \
                most 0.1 %. Nothing is decided if an interval reaches from below 0.1 to beyond it, if a flow neither reaches T \
                nor stands still, or if a distance is 0.",
    decided_by: "more draws of more prompts, the full form of this claim (about two hours on two cores)",
    judge: judge,
}

/// Chance that some interval misses its rate.
const FALSE_ALARM: f64 = 1e-3;

/// A rate below this is called no fall.
const NO_FALL: f64 = 0.1;

/// The rates of a law in one dimension; their errors are half of their intervals.
struct Rate<'a> {
    law: &'static str,
    dimension: i64,
    /// Its largest distances.
    rows: Vec<&'a Row>,
    overall: Measured,
    longest: Measured,
    /// How much steeper the longest are than all: by how much their rate exceeds the overall one, draw by draw.
    steeper: Measured,
    draws: u64,
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(|row| row.model == Model::Softmax && row.covariates != Covariates::Gaussian);
    check_flows(&rows)?;
    let mut laws: BTreeMap<(&str, i64), Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.quantity == Quantity::LargestDistanceToInfinite) {
        laws.entry((people(row.covariates), row.dimension)).or_default().push(row);
    }
    if laws.is_empty() {
        return Err(undecided("there are no flows of covariates that are not Gaussian"));
    }
    // Two intervals for each law.
    let chance = 0.5 * FALSE_ALARM / (2 * laws.len()) as f64;
    let rates = laws.into_iter().map(|((law, dimension), rows)| Rate::of(law, dimension, rows, chance));
    let rates = rates.collect::<Result<Vec<Rate<'_>>, Failure>>()?;
    let told = |rate: Measured| format!("{:.2} ± {:.2}", rate.value, rate.error());
    let mut sentences = Vec::new();
    for rate in &rates {
        let (name, overall, longest) = (rate.name(), told(rate.overall), told(rate.longest));
        for (which, found) in [("", rate.overall), (" between the two longest lengths", rate.longest)] {
            judging.positive(found.value - NO_FALL, found.error(), 0.0, || {
                format!("the distances of {name}{which} fall at the rate {}", told(found))
            });
        }
        sentences.push(format!(
            "{name}: {overall}, and {longest} between the two longest lengths ({} draws)",
            rate.draws
        ));
    }
    let found = format!("Rates κ with joint 99.9 % intervals, sampled: {}.", listed(sentences, "; "));
    let judged = table(
        "rates",
        "Rate of the fall $cL^{-\\kappa}$ of the largest distance, at all lengths and between the two longest, sampled; the \
         error is half of Student's interval, 99.9 % for all of them together.",
        &rates,
        &[
            ("covariates", &|rate| text(rate.law)),
            ("$d$", &|rate| Cell::Integer(rate.dimension)),
            ("$\\kappa$", &|rate| rate.overall.cell()),
            ("two longest", &|rate| rate.longest.cell()),
            ("draws", &|rate| Cell::Integer(rate.draws as i64)),
        ],
    );
    let exponents: Vec<String> =
        rates.iter().map(|rate| format!("{} for {}", two_figures(rate.overall.value), rate.name())).collect();
    let lengths = || rates.iter().flat_map(|rate| rate.rows.iter().filter_map(|row| row.length));
    let [short, long] = [lengths().min(), lengths().max()].map(|length| length.unwrap_or_default());
    let lowest = smallest(
        rates.iter().flat_map(|rate| [rate.overall, rate.longest]).map(|rate| rate.value - rate.error()),
    );
    let is_steeper = rates.iter().all(|rate| rate.steeper.value > rate.steeper.error());
    let explained = format!(
        "The dashed lines pass between the dots and not through them: one power of the length is only a summary, and the rate between \
         the two longest lengths is judged as well. {}",
        if is_steeper {
            "The fall gets steeper with the length: the dots lie on a bent curve."
        } else {
            "These draws do not tell for all laws whether the fall gets steeper with the length."
        }
    );
    Ok(Found {
        lead: format!(
            "With two bounded laws of covariates, too, training on longer prompts stays closer to that of the infinite prompt. On finite sets \
             of drawn prompts, whose risk is minimised and not that of the population, the largest distance falls from {} to {} tokens \
             about like a power of the length, with the exponent {}. Of all rates, also between the two longest lengths, joint 99.9 % \
             intervals begin at {:.2} or above (allowed: 0.1).",
            short,
            long,
            and(&exponents),
            (100.0 * lowest).floor() / 100.0
        ),
        number: format!("{:.2}", (100.0 * lowest).floor() / 100.0),
        meaning: "is the least exponent of the fall that the intervals (jointly 99.9 %) allow; it must be above 0.1".to_string(),
        told: found,
        main: Some(Block::Figure(against_length(&rates))),
        headline: "With two bounded laws, too, longer prompts keep training closer".to_string(),
        explained: vec![explained],
        tables: vec![judged],
        more: Vec::new(),
    })
}

/// The name of a law of covariates for people.
fn people(covariates: Covariates) -> &'static str {
    match covariates {
        Covariates::Rademacher => "random signs",
        other => other.name(),
    }
}

/// Each drawn flow must have been followed, and have a positive distance to the infinite one.
fn check_flows(rows: &[Row]) -> Result<(), Failure> {
    let flow = |row: &Row| (row.covariates, row.dimension, row.length, row.draw);
    for row in rows.iter().filter(|row| row.quantity == Quantity::FinalRisk && row.draw.is_some()) {
        let name = format!("{}, d = {}, {}", people(row.covariates), row.dimension, length_name(row.length));
        if !row.is_followed() {
            return Err(undecided(format!("{name}: {}", row.ended())));
        }
        let mut distances = rows.iter().filter(|row| row.quantity == Quantity::LargestDistanceToInfinite);
        if !distances.find(|other| flow(other) == flow(row)).is_some_and(|found| found.number.value > 0.0) {
            return Err(undecided(format!("{name}: a draw has no distance to the infinite flow")));
        }
    }
    Ok(())
}

impl<'a> Rate<'a> {
    /// The rate of a law from its draws, each interval missing it with twice this chance.
    fn of(law: &'static str, dimension: i64, rows: Vec<&'a Row>, chance: f64) -> Result<Self, Failure> {
        let (mut overall, mut longest, mut steeper) = (Summary::new(), Summary::new(), Summary::new());
        for draw in rows.iter().filter_map(|row| row.draw).collect::<BTreeSet<i64>>() {
            let here = rows.iter().filter(|row| row.draw == Some(draw) && row.number.value > 0.0);
            let logarithms = |row: &&Row| Some(((row.length? as f64).ln(), row.number.value.ln()));
            let mut points: Vec<(f64, f64)> = here.filter_map(logarithms).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let last = &points[points.len().saturating_sub(2)..];
            if let (Some(all), Some(last)) = (least_squares_slope(&points), least_squares_slope(last)) {
                overall.add(-all);
                longest.add(-last);
                steeper.add(all - last);
            }
        }
        let interval = |summary: &Summary| -> Result<Measured, Failure> {
            let (Some(mean), Some(error)) = (summary.mean(), summary.standard_error()) else {
                return Err(undecided("a rate needs two draws and two lengths at least"));
            };
            let quantile = student::quantile(1.0 - chance, (summary.count() - 1) as f64)?;
            Ok(Measured::sampled(mean, quantile * error))
        };
        let draws = overall.count();
        let [overall, longest, steeper] = [interval(&overall)?, interval(&longest)?, interval(&steeper)?];
        Ok(Rate { law, dimension, rows, overall, longest, steeper, draws })
    }

    fn name(&self) -> String {
        format!("{}, d = {}", self.law, self.dimension)
    }
}

/// The slope of the line through points, if there are two different abscissae.
fn least_squares_slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (square, product) = points.iter().fold((0.0, 0.0), |(square, product), point| {
        (square + (point.0 - x).powi(2), product + (point.0 - x) * (point.1 - y))
    });
    (square > 0.0).then(|| product / square)
}

fn against_length(rates: &[Rate<'_>]) -> Figure {
    let (mut series, mut dashed) = (Vec::new(), Vec::new());
    let mut fit = "fitted power of L".to_string();
    for (colour, rate) in rates.iter().enumerate() {
        let means = rate.rows.iter().filter(|row| row.draw.is_none());
        let mut points: Vec<Point> =
            means.filter_map(|row| Some(row.number.point(row.length? as f64))).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        if points.is_empty() {
            continue;
        }
        // The constant for which the dots lie as much above as below, by their logarithms.
        let exponent = rate.overall.value;
        let logarithms = points.iter().map(|point| point.y.ln() + exponent * point.x.ln());
        let constant = logarithms.sum::<f64>() / points.len() as f64;
        let fitted = |point: &Point| Point::new(point.x, (constant - exponent * point.x.ln()).exp());
        let (name, fall) = (std::mem::take(&mut fit), points.iter().map(fitted).collect());
        dashed.push(Series { name, mark: Mark::Dashed, colour, points: fall });
        series.push(Series { name: rate.name(), mark: Mark::Dots, colour, points });
    }
    series.extend(dashed);
    Figure {
        id: "against-length".to_string(),
        title: "The largest distance between the flows against the prompt length".to_string(),
        caption: "Sampled: means over draws with one standard error. Dashed: the power of the length with the mean of the exponents that \
                  were fitted to single draws, placed so that the dots lie as much above as below."
            .to_string(),
        x: Axis::logarithmic("prompt length L"),
        y: Axis::logarithmic("largest |θ_L(t) − θ_∞(t)|, t ≤ T"),
        series,
    }
}
