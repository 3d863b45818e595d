//! Claim: the same stability for covariates that are sub-Gaussian and not Gaussian.

use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::student;
use esscher_lab::{Failure, Named, Table};
use esscher_questions::asking::Covariates;
use esscher_questions::measured::{Measured, length_name};
use esscher_questions::tabulating::take_constant;
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};
use std::collections::BTreeSet;

pub(super) const CLAIM: Claim = Claim {
    name: "training-stability-sub-gaussian",
    title: "Stability of training beyond Gaussian covariates",
    statement: "Training is stable in the same sense for sub-Gaussian tokens, not only for Gaussian ones.",
    formula: r"\sup_{t \le T} \|\theta_L(t) - \theta_\infty(t)\| \to 0 \quad (L \to \infty), \qquad \mu \text{ sub-Gaussian}",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, stability of training for sub-Gaussian tokens.",
    measurement: "Covariates with independent signs or uniform coordinates. Both flows minimise the average risk over one finite set of drawn \
                  prompts and queries, not the risk of the population: the infinite prompt through the law's tilted mean, \
                  finite prompts on drawn covariates that all lengths of a draw share. For each draw the rate $\\kappa$ of \
                  $cL^{-\\kappa}$ is fitted to the largest distances at all lengths, and once more to the two longest alone. \
                  Draws are independent; Student's interval for the mean of a rate is exact if rates of draws are normal, and with \
                  these few draws their normality is assumed, not tested.",
    criterion: "For some law and dimension the interval of one of the two rates, of confidence 99.9 % for all of them together, lies below 0.1. If an interval reaches from 0 or below to beyond 0.1, if a flow \
                neither reaches T nor stands still, or if a distance is 0, nothing is decided. A law whose distances fall at a rate of \
                0.1 or more is called refuted with probability at most 0.1 %.",
    quick: include_str!("../../../../experiments/training-stability-sub-gaussian/quick.toml"),
    full: include_str!("../../../../experiments/training-stability-sub-gaussian/full.toml"),
    judge,
};

/// Chance that some interval misses its rate.
const FALSE_ALARM: f64 = 1e-3;

/// A rate below this is called no fall.
const NO_FALL: f64 = 0.1;

/// A rate over some lengths, with half of its interval.
#[derive(Clone, Copy)]
struct Interval {
    mean: f64,
    half_width: f64,
}

impl Interval {
    fn cell(self) -> Cell {
        Cell::Number { value: self.mean, error: Some(self.half_width) }
    }

    fn told(self) -> String {
        format!("{:.2} ± {:.2}", self.mean, self.half_width)
    }
}

struct Rate {
    covariates: Covariates,
    dimension: i64,
    overall: Interval,
    longest: Interval,
    draws: u64,
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(|row| row.model == Model::Softmax && row.covariates != Covariates::Gaussian);
    if let Some(why) = why_undecided(&rows) {
        return Ok(Judging::undecided(&why));
    }
    rows.retain(|row| row.quantity == Quantity::LargestDistanceToInfinite);
    let mut laws: Vec<(Covariates, i64)> = rows.iter().map(|row| (row.covariates, row.dimension)).collect();
    laws.sort_by_key(|(covariates, dimension)| (covariates.name(), *dimension));
    laws.dedup();
    if laws.is_empty() {
        return Ok(Judging::undecided("there are no flows of covariates that are not Gaussian"));
    }
    // Two intervals for each law.
    let chance = 0.5 * FALSE_ALARM / (2 * laws.len()) as f64;
    let rates =
        laws.into_iter().map(|(covariates, dimension)| Rate::of(&rows, covariates, dimension, chance));
    let Some(rates) = rates.collect::<Result<Option<Vec<Rate>>, Failure>>()? else {
        return Ok(Judging::undecided("a rate needs two draws and two lengths at least"));
    };
    let mut judging = Judging::default();
    let mut found = Vec::new();
    for rate in &rates {
        let name = format!("{}, d = {}", rate.covariates, rate.dimension);
        for (which, interval) in [("", rate.overall), (" between the two longest lengths", rate.longest)] {
            if interval.mean + interval.half_width < NO_FALL {
                judging.refute(format!("the distances of {name}{which} do not fall"));
            } else if interval.mean - interval.half_width <= 0.0 {
                judging.leave_open(format!("the interval of {name}{which} reaches 0"));
            }
        }
        found.push(format!(
            "{name}: {}, and {} between the two longest lengths ({} draws)",
            rate.overall.told(),
            rate.longest.told(),
            rate.draws
        ));
    }
    let found = format!("Rates κ with joint 99.9 % intervals, sampled: {}.", found.join("; "));
    let evidence = vec![Block::Table(table(&rates)), Block::Figure(figure(&rows, &rates))];
    Ok(judging.judgement(CLAIM.name, found, evidence))
}

