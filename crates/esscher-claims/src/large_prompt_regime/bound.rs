//! How a concentration result is held against the paper's bound, and one engine against the other.

use super::evidence::short;
use crate::judging::Judging;
use esscher_core::Quantity;
use esscher_core::prompt::{
    BoundConstants, PromptLength, output_bound, score_gradient_bound, value_gradient_bound,
};
use esscher_lab::Failure;
use esscher_questions::concentration::answer::{Engine, Row, Statistic, rows_of, select, tokens_of};
use esscher_questions::concentration::describe::BoundCurve;
use esscher_questions::tabulating::rounded;
use esscher_report::{Cell, DataTable, Point};

/// c₂ of the bound L^{−c₂/σ²}. The paper leaves it open; normal tokens at σ = H = 1 allow 0.618 in the limit, and more
/// relative to 1/σ² above.
const EXPONENT: f64 = 0.5;

/// c₁ is taken from lengths up to this one, at the smallest σ; the test is at longer ones and at every other σ.
const CALIBRATED_TO: u64 = 100;

/// Standard errors that a number may be off.
const STANDARD_ERRORS: f64 = 5.0;

/// The bound on one quantity, with the c₁ that all laws and scales are held against.
struct Bound {
    quantity: Quantity,
    /// c₁: the least that bounds the short prompts of the smallest σ.
    factor: f64,
    /// That σ.
    smallest: f64,
}

impl Bound {
    fn calibrated(rows: &[&Row], quantity: Quantity) -> Result<Self, Failure> {
        let errors = || {
            rows.iter().filter_map(|row| {
                let is_short = row.statistic == Statistic::Error && (2..=CALIBRATED_TO).contains(&row.length);
                Some((row.length, row.sub_gaussian?.max(1.0), row.value?)).filter(|_| is_short)
            })
        };
        let smallest = errors().map(|(_, sigma, _)| sigma).fold(f64::INFINITY, f64::min);
        let mut bound = Bound { quantity, factor: 0.0, smallest };
        for (length, sigma, value) in errors().filter(|(_, sigma, _)| *sigma <= smallest * (1.0 + 1e-9)) {
            bound.factor = bound.factor.max(value / bound.shape(length, sigma)?);
        }
        Ok(bound)
    }

    /// The bound with c₁ = 1.
    fn shape(&self, length: u64, sub_gaussian: f64) -> Result<f64, Failure> {
        let length = PromptLength::new(length)?;
        let constants = BoundConstants { factor: 1.0, exponent: EXPONENT };
        let bound = match self.quantity {
            Quantity::Output => output_bound,
            Quantity::ScoreGradient => score_gradient_bound,
            Quantity::ValueGradient => value_gradient_bound,
        };
        // The propositions are stated for σ ≥ 1: a smaller parameter is one of 1, too.
        Ok(bound(length, sub_gaussian.max(1.0), constants)?)
    }

    /// Whether c₁ may have been taken from here: what it was taken from is below the bound by construction.
    fn is_calibration(&self, length: u64, sub_gaussian: f64) -> bool {
        length <= CALIBRATED_TO && sub_gaussian.max(1.0) <= self.smallest * (1.0 + 1e-9)
    }
}

/// Tokens that were held against the bound.
pub(super) struct Held<'a> {
    sigma: f64,
    /// The largest measured error over the bound where c₁ was not taken from.
    pub(super) closest: f64,
    /// The last local slope.
    slope: &'a Row,
    /// The slope of the bound between the same lengths; it is positive where the bound falls.
    bound_slope: f64,
}

/// What the comparisons of one quantity showed.
pub(super) struct Compared<'a> {
    quantity: Quantity,
    /// The tokens that were held against the bound.
    pub(super) held: Vec<Held<'a>>,
    /// The calibrated bounds.
    pub(super) curves: Vec<BoundCurve<'a>>,
    /// The largest distance between the engines, in standard errors, and the number of comparisons.
    pub(super) engines: (f64, usize),
    /// Simulated means left out of that because they rest on few trials.
    pub(super) left_out: usize,
}

/// Holds one quantity of a result against the bound and engine against engine.
pub(super) fn compare<'a>(
    found: &'a [Row],
    quantity: Quantity,
    judging: &mut Judging,
) -> Result<Compared<'a>, Failure> {
    let mine = rows_of(found, quantity);
    let bound = Bound::calibrated(&mine, quantity)?;
    let (held, curves) = (Vec::new(), Vec::new());
    let mut compared = Compared { quantity, held, curves, engines: (0.0, 0), left_out: 0 };
    for tokens in tokens_of(&mine) {
        let of = |engine, statistic| -> Vec<&Row> {
            select(&mine, tokens, engine, statistic).into_iter().filter(|row| row.length >= 2).collect()
        };
        let (exact, sampled) = (of(Engine::Exact, Statistic::Error), of(Engine::Sampled, Statistic::Error));
        compared.check_engines(&exact, &sampled, judging);
        let (engine, errors) =
            if exact.is_empty() { (Engine::Sampled, sampled) } else { (Engine::Exact, exact) };
        let slopes = of(engine, Statistic::Slope);
        let last = slopes.into_iter().rev().find(|row| row.note.is_none() && row.value.is_some());
        if let (true, Some(sigma), Some(last)) = (bound.factor > 0.0, tokens.sub_gaussian, last) {
            let (held, points) = hold(&bound, sigma, &errors, last, judging)?;
            compared.held.push(held);
            compared.curves.push(BoundCurve { tokens, points });
        }
    }
    Ok(compared)
}

