//! Claim: training flows at finite length approach that of the infinite prompt on bounded times (Gaussian covariates).

use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_core::concentration::{Dependence, LocalSlope, RatePoint, local_slopes};
use esscher_core::prompt::PromptLength;
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{GREY, figures, length_name, rounded_up};
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row, dimensions, lengths};
use esscher_questions::training::describe::{curves, lines, time_axis};
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
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(|row| row.is_exact() && row.model == Model::Softmax);
    if let Some(why) = why_undecided(&rows) {
        return Ok(Judging::undecided(&why));
    }
    let mut judging = Judging::default();
    let (mut distances, mut bounds) = (Vec::new(), Vec::new());
    for dimension in dimensions(&rows) {
        let falls = (Fall::of(&rows, dimension, false)?, Fall::of(&rows, dimension, true)?);
        let (Some(distance), Some(bound)) = falls else {
            return Ok(Judging::undecided(
                "fewer than two lengths have a positive distance to the infinite flow",
            ));
        };
        distance.weigh("the largest distance", &mut judging);
        bound.weigh("g(L)", &mut judging);
        distances.push(distance);
        bounds.push(bound);
    }
    let errors = distances.iter().flat_map(|fall| fall.points.iter().map(|point| point.absolute_error));
    let reason = format!(
        "Largest distance over the interval, exact to {}. {}.",
        rounded_up(errors.fold(0.0, f64::max)),
        distances.iter().map(Fall::told).collect::<Vec<_>>().join("; ")
    );
    let mut evidence =
        vec![Block::Table(table(&distances, &bounds)), Block::Figure(against_length(&distances))];
    evidence.extend(distances.iter().map(|fall| Block::Figure(against_time(&rows, fall.dimension))));
    Ok(judging.judgement(CLAIM.name, reason, evidence))
}

/// Why these flows cannot decide, if they cannot.
fn why_undecided(rows: &[Row]) -> Option<String> {
    let of = |quantity| rows.iter().filter(move |row| row.quantity == quantity);
    let name = |row: &Row| format!("d = {}, {}", row.dimension, length_name(row.length));
    for row in of(Quantity::FinalRisk) {
        if !row.is_followed() {
            return Some(format!("{}: {}", name(row), row.ended()));
        }
        let mut largest = of(Quantity::LargestDistanceToInfinite);
        if !largest.any(|other| (other.dimension, other.length) == (row.dimension, row.length)) {
            return Some(format!("{}: the infinite flow was not followed to T", name(row)));
        }
    }
    if let Some(row) = of(Quantity::DistanceToInfinite).find(|row| row.number.error.is_none()) {
        return Some(format!("{}: the error of a distance is not known", name(row)));
    }
    rows.is_empty().then(|| "there is no softmax flow at finite length".to_string())
}

impl Fall {
    /// The largest distances to the infinite flow, or distances over time, by length; none if they say nothing.
    fn of(rows: &[Row], dimension: i64, over_time: bool) -> Result<Option<Self>, Failure> {
        let mut points: Vec<RatePoint> = Vec::new();
        for length in lengths(rows, dimension) {
            let here = rows.iter().filter(|row| {
                (row.dimension, row.length) == (dimension, Some(length))
                    && row.quantity == Quantity::DistanceToInfinite
                    && row.time > 0.0
            });
            let scaled = here.map(|row| {
                let scale = if over_time { row.time } else { 1.0 };
                (row.number.value / scale, row.number.error() / scale)
            });
            if let Some((value, absolute_error)) = scaled.max_by(|a, b| a.0.total_cmp(&b.0)) {
                points.push(RatePoint { length: PromptLength::new(length as u64)?, value, absolute_error });
            }
        }
        if points.len() < 2 || points.iter().any(|point| point.value <= 0.0) {
            return Ok(None);
        }
        let slopes = local_slopes(&points, Dependence::Independent)?;
        Ok(Some(Fall { dimension, points, slopes }))
    }

    fn weigh(&self, name: &str, judging: &mut Judging) {
        let dimension = self.dimension;
        for pair in self.points.windows(2) {
            let error = pair[0].absolute_error + pair[1].absolute_error;
            judging.require(pair[0].value - pair[1].value > error, || {
                let (from, to) = (length_of(&pair[0]), length_of(&pair[1]));
                format!("d = {dimension}: {name} does not fall from {from} to {to}")
            });
        }
        if let Some(last) = self.slopes.last() {
            judging.require(last.slope >= LEVELS_OFF, || {
                format!("d = {dimension}: {name} levels off, local rate {:.3}", last.slope)
            });
        }
    }

    fn told(&self) -> String {
        let (first, last) = (&self.points[0], &self.points[self.points.len() - 1]);
        let slopes: Vec<String> = self.slopes.iter().map(|slope| format!("{:.2}", slope.slope)).collect();
        format!(
            "d = {}: {} at {}, {} at {}, local rates {}",
            self.dimension,
            figures(first.value),
            length_of(first),
            figures(last.value),
            length_of(last),
            slopes.join(", ")
        )
    }
}

fn length_of(point: &RatePoint) -> String {
    length_name(Some(point.length.get() as i64))
}

fn against_time(rows: &[Row], dimension: i64) -> Figure {
    Figure {
        id: format!("against-time-{dimension}"),
        title: format!("Distance to the infinite flow, $d = {dimension}$"),
        caption: "Exact. The band is the error of the integration; where it widens, at early times and long prompts, the \
                  distance is not resolved."
            .to_string(),
        x: time_axis(),
        y: Axis { label: "|θ_L(t) − θ_∞(t)|".to_string(), scale: Scale::Logarithmic },
        series: lines(&curves(rows, Quantity::DistanceToInfinite, |row| row.dimension == dimension)),
    }
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
