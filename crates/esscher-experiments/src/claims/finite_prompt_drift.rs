//! Our own finding: at finite length the flow leaves the limit of the infinite prompt, in a time proportional to L.

use super::{Claim, Judgement, regression};
use crate::kinds::{Record, curves, lines, time_axis, trajectories};
use crate::measured::{GREY, Measured, figures, length_name, rounded_up};
use esscher_lab::{Failure, Table};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

pub(super) const CLAIM: Claim = Claim {
    name: "finite-prompt-drift",
    title: "What does not transfer: finite prompts drift away from the infinite limit",
    statement: "Beyond the paper, whose theorem on parameters is one on bounded times: at every finite length softmax training leaves the \
                limit of the infinite prompt along the valley bΣA = I, on a time scale that becomes proportional to L as L \
                grows, and ends at a distance from it that does not vanish: that of the point b* of the valley. The limits \
                t → ∞ and L → ∞ of the parameters do not commute; those of the risk do.",
    formula: r"\lim_{L \to \infty}\lim_{t \to \infty}\theta_L(t) = \theta(b^*) \ne \theta_\infty = \lim_{t \to \infty}\lim_{L \to \infty}\theta_L(t), \qquad \frac{db}{dt} \approx -\frac{R_1'(b)}{L\,|\theta'(b)|^2},\quad b^* = \arg\min_b R_1(b)",
    citation: "Found with this program; the paper's stability theorem (arXiv 2512.11784) and its theorem on risks are not contradicted.",
    measurement: "The exact flow at finite length until it stands still; the half time, at which its distance to the infinite limit has grown to \
                  half of what it ends with, beside the half time of the first-order drift along the valley, which is \
                  proportional to L; the gain b and the distance where it ends, beside those of b*, where the exact coefficient \
                  R₁ of 1/L in the risk is smallest along the valley.",
    criterion: "From one length to the next, errors included, the ratio of the half time to that of the first-order drift does not come nearer to 1, or the \
                exponent of the half time in L does not, or the distance at the end does not come nearer to \
                that of b* (farther than 0.1 % of it), or the gain to b*, or the excess risk does not fall. If the ratio or the exponent comes nearer but \
                ends more than 0.2 from 1, the lengths are too short to decide, as they are if a flow does not stand still or \
                fewer than three lengths were run; errors that leave a comparison open decide nothing either.",
    quick: include_str!("../../../../experiments/finite-prompt-drift/quick.toml"),
    full: include_str!("../../../../experiments/finite-prompt-drift/full.toml"),
    judge,
};

/// Nearer to 1 than this, a ratio or an exponent is called that of the limit.
const NEAR: f64 = 0.2;

/// The distance of b* is reached to this part of itself.
const ARRIVED: f64 = 1e-3;

/// What one flow shows.
struct Drift {
    length: i64,
    distance: Measured,
    limit_distance: f64,
    half_time: Measured,
    predicted_half_time: Measured,
    gain: Measured,
    best_gain: f64,
    excess: Measured,
}

impl Drift {
    /// The half time over that of first order.
    fn ratio(&self) -> Measured {
        let (time, predicted) = (self.half_time, self.predicted_half_time);
        let ratio = time.value / predicted.value;
        let error = ratio * (time.error() / time.value + predicted.error() / predicted.value);
        Measured::exact(ratio, error)
    }

    /// The exponent of the half time in L since a shorter prompt.
    fn exponent(&self, before: &Drift) -> Measured {
        let lengths = (self.length as f64 / before.length as f64).ln();
        let (time, earlier) = (self.half_time, before.half_time);
        let error = (time.error() / time.value + earlier.error() / earlier.value) / lengths;
        Measured::exact((time.value / earlier.value).ln() / lengths, error)
    }
}

