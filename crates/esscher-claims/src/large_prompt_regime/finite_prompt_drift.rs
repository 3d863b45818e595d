//! Our own finding: at finite length the flow leaves the limit of the infinite prompt, in a time proportional to L.

use super::evidence::{largest, listed, table, two_figures};
use super::flows::{Flow, flows, panels_over_time};
use crate::judging::{Found, Judging, undecided};
use esscher_core::Ending;
use esscher_lab::{Failure, Table};
use esscher_questions::measured::{GREY, Measured, figures, length_name, rounded_up};
use esscher_questions::training::Model;
use esscher_questions::training::answer::{Quantity, Row};
use esscher_questions::training::describe::curves;
use esscher_report::{Axis, Block, Cell, Figure, Mark, Point, Series};

claim! {
    name: "finite-prompt-drift",
    title: "Finite prompts drift away from the infinite limit (our own finding)",
    statement: "The paper's theorem on parameters is about bounded times; this goes beyond it. All parameters with bΣA = I have the same risk on the infinite \
                prompt: they are a valley of it. At finite length softmax training leaves the end of the infinite prompt along this \
                valley, on a time scale that becomes proportional to L as L grows, and stops near b*, the point where the coefficient R₁ \
                of 1/L in the risk is smallest: its distance from that end does not vanish as L grows. The limits t → ∞ and L → ∞ of the parameters do not commute; those of the risk do.",
    formula: r"\lim_{L \to \infty}\lim_{t \to \infty}\theta_L(t) = \theta(b^*) \ne \theta_\infty(\infty) = \lim_{t \to \infty}\lim_{L \to \infty}\theta_L(t), \qquad \frac{db}{dt} \approx -\frac{R_1'(b)}{L\,|\theta'(b)|^2},\quad b^* = \arg\min_b R_1(b)",
    citation: "Found with this program. It does not contradict [Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784): their theorem on the \
               stability of training (Section 4) is about bounded times, and their theorem on risks (Section 5) holds along the way.",
    measurement: "The exact flow at finite length is followed until it stands still. At the half time its distance to the infinite limit \
                  has grown to half of what it ends with; beside it stands the half time of the first-order drift along the valley, \
                  which is proportional to L. Isotropic covariates, label noise 0.5. The factor b of the values and the distance at the end stand beside those of b*, where the exact \
                  coefficient R₁ of 1/L in the risk is smallest along the valley.",
    criterion: "From one length to the next, errors included, one of these does not come nearer: the half time over that of the \
                first-order drift to 1, the exponent of the half time in L to 1, the distance at the end to that of b* (unless it is \
                within 0.1 % of it), b to b*. Or the excess risk does not fall. If the ratio or the exponent comes nearer but \
                ends more than 0.2 from 1, the lengths are too short to decide. Nothing is decided either if a flow does not stand \
                still, if fewer than three lengths were run, or where errors leave a comparison open.",
    decided_by: "longer prompts over longer times, the full form of this claim (a few minutes)",
    judge: judge,
}

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
    /// The half time over that of first order.
    ratio: Measured,
    gain: Measured,
    best_gain: f64,
    excess: Measured,
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let mut rows: Vec<Row> = result.read()?;
    rows.retain(|row| row.is_exact() && row.model == Model::Softmax);
    let (mut sentences, mut tables, mut more, mut shown) = (Vec::new(), Vec::new(), Vec::new(), None);
    for here in flows(&rows).chunk_by(|a, b| a.dimension == b.dimension) {
        let dimension = here[0].dimension;
        let drifts = here.iter().map(Drift::of).collect::<Result<Vec<_>, Failure>>()?;
        if drifts.len() < 3 {
            return Err(undecided("a time scale needs three lengths at least"));
        }
        sentences.push(weigh(dimension, &drifts, judging));
        tables.push(judged(dimension, &drifts));
        more.push(Block::Figure(gains(dimension, &rows)));
        if shown.is_none()
            && let (Some(first), Some(last)) = (drifts.first(), drifts.last())
        {
            let numbers = [first.length, last.length].map(|length| length_name(Some(length)));
            let factor = [first, last].map(|drift| drift.half_time.value);
            let distances = [first, last].map(|drift| figures(drift.distance.value));
            shown = Some((dimension, numbers, factor, distances, figures(last.limit_distance), last.excess));
        }
    }
    let Some((dimension, [short, long], [early, late], [before, distance], limit, excess)) = shown else {
        return Err(undecided("there is no softmax flow at finite length"));
    };
    Ok(Found {
        lead: format!(
            "Training on a finite prompt first comes near to where training on the infinite prompt ends, and then leaves it: in {dimension} \
             dimensions it stops {before} away at {short} and {distance} away at {long}, where theory says {limit}. A longer prompt only takes \
             longer to leave: to get half as far away again takes {} times as long at {long} as at {short} (less than in proportion, but \
             nearer to it from length to length). The risk at {long} ends only {} above the noise floor.",
            two_figures(late / early),
            two_figures(excess.value)
        ),
        number: distance,
        meaning: format!("is how far from the infinite prompt’s end training stops at {long} (at {short}: {before}), with the same risk"),
        told: format!("Exact. {}.", sentences.join(". ")),
        main: Some(panels_over_time(
            &rows,
            Quantity::DistanceToInfiniteLimit,
            [
                "distance",
                "Distance to the limit of the infinite prompt during training",
                "|θ_L(t) − θ_∞(∞)|",
                "Exact. A line ends where its flow stands still.",
            ],
        )),
        headline: "Training comes near the infinite limit, then leaves it; longer prompts drift more slowly".to_string(),
        explained: vec![
            "This does not contradict the paper. Its theorem says that on a fixed interval of time a long prompt follows the infinite \
             one, and so it does, in the falling part of the curves. But along a valley of the loss the infinite prompt has no preference, and \
             a finite prompt has one of order $1/L$: given time proportional to $L$, it moves to the point of the valley that it prefers."
                .to_string(),
        ],
        tables,
        more,
    })
}

