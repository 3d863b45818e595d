//! Claim: training flows at finite length approach that of the infinite prompt on bounded times (Gaussian covariates).

use super::{Claim, Judgement, regression};
use crate::kinds::{Record, curves, lines, time_axis, trajectories};
use crate::measured::{GREY, figures, length_name, rounded_up};
use esscher_core::concentration::{Dependence, LocalSlope, RatePoint, local_slopes};
use esscher_core::prompt::PromptLength;
use esscher_lab::{Failure, Table};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

pub(super) const CLAIM: Claim = Claim {
    name: "training-stability",
    title: "Training at finite length follows the infinite prompt",
    statement: "From the same start, the gradient flow at prompt length L stays close to that of the infinite prompt on every \
                bounded interval of time, the closer the longer the prompt.",
    formula: r"\|\theta_L(t) - \theta_\infty(t)\| \le g(L)\, t\, e^{\beta t}, \qquad g(L) \to 0",
    citation: "Boursier & Boyer 2025, arXiv 2512.11784, stability of training.",
    measurement: "In-context linear regression with Gaussian covariates, block form, from the paper's initialisation: the largest \
                  distance of all parameters on a grid of [0, T], and the largest distance divided by t, which is g(L) \
                  with β = 0. Risks and gradients are exact at every length; the error is the change of a flow when its \
                  integration is a hundred times looser.",
    criterion: "In some dimension one of the two does not fall by more than its error from one length to the next, or its \
                local rate at the longest lengths is below 0.1, so that it levels off. Nothing is decided if one of the two flows \
                neither reaches T nor stands still, or if the error of a distance is not known.",
    quick: include_str!("../../../../experiments/training-stability/quick.toml"),
    full: include_str!("../../../../experiments/training-stability/full.toml"),
    judge,
};

/// A fall slower than this is called levelling off.
const LEVELS_OFF: f64 = 0.1;

/// The largest of something over a flow, by length.
struct Fall {
    dimension: i64,
    points: Vec<RatePoint>,
    slopes: Vec<LocalSlope>,
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records = trajectories(result)?;
    let softmax: Vec<Record> = records
        .into_iter()
        .filter(|record| {
            record.model == "softmax" && record.draw.is_none() && record.covariates == "gaussian"
        })
        .collect();
    for record in softmax.iter().filter(|record| record.quantity == "final-risk") {
        let name = format!("d = {}, {}", record.dimension, length_name(record.length));
        let mut here = softmax
            .iter()
            .filter(|other| (other.dimension, other.length) == (record.dimension, record.length));
        if !regression::is_followed(&record.ending) {
            return Ok(regression::undecided(&format!("{name}: {}", record.ending)));
        }
        if !here.any(|other| other.quantity == "largest-distance-to-infinite") {
            return Ok(regression::undecided(&format!("{name}: the infinite flow was not followed to T")));
        }
    }
    if let Some(record) = softmax
        .iter()
        .find(|record| record.quantity == "distance-to-infinite" && record.number.error.is_none())
    {
        let name = format!("d = {}, {}", record.dimension, length_name(record.length));
        return Ok(regression::undecided(&format!("{name}: the error of a distance is not known")));
    }
    let dimensions = regression::dimensions(&softmax);
    let mut problems = Vec::new();
    let (mut distances, mut bounds) = (Vec::new(), Vec::new());
    for dimension in dimensions {
        let largest = |over_time: bool| -> Result<Option<Fall>, Failure> {
            let mut points: Vec<RatePoint> = Vec::new();
            for length in regression::lengths(&softmax, dimension) {
                let here = softmax.iter().filter(|record| {
                    record.dimension == dimension
                        && record.length == Some(length)
                        && record.quantity == "distance-to-infinite"
                        && record.time > 0.0
                });
                let scaled = here.map(|record| {
                    let scale = if over_time { record.time } else { 1.0 };
                    (record.number.value / scale, record.number.error() / scale)
                });
                if let Some((value, absolute_error)) = scaled.max_by(|a, b| a.0.total_cmp(&b.0)) {
                    points.push(RatePoint {
                        length: PromptLength::new(length as u64)?,
                        value,
                        absolute_error,
                    });
                }
            }
            if points.len() < 2 || points.iter().any(|point| point.value <= 0.0) {
                return Ok(None);
            }
            let slopes = local_slopes(&points, Dependence::Independent)?;
            Ok(Some(Fall { dimension, points, slopes }))
        };
        let (Some(distance), Some(bound)) = (largest(false)?, largest(true)?) else {
            return Ok(regression::undecided(
                "fewer than two lengths have a positive distance to the infinite flow",
            ));
        };
        for (name, fall) in [("the largest distance", &distance), ("g(L)", &bound)] {
            for pair in fall.points.windows(2) {
                let error = pair[0].absolute_error + pair[1].absolute_error;
                if pair[0].value - pair[1].value <= error {
                    problems.push(format!(
                        "d = {dimension}: {name} does not fall from {} to {}",
                        length_name(Some(pair[0].length.get() as i64)),
                        length_name(Some(pair[1].length.get() as i64))
                    ));
                }
            }
            if let Some(last) = fall.slopes.last()
                && last.slope < LEVELS_OFF
            {
                problems.push(format!("d = {dimension}: {name} levels off, local rate {:.3}", last.slope));
            }
        }
        distances.push(distance);
        bounds.push(bound);
    }
    if distances.is_empty() {
        return Ok(regression::undecided("there is no softmax flow at finite length"));
    }
    let found: Vec<String> = distances
        .iter()
        .map(|fall| {
            let (first, last) = (&fall.points[0], &fall.points[fall.points.len() - 1]);
            let slopes: Vec<String> = fall.slopes.iter().map(|slope| format!("{:.2}", slope.slope)).collect();
            format!(
                "d = {}: {} at {}, {} at {}, local rates {}",
                fall.dimension,
                figures(first.value),
                length_name(Some(first.length.get() as i64)),
                figures(last.value),
                length_name(Some(last.length.get() as i64)),
                slopes.join(", ")
            )
        })
        .collect();
    let errors = distances.iter().flat_map(|fall| fall.points.iter().map(|point| point.absolute_error));
    let reason = format!(
        "Largest distance over the interval, exact to {}. {}.",
        rounded_up(errors.fold(0.0, f64::max)),
        found.join("; ")
    );
    let mut evidence =
        vec![Block::Table(table(&distances, &bounds)), Block::Figure(against_length(&distances))];
    for fall in &distances {
        let dimension = fall.dimension;
        evidence.push(Block::Figure(Figure {
            id: format!("against-time-{dimension}"),
            title: format!("Distance to the infinite flow, $d = {dimension}$"),
            caption:
                "Exact. The band is the error of the integration; where it widens, at early times and long \
                      prompts, the distance is not resolved."
                    .to_string(),
            x: time_axis(),
            y: Axis { label: "|θ_L(t) − θ_∞(t)|".to_string(), scale: Scale::Logarithmic },
            series: lines(&curves(&softmax, "distance-to-infinite", |record| record.dimension == dimension)),
        }));
    }
    Ok(regression::weighed(CLAIM.name, problems, Vec::new(), reason, evidence))
}