/// How a sequence that should approach a limit fares.
fn approach(
    name: &str,
    numbers: &[Measured],
    limit: f64,
    reached: f64,
    problems: &mut Vec<String>,
    open: &mut Vec<String>,
) {
    for pair in numbers.windows(2) {
        let [first, then] = [pair[0], pair[1]];
        let fall = (first.value - limit).abs() - (then.value - limit).abs();
        let error = first.error() + then.error();
        if fall > error || (then.value - limit).abs() + then.error() <= reached {
            continue;
        }
        let told = format!(
            "{name} goes from {} to {} where the limit is {}",
            figures(first.value),
            figures(then.value),
            figures(limit)
        );
        if fall < -error {
            problems.push(told)
        } else {
            open.push(format!("{told}, which the errors leave open"))
        }
    }
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records: Vec<Record> = trajectories(result)?
        .into_iter()
        .filter(|record| {
            record.model == "softmax" && record.draw.is_none() && record.covariates == "gaussian"
        })
        .collect();
    let (mut problems, mut open) = (Vec::new(), Vec::new());
    let mut sentences = Vec::new();
    let mut evidence = Vec::new();
    for dimension in regression::dimensions(&records) {
        let mut drifts = Vec::new();
        for length in regression::lengths(&records, dimension) {
            let here: Vec<&Record> = records
                .iter()
                .filter(|record| record.dimension == dimension && record.length == Some(length))
                .collect();
            match drift(length, &here) {
                Ok(drift) => drifts.push(drift),
                Err(why) => return Ok(regression::undecided(&format!("d = {dimension}, {why}"))),
            }
        }
        let [first, .., last] = drifts.as_slice() else {
            return Ok(regression::undecided("a time scale needs three lengths at least"));
        };
        let ratios: Vec<Measured> = drifts.iter().map(Drift::ratio).collect();
        let exponents: Vec<Measured> = drifts.windows(2).map(|pair| pair[1].exponent(&pair[0])).collect();
        let (Some(ratio), [_, .., exponent]) = (ratios.last().copied(), exponents.as_slice()) else {
            return Ok(regression::undecided("a time scale needs three lengths at least"));
        };
        let distances: Vec<Measured> = drifts.iter().map(|drift| drift.distance).collect();
        let gains: Vec<Measured> = drifts.iter().map(|drift| drift.gain).collect();
        let sequences: [(&str, &[Measured], f64, f64); 4] = [
            ("the half time over that of first order", &ratios, 1.0, 0.0),
            ("the exponent of the half time", &exponents, 1.0, 0.0),
            ("the distance at the end", &distances, last.limit_distance, ARRIVED * last.limit_distance),
            ("the gain at the end", &gains, last.best_gain, ARRIVED * last.best_gain),
        ];
        for (name, numbers, limit, reached) in sequences {
            let name = format!("d = {dimension}: {name}");
            approach(&name, numbers, limit, reached, &mut problems, &mut open);
        }
        for (name, number) in [("the half time over that of first order", ratio), ("the exponent", *exponent)]
        {
            if (number.value - 1.0).abs() > NEAR {
                let number = figures(number.value);
                open.push(format!("d = {dimension}: the lengths are too short, {name} is still {number}"));
            }
        }
        for pair in drifts.windows(2) {
            if pair[1].excess.value + pair[1].excess.error() >= pair[0].excess.value {
                problems.push(format!("d = {dimension}: the excess risk at the end does not fall with L"));
            }
        }
        let listed = |numbers: &[Measured]| -> String {
            numbers.iter().map(|number| format!("{:.3}", number.value)).collect::<Vec<_>>().join(", ")
        };
        let largest =
            |numbers: &[Measured]| rounded_up(numbers.iter().map(Measured::error).fold(0.0, f64::max));
        sentences.push(format!(
            "d = {dimension}: at {} the flow ends {} from the infinite limit (to {}; at {}: {}), where b* is {} from it, at b = {} where b* = {}. \
             From length to length the half time is {} times that of the first-order drift (to {}) and grows with exponents {} (to {}). The \
             excess risk at the end falls from {} to {}",
            length_name(Some(last.length)),
            figures(last.distance.value),
            rounded_up(last.distance.error()),
            length_name(Some(first.length)),
            figures(first.distance.value),
            figures(last.limit_distance),
            figures(last.gain.value),
            figures(last.best_gain),
            listed(&ratios),
            largest(&ratios),
            listed(&exponents),
            largest(&exponents),
            figures(first.excess.value),
            figures(last.excess.value)
        ));
        evidence.push(Block::Table(table(dimension, &drifts)));
        evidence.push(Block::Figure(self::distances(dimension, &records)));
        evidence.push(Block::Figure(self::gains(dimension, &records)));
    }
    if sentences.is_empty() {
        return Ok(regression::undecided("there is no softmax flow at finite length"));
    }
    let reason = format!("Exact. {}.", sentences.join(". "));
    Ok(regression::weighed(CLAIM.name, problems, open, reason, evidence))
}

fn drift(length: i64, here: &[&Record]) -> Result<Drift, String> {
    let name = length_name(Some(length));
    let last = |quantity: &str| {
        let found = here.iter().rev().find(|record| record.quantity == quantity);
        let found = found.copied().ok_or_else(|| format!("{name}: there is no {quantity}"))?;
        if found.number.error.is_none() {
            return Err(format!("{name}: the error of {quantity} is not known"));
        }
        Ok(found)
    };
    let end = last("distance-to-infinite-limit")?;
    if !end.ending.starts_with("stationary") {
        return Err(format!("{name}: {}", end.ending));
    }
    let (risk, floor) = (last("final-risk")?.number, last("noise-floor")?.number);
    let path = |quantity: &str| -> Vec<(f64, f64)> {
        here.iter()
            .filter(|record| record.quantity == quantity && record.time > 0.0)
            .map(|record| (record.time, record.number.value))
            .collect()
    };
    let limit_distance = last("first-order-distance")?.number.value;
    let half_time = half_time(&path("distance-to-infinite-limit"), 0.5 * end.number.value)
        .ok_or_else(|| format!("{name}: the flow never was nearer than half of where it ends"))?;
    let predicted_half_time = self::half_time(&path("predicted-distance"), 0.5 * limit_distance)
        .ok_or_else(|| format!("{name}: the first-order drift has no half time among the times asked for"))?;
    Ok(Drift {
        length,
        distance: end.number,
        limit_distance,
        half_time,
        predicted_half_time,
        gain: last("gain")?.number,
        best_gain: last("first-order-gain")?.number.value,
        excess: Measured::exact(risk.value - floor.value, risk.error() + floor.error()),
    })
}