/// Why these flows cannot decide, if they cannot.
fn why_undecided(rows: &[Row]) -> Option<String> {
    let flow = |row: &Row| (row.covariates, row.dimension, row.length, row.draw);
    for row in rows.iter().filter(|row| row.quantity == Quantity::FinalRisk && row.draw.is_some()) {
        let name = format!("{}, d = {}, {}", row.covariates, row.dimension, length_name(row.length));
        if !row.is_followed() {
            return Some(format!("{name}: {}", row.ended()));
        }
        let mut distances = rows.iter().filter(|row| row.quantity == Quantity::LargestDistanceToInfinite);
        let distance = distances.find(|other| flow(other) == flow(row));
        if !distance.is_some_and(|found| found.number.value > 0.0) {
            return Some(format!("{name}: a draw has no distance to the infinite flow"));
        }
    }
    None
}

impl Rate {
    /// The rate of a law from its draws, each interval missing it with twice this chance; none if there are too few.
    fn of(
        rows: &[Row],
        covariates: Covariates,
        dimension: i64,
        chance: f64,
    ) -> Result<Option<Self>, Failure> {
        let here = || rows.iter().filter(|row| (row.covariates, row.dimension) == (covariates, dimension));
        let (mut overall, mut longest) = (Summary::new(), Summary::new());
        for draw in here().filter_map(|row| row.draw).collect::<BTreeSet<i64>>() {
            let mut points: Vec<(f64, f64)> = here()
                .filter(|row| row.draw == Some(draw) && row.number.value > 0.0)
                .filter_map(|row| Some(((row.length? as f64).ln(), row.number.value.ln())))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let last = &points[points.len().saturating_sub(2)..];
            for (summary, points) in [(&mut overall, points.as_slice()), (&mut longest, last)] {
                if let Some(slope) = least_squares_slope(points) {
                    summary.add(-slope);
                }
            }
        }
        let interval = |summary: &Summary| -> Result<Option<Interval>, Failure> {
            let (Some(mean), Some(error)) = (summary.mean(), summary.standard_error()) else {
                return Ok(None);
            };
            let quantile = student::quantile(1.0 - chance, (summary.count() - 1) as f64)?;
            Ok(Some(Interval { mean, half_width: quantile * error }))
        };
        let draws = overall.count();
        Ok(match (interval(&overall)?, interval(&longest)?) {
            (Some(overall), Some(longest)) => Some(Rate { covariates, dimension, overall, longest, draws }),
            _ => None,
        })
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

fn table(rates: &[Rate]) -> DataTable {
    let mut rows: Vec<Vec<Cell>> = rates
        .iter()
        .map(|rate| {
            vec![
                Cell::Text(rate.covariates.to_string()),
                Cell::Integer(rate.dimension),
                rate.overall.cell(),
                rate.longest.cell(),
                Cell::Integer(rate.draws as i64),
            ]
        })
        .collect();
    let mut columns = ["covariates", "$d$", "$\\kappa$", "two longest", "draws"].map(String::from).to_vec();
    let mut caption =
        "Rate of the fall $cL^{-\\kappa}$ of the largest distance, at all lengths and between the two longest, sampled; the \
         error is half of Student's interval, 99.9 % for all of them together."
            .to_string();
    if let Some(Cell::Integer(draws)) = take_constant(&mut columns, &mut rows, "draws") {
        caption.push_str(&format!(" From {draws} draws each."));
    }
    if let Some(Cell::Integer(dimension)) = take_constant(&mut columns, &mut rows, "$d$") {
        caption.push_str(&format!(" $d = {dimension}$."));
    }
    DataTable { id: "rates".to_string(), caption, columns, rows }
}

fn figure(rows: &[Row], rates: &[Rate]) -> Figure {
    let (mut series, mut dashed) = (Vec::new(), Vec::new());
    let mut fit = "fitted rate".to_string();
    for (colour, rate) in rates.iter().enumerate() {
        let law = (rate.covariates, rate.dimension);
        let mut means: Vec<(f64, Measured)> = rows
            .iter()
            .filter(|row| (row.covariates, row.dimension) == law && row.draw.is_none())
            .filter_map(|row| Some((row.length? as f64, row.number)))
            .collect();
        means.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points: Vec<Point> = means.iter().map(|(length, number)| number.point(*length)).collect();
        let name = format!("{}, d = {}", rate.covariates, rate.dimension);
        if let Some(first) = points.first().copied() {
            let fitted = points
                .iter()
                .map(|point| Point::new(point.x, first.y * (point.x / first.x).powf(-rate.overall.mean)))
                .collect();
            series.push(Series { name, mark: Mark::Dots, colour, points });
            let name = std::mem::take(&mut fit);
            dashed.push(Series { name, mark: Mark::Dashed, colour, points: fitted });
        }
    }
    series.extend(dashed);
    Figure {
        id: "against-length".to_string(),
        title: "Largest distance between the flows, covariates that are not Gaussian".to_string(),
        caption: format!(
            "Sampled: means over draws with one standard error. Dashed: the fall at the fitted rate from the mean at {}.",
            length_name(rows.iter().filter_map(|row| row.length).min())
        ),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "largest |θ_L(t) − θ_∞(t)|, t ≤ T".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