/// Holds the errors of some tokens, and their last slope, against the bound; with the points of the bound.
fn hold<'a>(
    bound: &Bound,
    sigma: f64,
    errors: &[&Row],
    last: &'a Row,
    judging: &mut Judging,
) -> Result<(Held<'a>, Vec<Point>), Failure> {
    let quantity = bound.quantity.name();
    let (mut closest, mut points) = (0.0_f64, Vec::new());
    for row in errors {
        let allowed = bound.factor * bound.shape(row.length, sigma)?;
        points.push(Point::new(row.length as f64, allowed));
        let Some(value) = row.value else { continue };
        if !bound.is_calibration(row.length, sigma) {
            closest = closest.max(value / allowed);
        }
        judging.require(value - STANDARD_ERRORS * row.error.unwrap_or(0.0) <= allowed, || {
            format!(
                "the {quantity} error of {} at $L$ = {} is {}, above the bound {}",
                row.tokens(),
                short(row.length as f64),
                short(value),
                short(allowed)
            )
        });
    }
    let from = last.from_length.unwrap_or(2).max(2);
    let fall = bound.shape(from, sigma)?.ln() - bound.shape(last.length, sigma)?.ln();
    let bound_slope = fall / (last.length as f64 / from as f64).ln();
    let held = Held { sigma, closest, slope: last, bound_slope };
    let (slope, error) = held.slope();
    // Up to L = e^{2σ²} and more the logarithm makes the bound rise: it then says nothing about slopes.
    judging.require(held.margin().is_none() || slope + STANDARD_ERRORS * error >= bound_slope, || {
        format!(
            "the {quantity} error of {} falls with slope {} at $L$ = {}, less than the {} of the bound",
            last.tokens(),
            short(slope),
            short(last.length as f64),
            short(bound_slope)
        )
    });
    Ok((held, points))
}

impl Held<'_> {
    /// The slope with its error.
    fn slope(&self) -> (f64, f64) {
        (self.slope.value.unwrap_or(0.0), self.slope.error.unwrap_or(0.0))
    }

    /// The slope minus that of the bound, where the bound falls and so says something about slopes.
    pub(super) fn margin(&self) -> Option<f64> {
        (self.bound_slope > 0.0).then(|| self.slope().0 - self.bound_slope)
    }

    fn cells(&self) -> Vec<Cell> {
        let (slope, error) = self.slope();
        let square = self.sigma.max(1.0).powi(2);
        vec![
            Cell::Text(self.slope.law.clone()),
            Cell::Number { value: self.sigma, error: None },
            rounded(self.closest),
            Cell::Number { value: slope, error: Some(error) },
            self.margin().map_or(Cell::Missing, |_| rounded(self.bound_slope)),
            Cell::Number { value: slope * square, error: Some(error * square) },
        ]
    }
}

impl Compared<'_> {
    /// Where both engines measured the same number, they must agree.
    fn check_engines(&mut self, exact: &[&Row], sampled: &[&Row], judging: &mut Judging) {
        for row in sampled {
            let Some(other) = exact.iter().find(|other| other.length == row.length) else { continue };
            if row.note.is_some() {
                self.left_out += 1;
                continue;
            }
            let (Some(a), Some(b)) = (row.value, other.value) else { continue };
            let error = row.error.unwrap_or(0.0).hypot(other.error.unwrap_or(0.0));
            let distance = (a - b).abs() / error;
            self.engines = (self.engines.0.max(distance), self.engines.1 + 1);
            judging.trust(distance <= STANDARD_ERRORS, || {
                format!(
                    "the engines disagree on the {} error of {} at $L$ = {}: simulated {}, exact {}, {} standard errors",
                    self.quantity.name(),
                    row.tokens(),
                    short(row.length as f64),
                    short(a),
                    short(b),
                    short(distance)
                )
            });
        }
    }

    /// The numbers that are judged.
    pub(super) fn table(&self) -> DataTable {
        let columns =
            ["law", "$\\sigma$", "error/bound", "$\\kappa$", "$\\kappa$ of the bound", "$\\sigma^2\\kappa$"];
        // The classes, each with its longest length and its laws.
        let mut groups: Vec<(&Row, Vec<&str>)> = Vec::new();
        for slope in self.held.iter().map(|held| held.slope) {
            let is_same = |known: &Row| known.accuracy == slope.accuracy && known.length == slope.length;
            match groups.iter_mut().find(|(known, _)| is_same(known)) {
                Some((_, laws)) if laws.contains(&slope.law.as_str()) => {}
                Some((_, laws)) => laws.push(&slope.law),
                None => groups.push((slope, vec![&slope.law])),
            }
        }
        let classes = groups.iter().map(|(row, laws)| {
            let (class, length) = (row.accuracy.name(), short(row.length as f64));
            format!("`{}` {class}, to $L$ = {length}", laws.join("`, `"))
        });
        let title = match self.quantity {
            Quantity::Output => "The error of the output",
            Quantity::ScoreGradient => "The error of the gradient in $U$",
            Quantity::ValueGradient => "The error of the gradient in $V$",
        };
        DataTable {
            id: format!("{}-judged", self.quantity.name()),
            caption: format!(
                "{title} against its bound: sub-Gaussian parameter $\\sigma$, largest share of the bound where $c_1$ was not \
                 taken from, local slope $\\kappa$ at the longest length beside that of the bound where it falls. Classes: {}.",
                classes.collect::<Vec<_>>().join("; ")
            ),
            columns: columns.map(str::to_string).to_vec(),
            rows: self.held.iter().map(Held::cells).collect(),
        }
    }
}