/// Judges the flows of a dimension, three at least, by length; what was found, in a sentence.
fn weigh(dimension: i64, drifts: &[Drift], judging: &mut Judging) -> String {
    let (first, last) = (&drifts[0], &drifts[drifts.len() - 1]);
    let all = |number: fn(&Drift) -> Measured| -> Vec<Measured> { drifts.iter().map(number).collect() };
    let ratios = all(|drift| drift.ratio);
    let exponents: Vec<Measured> = drifts.windows(2).map(|pair| exponent(&pair[0], &pair[1])).collect();
    for (name, numbers) in
        [("the half time over that of first order", &ratios), ("the exponent of the half time", &exponents)]
    {
        approach(&format!("d = {dimension}: {name}"), numbers, 1.0, 0.0, judging);
        let end = numbers[numbers.len() - 1].value;
        if (end - 1.0).abs() > NEAR {
            let end = figures(end);
            judging.leave_open(format!("d = {dimension}: the lengths are too short, {name} is still {end}"));
        }
    }
    for (name, numbers, limit) in [
        ("distance", all(|drift| drift.distance), last.limit_distance),
        ("gain", all(|drift| drift.gain), last.best_gain),
    ] {
        let name = format!("d = {dimension}: the {name} at the end");
        approach(&name, &numbers, limit, ARRIVED * limit, judging);
    }
    for pair in drifts.windows(2) {
        let falls = pair[1].excess.value + pair[1].excess.error() < pair[0].excess.value;
        judging
            .require(falls, || format!("d = {dimension}: the excess risk at the end does not fall with L"));
    }
    let told = |numbers: &[Measured]| {
        let values = listed(numbers.iter().map(|number| format!("{:.3}", number.value)), ", ");
        format!("{values} (to {})", rounded_up(largest(numbers.iter().map(Measured::error))))
    };
    format!(
        "d = {dimension}: at {} the flow ends {} from the infinite limit (to {}; at {}: {}), where b* is {} from it, at b = {} where b* = {}. \
         From length to length the half time, divided by that of the first-order drift, is {}, and it grows with exponents {}. The \
         excess risk at the end falls from {} to {}",
        length_name(Some(last.length)),
        figures(last.distance.value),
        rounded_up(last.distance.error()),
        length_name(Some(first.length)),
        figures(first.distance.value),
        figures(last.limit_distance),
        figures(last.gain.value),
        figures(last.best_gain),
        told(&ratios),
        told(&exponents),
        figures(first.excess.value),
        figures(last.excess.value)
    )
}

/// A sequence that should come nearer to a limit with each number, until it is reached.
fn approach(name: &str, numbers: &[Measured], limit: f64, reached: f64, judging: &mut Judging) {
    let away = |number: Measured| (number.value - limit).abs();
    for pair in numbers.windows(2) {
        let [first, then] = [pair[0], pair[1]];
        if away(then) + then.error() > reached {
            judging.positive(away(first) - away(then), first.error() + then.error(), 0.0, || {
                let [first, then, limit] = [first.value, then.value, limit].map(figures);
                format!("{name} goes from {first} to {then} where the limit is {limit}")
            });
        }
    }
}

/// The exponent of the half time in L between two lengths.
fn exponent(before: &Drift, after: &Drift) -> Measured {
    let lengths = (after.length as f64 / before.length as f64).ln();
    let (time, earlier) = (after.half_time, before.half_time);
    let error = (time.error() / time.value + earlier.error() / earlier.value) / lengths;
    Measured::exact((time.value / earlier.value).ln() / lengths, error)
}

