//! Our own finding: at finite length the flow leaves the limit of the infinite prompt, in a time proportional to L.

use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_core::Ending;
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{GREY, Measured, figures, length_name, rounded_up};
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row, dimensions, lengths};
use esscher_questions::training::describe::{curves, lines, time_axis};
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

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(|row| row.is_exact() && row.model == Model::Softmax);
    let mut judging = Judging::default();
    let (mut sentences, mut evidence) = (Vec::new(), Vec::new());
    for dimension in dimensions(&rows) {
        let mut drifts = Vec::new();
        for length in lengths(&rows, dimension) {
            match drift(&rows, dimension, length) {
                Ok(drift) => drifts.push(drift),
                Err(why) => return Ok(Judging::undecided(&format!("d = {dimension}, {why}"))),
            }
        }
        if drifts.len() < 3 {
            return Ok(Judging::undecided("a time scale needs three lengths at least"));
        }
        sentences.push(weigh(dimension, &drifts, &mut judging));
        evidence.push(Block::Table(table(dimension, &drifts)));
        evidence.push(Block::Figure(distances(dimension, &rows)));
        evidence.push(Block::Figure(gains(dimension, &rows)));
    }
    if sentences.is_empty() {
        return Ok(Judging::undecided("there is no softmax flow at finite length"));
    }
    let reason = format!("Exact. {}.", sentences.join(". "));
    Ok(judging.judgement(CLAIM.name, reason, evidence))
}

/// Judges the flows of a dimension, three at least, by length; what was found, in a sentence.
fn weigh(dimension: i64, drifts: &[Drift], judging: &mut Judging) -> String {
    let (first, last) = (&drifts[0], &drifts[drifts.len() - 1]);
    let all = |number: fn(&Drift) -> Measured| -> Vec<Measured> { drifts.iter().map(number).collect() };
    let ratios = all(Drift::ratio);
    let exponents: Vec<Measured> = drifts.windows(2).map(|pair| pair[1].exponent(&pair[0])).collect();
    let sequences: [(&str, &[Measured], f64, f64); 4] = [
        ("the half time over that of first order", &ratios, 1.0, 0.0),
        ("the exponent of the half time", &exponents, 1.0, 0.0),
        (
            "the distance at the end",
            &all(|drift| drift.distance),
            last.limit_distance,
            ARRIVED * last.limit_distance,
        ),
        ("the gain at the end", &all(|drift| drift.gain), last.best_gain, ARRIVED * last.best_gain),
    ];
    for (name, numbers, limit, reached) in sequences {
        approach(&format!("d = {dimension}: {name}"), numbers, limit, reached, judging);
    }
    let ends = [("the half time over that of first order", &ratios), ("the exponent", &exponents)];
    for (name, numbers) in ends {
        let number = numbers[numbers.len() - 1].value;
        if (number - 1.0).abs() > NEAR {
            let number = figures(number);
            judging
                .leave_open(format!("d = {dimension}: the lengths are too short, {name} is still {number}"));
        }
    }
    for pair in drifts.windows(2) {
        let falls = pair[1].excess.value + pair[1].excess.error() < pair[0].excess.value;
        judging
            .require(falls, || format!("d = {dimension}: the excess risk at the end does not fall with L"));
    }
    let listed = |numbers: &[Measured]| -> String {
        numbers.iter().map(|number| format!("{:.3}", number.value)).collect::<Vec<_>>().join(", ")
    };
    let largest = |numbers: &[Measured]| rounded_up(numbers.iter().map(Measured::error).fold(0.0, f64::max));
    format!(
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
    )
}

