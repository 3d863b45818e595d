//! Claim: the same stability for covariates that are sub-Gaussian and not Gaussian.

use super::evidence::named;
use super::{Claim, Judgement, regression};
use crate::kinds::{Record, trajectories};
use crate::measured::{Measured, length_name};
use crate::tabulating::take_constant;
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::student;
use esscher_lab::{Failure, Table};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series, Verdict};

pub(super) const CLAIM: Claim = Claim {
    name: "training-stability-sub-gaussian",
    title: "Stability of training beyond Gaussian covariates",
    statement: "Training is stable in the same sense for sub-Gaussian tokens, not only for Gaussian ones.",
    formula: r"\sup_{t \le T} \|\theta_L(t) - \theta_\infty(t)\| \to 0 \quad (L \to \infty), \qquad \mu \text{ sub-Gaussian}",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, stability of training for sub-Gaussian tokens.",
    measurement: "Covariates with independent signs or uniform coordinates; the infinite prompt through the law's tilted mean, finite \
                  prompts on drawn covariates that all lengths of a draw share. For each draw the rate $\\kappa$ of $cL^{-\\kappa}$ is \
                  fitted to the largest distances; draws are independent, so Student's interval holds for their mean.",
    criterion: "For some law and dimension the interval of the rate, of confidence 99.9 % for all of them together, lies below 0.1. If it \
                reaches from 0 to beyond 0.1 nothing is decided. A law whose distances fall at a rate of 0.1 or more \
                is called refuted with probability at most 0.1 %.",
    quick: include_str!("../../../../experiments/training-stability-sub-gaussian/quick.toml"),
    full: include_str!("../../../../experiments/training-stability-sub-gaussian/full.toml"),
    judge,
};

/// Chance that some interval misses its rate.
const FALSE_ALARM: f64 = 1e-3;

/// A rate below this is called no fall.
const NO_FALL: f64 = 0.1;

struct Rate {
    covariates: String,
    dimension: i64,
    mean: f64,
    half_width: f64,
    draws: u64,
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records: Vec<Record> = trajectories(result)?
        .into_iter()
        .filter(|record| {
            record.model == "softmax"
                && record.covariates != "gaussian"
                && record.quantity == "largest-distance-to-infinite"
        })
        .collect();
    let mut laws: Vec<(String, i64)> =
        records.iter().map(|record| (record.covariates.clone(), record.dimension)).collect();
    laws.dedup();
    laws.sort();
    laws.dedup();
    if laws.is_empty() {
        return Ok(regression::undecided("there are no flows of covariates that are not Gaussian"));
    }
    let mut rates = Vec::new();
    for (covariates, dimension) in &laws {
        let here: Vec<&Record> = records
            .iter()
            .filter(|record| record.covariates == *covariates && record.dimension == *dimension)
            .collect();
        let mut draws: Vec<i64> = here.iter().filter_map(|record| record.draw).collect();
        draws.sort_unstable();
        draws.dedup();
        let mut summary = Summary::new();
        for draw in draws {
            let points: Vec<(f64, f64)> = here
                .iter()
                .filter(|record| record.draw == Some(draw) && record.number.value > 0.0)
                .filter_map(|record| Some(((record.length? as f64).ln(), record.number.value.ln())))
                .collect();
            if let Some(slope) = least_squares_slope(&points) {
                summary.add(-slope);
            }
        }
        let (Some(mean), Some(error)) = (summary.mean(), summary.standard_error()) else {
            return Ok(regression::undecided("a rate needs two draws and two lengths at least"));
        };
        let degrees = (summary.count() - 1) as f64;
        let quantile = student::quantile(1.0 - 0.5 * FALSE_ALARM / laws.len() as f64, degrees)?;
        rates.push(Rate {
            covariates: covariates.clone(),
            dimension: *dimension,
            mean,
            half_width: quantile * error,
            draws: summary.count(),
        });
    }
    let found: Vec<String> = rates
        .iter()
        .map(|rate| {
            format!(
                "{}, d = {}: {:.2} ± {:.2} ({} draws)",
                rate.covariates, rate.dimension, rate.mean, rate.half_width, rate.draws
            )
        })
        .collect();
    let found = format!("Rates κ with joint 99.9 % intervals, sampled: {}.", found.join("; "));
    let evidence = vec![Block::Table(table(&rates)), Block::Figure(figure(&records, &rates))];
    let name = |rate: &Rate| format!("{}, d = {}", rate.covariates, rate.dimension);
    let refuted: Vec<String> = rates
        .iter()
        .filter(|rate| rate.mean + rate.half_width < NO_FALL)
        .map(|rate| format!("the distances of {} do not fall", name(rate)))
        .collect();
    let open: Vec<String> =
        rates.iter().filter(|rate| rate.mean - rate.half_width <= 0.0).map(name).collect();
    if refuted.is_empty() && !open.is_empty() {
        let reason = format!("The interval reaches 0 for {}: draw more. {found}", open.join("; "));
        let evidence = named(CLAIM.name, evidence);
        return Ok(Judgement { verdict: Verdict::NotMeasurable, reason, evidence });
    }
    Ok(regression::judged(CLAIM.name, refuted, found, evidence))
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
                Cell::Text(rate.covariates.clone()),
                Cell::Integer(rate.dimension),
                Cell::Number { value: rate.mean, error: Some(rate.half_width) },
                Cell::Integer(rate.draws as i64),
            ]
        })
        .collect();
    let mut columns = ["covariates", "$d$", "$\\kappa$", "draws"].map(String::from).to_vec();
    let mut caption =
        "Rate of the fall $cL^{-\\kappa}$ of the largest distance, sampled; the error is half of Student's \
                       interval, 99.9 % for all rows together."
            .to_string();
    if let Some(Cell::Integer(draws)) = take_constant(&mut columns, &mut rows, "draws") {
        caption.push_str(&format!(" From {draws} draws each."));
    }
    if let Some(Cell::Integer(dimension)) = take_constant(&mut columns, &mut rows, "$d$") {
        caption.push_str(&format!(" $d = {dimension}$."));
    }
    DataTable { id: "rates".to_string(), caption, columns, rows }
}

fn figure(records: &[Record], rates: &[Rate]) -> Figure {
    let (mut series, mut dashed) = (Vec::new(), Vec::new());
    let mut fit = "fitted rate".to_string();
    for (colour, rate) in rates.iter().enumerate() {
        let mut means: Vec<(f64, Measured)> = records
            .iter()
            .filter(|record| {
                record.covariates == rate.covariates
                    && record.dimension == rate.dimension
                    && record.draw.is_none()
            })
            .filter_map(|record| Some((record.length? as f64, record.number)))
            .collect();
        means.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points: Vec<Point> = means.iter().map(|(length, number)| number.point(*length)).collect();
        let name = format!("{}, d = {}", rate.covariates, rate.dimension);
        if let Some(first) = points.first().copied() {
            let fitted = points
                .iter()
                .map(|point| Point::new(point.x, first.y * (point.x / first.x).powf(-rate.mean)))
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
            length_name(records.iter().filter_map(|record| record.length).min())
        ),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "largest |θ_L(t) − θ_∞(t)|, t ≤ T".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