impl Drift {
    /// What a flow shows that stands still.
    fn of(flow: &Flow<'_>) -> Result<Self, Failure> {
        let name = flow.name();
        let last = |quantity: Quantity| -> Result<Measured, Failure> {
            let number = flow.last(quantity)?.number;
            match number.error {
                Some(_) => Ok(number),
                None => Err(undecided(format!("{name}: the error of {quantity} is not known"))),
            }
        };
        let distance = last(Quantity::DistanceToInfiniteLimit)?;
        let end = flow.last(Quantity::DistanceToInfiniteLimit)?;
        if end.ending != Some(Ending::Stationary) {
            return Err(undecided(format!("{name}: {}", end.ended())));
        }
        let half = |quantity: Quantity, end: f64, otherwise: &str| {
            let moving = flow.of(quantity).filter(|row| row.time > 0.0);
            let path: Vec<(f64, f64)> = moving.map(|row| (row.time, row.number.value)).collect();
            half_time(&path, 0.5 * end).ok_or_else(|| undecided(format!("{name}: {otherwise}")))
        };
        let limit_distance = last(Quantity::FirstOrderDistance)?.value;
        let half_time = half(
            Quantity::DistanceToInfiniteLimit,
            distance.value,
            "the flow never was nearer than half of where it ends",
        )?;
        let predicted = half(
            Quantity::PredictedDistance,
            limit_distance,
            "the first-order drift has no half time among the times asked for",
        )?;
        let ratio = half_time.value / predicted.value;
        let error = ratio * (half_time.error() / half_time.value + predicted.error() / predicted.value);
        let (risk, floor) = (last(Quantity::FinalRisk)?, last(Quantity::NoiseFloor)?);
        Ok(Drift {
            length: flow.tokens(),
            distance,
            limit_distance,
            half_time,
            ratio: Measured::exact(ratio, error),
            gain: last(Quantity::Gain)?,
            best_gain: last(Quantity::FirstOrderGain)?.value,
            excess: Measured::exact(risk.value - floor.value, risk.error() + floor.error()),
        })
    }
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

fn judged(dimension: i64, drifts: &[Drift]) -> Block {
    let last = &drifts[drifts.len() - 1];
    table(
        &format!("drift-{dimension}"),
        &format!(
            "Where softmax training ends at finite length, $d = {dimension}$: distance to the infinite limit (that of $b^*$ is {}), \
             time $t$ until half of it is reached, this over that of the first-order drift, $b$ and how far it is from $b^*$, which is {}, \
             and excess risk. Exact: nothing is sampled; times are interpolated between computed ones.",
            figures(last.limit_distance),
            figures(last.best_gain)
        ),
        drifts,
        &[
            ("$L$", &|drift| Cell::Integer(drift.length)),
            ("distance", &|drift| drift.distance.cell()),
            ("half time $t$", &|drift| drift.half_time.cell()),
            ("$t/L$", &|drift| drift.half_time.times(1.0 / drift.length as f64).cell()),
            ("over first order", &|drift| drift.ratio.cell()),
            ("$b$", &|drift| drift.gain.cell()),
            ("$b - b^*$", &|drift| {
                Measured::exact(drift.gain.value - last.best_gain, drift.gain.error()).cell()
            }),
            ("excess risk", &|drift| drift.excess.cell()),
        ],
    )
}

/// b over t/L, where lengths fall on one another, and the first-order drift, which is one curve there.
fn gains(dimension: i64, rows: &[Row]) -> Figure {
    let scaled = |quantity: Quantity| -> Vec<(String, Vec<Point>)> {
        let point = |row: &&Row| Some(Point::new(row.time / row.length? as f64, row.number.value));
        let found = curves(rows, quantity, |row| row.dimension == dimension).into_iter();
        found.map(|(name, curve)| (name, curve.iter().filter_map(point).collect())).collect()
    };
    let line = |(colour, (name, points))| Series { name, mark: Mark::Line, colour, points };
    let mut series: Vec<Series> = scaled(Quantity::Gain).into_iter().enumerate().map(line).collect();
    let mut points: Vec<Point> =
        scaled(Quantity::PredictedGain).into_iter().flat_map(|(_, points)| points).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    series.push(Series { name: "first order".to_string(), mark: Mark::Dashed, colour: GREY, points });
    Figure {
        id: format!("gain-{dimension}"),
        title: format!("The parameter $b$ against time divided by the length, $d = {dimension}$"),
        caption: "Lines: exact flows. Dashed: the first-order drift from the infinite limit, the same for all lengths."
            .to_string(),
        x: Axis::logarithmic("training time over length, t/L"),
        y: Axis::linear("b, the factor of the values"),
        series,
    }
}