/// When a distance last grows beyond this one: at the start the flow is far from the limit too. Interpolated linearly in
/// ln t; the error is the largest change when every second row is left out, which is about four times the error of the
/// full path.
fn half_time(path: &[(f64, f64)], half: f64) -> Option<Measured> {
    let crossing = |path: &[(f64, f64)]| -> Option<f64> {
        let pair = path.windows(2).rev().find(|pair| pair[0].1 < half && pair[1].1 >= half)?;
        let [(early, near), (late, far)] = [pair[0], pair[1]];
        let fraction = (half - near) / (far - near);
        Some(early.powf(1.0 - fraction) * late.powf(fraction))
    };
    let time = crossing(path)?;
    let mut error: f64 = 0.0;
    for offset in 0..2 {
        let coarse: Vec<(f64, f64)> = path.iter().skip(offset).step_by(2).copied().collect();
        error = error.max((crossing(&coarse)? - time).abs());
    }
    Some(Measured::exact(time, error))
}

fn table(dimension: i64, drifts: &[Drift]) -> DataTable {
    let best = drifts.last().map_or(f64::NAN, |drift| drift.best_gain);
    DataTable {
        id: format!("drift-{dimension}"),
        caption: format!(
            "Where softmax training ends at finite length, $d = {dimension}$: distance to the infinite limit (that of $b^*$ is {}), time $t$ \
             until half of it is reached, this over that of the first-order drift, gain $b$ ($b^*$ is {}) and excess \
             risk. Exact; times are interpolated between rows.",
            figures(drifts.last().map_or(f64::NAN, |drift| drift.limit_distance)),
            figures(best)
        ),
        columns: ["$L$", "distance", "half time $t$", "$t/L$", "over first order", "$b$", "excess risk"]
            .map(String::from)
            .to_vec(),
        rows: drifts
            .iter()
            .map(|drift| {
                vec![
                    Cell::Integer(drift.length),
                    drift.distance.cell(),
                    drift.half_time.cell(),
                    drift.half_time.times(1.0 / drift.length as f64).cell(),
                    drift.ratio().cell(),
                    drift.gain.cell(),
                    drift.excess.cell(),
                ]
            })
            .collect(),
    }
}

fn distances(dimension: i64, records: &[Record]) -> Figure {
    Figure {
        id: format!("distance-{dimension}"),
        title: format!("Distance to the limit of the infinite prompt, $d = {dimension}$"),
        caption: "First the flow comes near, the nearer the longer the prompt; then it leaves. Exact."
            .to_string(),
        x: time_axis(),
        y: Axis { label: "|θ_L(t) − θ_∞(∞)|".to_string(), scale: Scale::Logarithmic },
        series: lines(&curves(records, "distance-to-infinite-limit", |record| record.dimension == dimension)),
    }
}

/// b over t/L, where lengths fall on one another, and the first-order drift, which is one curve there.
fn gains(dimension: i64, records: &[Record]) -> Figure {
    let scaled = |quantity: &str| -> Vec<(String, Vec<Point>)> {
        let point =
            |record: &&Record| Some(Point::new(record.time / record.length? as f64, record.number.value));
        curves(records, quantity, |record| record.dimension == dimension)
            .into_iter()
            .map(|(name, curve)| (name, curve.iter().filter_map(point).collect()))
            .collect()
    };
    let mut series: Vec<Series> = scaled("gain")
        .into_iter()
        .enumerate()
        .map(|(colour, (name, points))| Series { name, mark: Mark::Line, colour, points })
        .collect();
    let mut points: Vec<Point> =
        scaled("predicted-gain").into_iter().flat_map(|(_, points)| points).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    series.push(Series { name: "first order".to_string(), mark: Mark::Dashed, colour: GREY, points });
    Figure {
        id: format!("gain-{dimension}"),
        title: format!("The gain b in units of the length, $d = {dimension}$"),
        caption:
            "Lines: exact flows. Dashed: the first-order drift from the infinite limit, the same for all lengths, which \
                  they approach as $L$ grows."
                .to_string(),
        x: Axis { label: "training time over length, t/L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "gain b".to_string(), scale: Scale::Linear },
        series,
    }
}