fn table(distances: &[Fall], bounds: &[Fall]) -> DataTable {
    let mut rows = Vec::new();
    for (distance, bound) in distances.iter().zip(bounds) {
        for (index, (point, over_time)) in distance.points.iter().zip(&bound.points).enumerate() {
            let slope = index.checked_sub(1).and_then(|index| distance.slopes.get(index));
            rows.push(vec![
                Cell::Integer(distance.dimension),
                Cell::Integer(point.length.get() as i64),
                Cell::Number { value: point.value, error: Some(point.absolute_error) },
                Cell::Number { value: over_time.value, error: Some(over_time.absolute_error) },
                slope.map_or(Cell::Missing, |slope| Cell::Number {
                    value: slope.slope,
                    error: Some(slope.standard_error),
                }),
            ]);
        }
    }
    DataTable {
        id: "distances".to_string(),
        caption: "Largest distance between the flows over the interval, largest distance divided by time, and the local \
                  rate $\\kappa$ of the former since the length before. Exact."
            .to_string(),
        columns: ["$d$", "$L$", "distance", "distance/$t$", "$\\kappa$"].map(String::from).to_vec(),
        rows,
    }
}

/// Dots for each dimension; 1/L through the last, as far as the length before.
fn against_length(distances: &[Fall]) -> Figure {
    let (mut series, mut guides) = (Vec::new(), Vec::new());
    for (colour, fall) in distances.iter().enumerate() {
        let points: Vec<Point> = fall
            .points
            .iter()
            .map(|point| Point::with_error(point.length.as_f64(), point.value, point.absolute_error))
            .collect();
        let guide = points[points.len().saturating_sub(2)..].to_vec();
        series.push(Series { name: format!("d = {}", fall.dimension), mark: Mark::Dots, colour, points });
        if let [before, last] = guide[..] {
            let start = Point::new(before.x, last.y * last.x / before.x);
            let points = vec![start, Point::new(last.x, last.y)];
            guides.push(Series { name: "slope −1".to_string(), mark: Mark::Dashed, colour: GREY, points });
        }
    }
    series.extend(guides);
    Figure {
        id: "against-length".to_string(),
        title: "Largest distance between the flows".to_string(),
        caption: "Exact; bars are the error of the integration, where it can be seen. Dashed: the slope of $1/L$, the rate of the bias at a fixed tilt, \
                  through the last dots."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "largest |θ_L(t) − θ_∞(t)|, t ≤ T".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
