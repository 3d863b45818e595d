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
                limit of the infinite prompt along the valley bΣA = I, on a time scale proportional to L, and ends at a \
                distance from it that does not vanish as L grows. The limits t → ∞ and L → ∞ of the parameters do not commute; \
                those of the risk do.",
    formula: r"\lim_{L \to \infty}\lim_{t \to \infty}\theta_L(t) = \theta(b^*) \ne \theta_\infty = \lim_{t \to \infty}\lim_{L \to \infty}\theta_L(t), \qquad \frac{db}{dt} \approx -\frac{R_1'(b)}{L\,|\theta'(b)|^2},\quad b^* = \arg\min_b R_1(b)",
    citation: "Found with this program; the paper's stability theorem (arXiv 2512.11784) and its theorem on risks are not contradicted.",
    measurement: "The exact flow at finite length until it stands still; the time at which its distance to the infinite limit has grown to \
                  half of what it ends with; the gain b where it ends, beside b*, where the exact coefficient R₁ of 1/L in \
                  the risk is smallest along the valley.",
    criterion: "The distance at the end halves or more from the shortest to the longest length, or that time grows between the two longest \
                lengths with an exponent outside 0.8 to 1.2, or the end's gain does not approach b*, or the excess risk at \
                the end does not fall with L. If a flow does not stand still nothing is decided.",
    quick: include_str!("../../../../experiments/finite-prompt-drift/quick.toml"),
    full: include_str!("../../../../experiments/finite-prompt-drift/full.toml"),
    judge,
};

/// What one flow shows.
struct Drift {
    length: i64,
    distance: Measured,
    half_time: f64,
    half_time_error: f64,
    gain: Measured,
    best_gain: f64,
    excess: Measured,
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let records: Vec<Record> = trajectories(result)?
        .into_iter()
        .filter(|record| {
            record.model == "softmax" && record.draw.is_none() && record.covariates == "gaussian"
        })
        .collect();
    let mut problems = Vec::new();
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
        let [first, .., before, last] = drifts.as_slice() else {
            return Ok(regression::undecided("a time scale needs three lengths at least"));
        };
        let exponent =
            (last.half_time / before.half_time).ln() / (last.length as f64 / before.length as f64).ln();
        // The time of the row before or after may be the right one.
        let ratio = last.length as f64 / before.length as f64;
        let error =
            (last.half_time_error / last.half_time + before.half_time_error / before.half_time) / ratio.ln();
        if last.distance.value <= 0.5 * first.distance.value {
            problems.push(format!("d = {dimension}: the distance at the end shrinks with L"));
        }
        if !(0.8..=1.2).contains(&exponent) {
            problems.push(format!("d = {dimension}: the time grows like $L^{{{exponent:.2}}}$"));
        }
        let gap = |drift: &Drift| (drift.gain.value - drift.best_gain).abs();
        if gap(last) >= gap(first) + last.gain.error() {
            problems.push(format!("d = {dimension}: the gain at the end does not approach b*"));
        }
        if drifts.windows(2).any(|pair| pair[1].excess.value + pair[1].excess.error() >= pair[0].excess.value)
        {
            problems.push(format!("d = {dimension}: the excess risk at the end does not fall with L"));
        }
        sentences.push(format!(
            "d = {dimension}: at {} the flow ends {} from the infinite limit (to {}; at {}: {}), at b = {} where b* = {}. The time \
             of the drift is {} and grows like $L^{{{exponent:.2}}}$ (exponent to {}) at the longest lengths. The excess \
             risk at the end falls from {} to {}",
            length_name(Some(last.length)),
            figures(last.distance.value),
            rounded_up(last.distance.error()),
            length_name(Some(first.length)),
            figures(first.distance.value),
            figures(last.gain.value),
            figures(last.best_gain),
            figures(last.half_time),
            rounded_up(error),
            figures(first.excess.value),
            figures(last.excess.value)
        ));
        evidence.push(Block::Table(table(dimension, &drifts)));
        evidence.push(Block::Figure(distances(dimension, &records)));
        evidence.push(Block::Figure(gains(dimension, &records)));
    }
    if sentences.is_empty() {
        return Ok(regression::undecided("there is no softmax flow at finite length"));
    }
    let reason = format!(
        "Exact. {}. So parameters stay close on bounded times and risks at all times, but parameters do not stay close uniformly in \
         time.",
        sentences.join(". ")
    );
    Ok(regression::judged(CLAIM.name, problems, reason, evidence))
}

fn drift(length: i64, here: &[&Record]) -> Result<Drift, String> {
    let name = length_name(Some(length));
    let last = |quantity: &str| {
        let found = here.iter().rev().find(|record| record.quantity == quantity);
        found.copied().ok_or_else(|| format!("{name}: there is no {quantity}"))
    };
    let end = last("distance-to-infinite-limit")?;
    if !end.ending.starts_with("stationary") {
        return Err(format!("{name}: {}", end.ending));
    }
    let (risk, floor) = (last("final-risk")?.number, last("noise-floor")?.number);
    // From the last time that the flow was near the limit on: at the start it is far from it too.
    let path: Vec<(f64, f64)> = here
        .iter()
        .filter(|record| record.quantity == "distance-to-infinite-limit")
        .map(|record| (record.time, record.number.value))
        .collect();
    let half = 0.5 * end.number.value;
    let crossing = path.windows(2).rev().find(|pair| pair[0].1 < half && pair[1].1 >= half);
    let Some([(early, near), (late, far)]) = crossing.map(|pair| [pair[0], pair[1]]) else {
        return Err(format!("{name}: the flow never was nearer than half of where it ends"));
    };
    let fraction = (half - near) / (far - near);
    let half_time = early.max(f64::MIN_POSITIVE).powf(1.0 - fraction) * late.powf(fraction);
    Ok(Drift {
        length,
        distance: end.number,
        half_time,
        // Linear interpolation between two rows errs by less than an eighth of their distance.
        half_time_error: 0.125 * (late - early),
        gain: last("gain")?.number,
        best_gain: last("first-order-gain")?.number.value,
        excess: Measured::exact(risk.value - floor.value, risk.error() + floor.error()),
    })
}

fn table(dimension: i64, drifts: &[Drift]) -> DataTable {
    let best = drifts.last().map_or(f64::NAN, |drift| drift.best_gain);
    DataTable {
        id: format!("drift-{dimension}"),
        caption: format!(
            "Where softmax training ends at finite length, $d = {dimension}$: distance to the infinite limit, time until \
             half of it is reached, gain $b$ ($b^*$ is {}) and excess risk. Exact.",
            figures(best)
        ),
        columns: ["$L$", "distance", "half time $t$", "$t/L$", "$b$", "excess risk"]
            .map(String::from)
            .to_vec(),
        rows: drifts
            .iter()
            .map(|drift| {
                let length = drift.length as f64;
                vec![
                    Cell::Integer(drift.length),
                    drift.distance.cell(),
                    Cell::Number { value: drift.half_time, error: Some(drift.half_time_error) },
                    Cell::Number {
                        value: drift.half_time / length,
                        error: Some(drift.half_time_error / length),
                    },
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