/// How a sequence that should approach a limit fares.
fn approach(name: &str, numbers: &[Measured], limit: f64, reached: f64, judging: &mut Judging) {
    for pair in numbers.windows(2) {
        let [first, then] = [pair[0], pair[1]];
        let fall = (first.value - limit).abs() - (then.value - limit).abs();
        let error = first.error() + then.error();
        if fall > error || (then.value - limit).abs() + then.error() <= reached {
            continue;
        }
        let [first, then, limit] = [first.value, then.value, limit].map(figures);
        let told = format!("{name} goes from {first} to {then} where the limit is {limit}");
        if fall < -error {
            judging.refute(told)
        } else {
            judging.leave_open(format!("{told}, which the errors leave open"))
        }
    }
}

/// What the flow at a length shows, or why it shows nothing.
fn drift(rows: &[Row], dimension: i64, length: i64) -> Result<Drift, String> {
    let name = length_name(Some(length));
    let here: Vec<&Row> =
        rows.iter().filter(|row| (row.dimension, row.length) == (dimension, Some(length))).collect();
    let last = |quantity: Quantity| {
        let found = here.iter().rev().find(|row| row.quantity == quantity);
        let found = found.copied().ok_or_else(|| format!("{name}: there is no {quantity}"))?;
        if found.number.error.is_none() {
            return Err(format!("{name}: the error of {quantity} is not known"));
        }
        Ok(found)
    };
    let end = last(Quantity::DistanceToInfiniteLimit)?;
    if end.ending != Some(Ending::Stationary) {
        return Err(format!("{name}: {}", end.ended()));
    }
    let (risk, floor) = (last(Quantity::FinalRisk)?.number, last(Quantity::NoiseFloor)?.number);
    let path = |quantity: Quantity| -> Vec<(f64, f64)> {
        let moving = here.iter().filter(|row| row.quantity == quantity && row.time > 0.0);
        moving.map(|row| (row.time, row.number.value)).collect()
    };
    let limit_distance = last(Quantity::FirstOrderDistance)?.number.value;
    let half = 0.5 * end.number.value;
    let half_time = half_time(&path(Quantity::DistanceToInfiniteLimit), half)
        .ok_or_else(|| format!("{name}: the flow never was nearer than half of where it ends"))?;
    let predicted_half_time = self::half_time(&path(Quantity::PredictedDistance), 0.5 * limit_distance)
        .ok_or_else(|| format!("{name}: the first-order drift has no half time among the times asked for"))?;
    Ok(Drift {
        length,
        distance: end.number,
        limit_distance,
        half_time,
        predicted_half_time,
        gain: last(Quantity::Gain)?.number,
        best_gain: last(Quantity::FirstOrderGain)?.number.value,
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

fn distances(dimension: i64, rows: &[Row]) -> Figure {
    Figure {
        id: format!("distance-{dimension}"),
        title: format!("Distance to the limit of the infinite prompt, $d = {dimension}$"),
        caption: "First the flow comes near, the nearer the longer the prompt; then it leaves. Exact."
            .to_string(),
        x: time_axis(),
        y: Axis { label: "|θ_L(t) − θ_∞(∞)|".to_string(), scale: Scale::Logarithmic },
        series: lines(&curves(rows, Quantity::DistanceToInfiniteLimit, |row| row.dimension == dimension)),
    }
}

/// b over t/L, where lengths fall on one another, and the first-order drift, which is one curve there.
fn gains(dimension: i64, rows: &[Row]) -> Figure {
    let scaled = |quantity: Quantity| -> Vec<(String, Vec<Point>)> {
        let point = |row: &&Row| Some(Point::new(row.time / row.length? as f64, row.number.value));
        curves(rows, quantity, |row| row.dimension == dimension)
            .into_iter()
            .map(|(name, curve)| (name, curve.iter().filter_map(point).collect()))
            .collect()
    };
    let mut series: Vec<Series> = scaled(Quantity::Gain)
        .into_iter()
        .enumerate()
        .map(|(colour, (name, points))| Series { name, mark: Mark::Line, colour, points })
        .collect();
    let mut points: Vec<Point> =
        scaled(Quantity::PredictedGain).into_iter().flat_map(|(_, points)| points).collect();
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
