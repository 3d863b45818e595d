//! How a concentration result is held against the paper's bound, and one engine against the other.

use super::evidence::{Findings, short};
use crate::kinds::concentration::drawing::{BoundCurve, tokens_of};
use crate::kinds::concentration::findings::{EXACT_ENGINE, Finding, SAMPLED_ENGINE, statistic};
use crate::tabulating::rounded;
use esscher_core::prompt::{
    BoundConstants, PromptLength, output_bound, score_gradient_bound, value_gradient_bound,
};
use esscher_lab::Failure;
use esscher_report::{Cell, DataTable, Point};

/// c₂ of the bound L^{−c₂/σ²}. The paper leaves it open; normal tokens at σ = H = 1 allow 0.618 in the limit, and more
/// relative to 1/σ² above.
pub(super) const EXPONENT: f64 = 0.5;

/// c₁ is taken from lengths up to this one, at the smallest σ; the test is at longer ones and at every other σ.
pub(super) const CALIBRATED_TO: u64 = 100;

/// Standard errors that a number may be off.
pub(super) const STANDARD_ERRORS: f64 = 5.0;

/// What the comparisons of one quantity showed.
pub(super) struct Compared<'a> {
    /// Numbers of the tokens that were held against the bound.
    rows: Vec<Vec<Cell>>,
    /// The class and the longest length of each row, and its law.
    origins: Vec<(String, u64, String)>,
    /// The calibrated bounds.
    pub(super) curves: Vec<BoundCurve<'a>>,
    /// The largest measured error over the bound beyond the lengths of calibration.
    pub(super) closest: f64,
    /// The smallest local slope at the longest length minus that of the bound, where the bound falls.
    pub(super) smallest_margin: f64,
    /// Tokens whose longest length is beyond the maximum of the bound, so that it says something about their slope.
    pub(super) falling: usize,
    /// Tokens compared.
    pub(super) tokens: usize,
    /// The largest distance between the engines, in standard errors, and the number of comparisons.
    pub(super) engines: (f64, usize),
    /// Simulated means left out of that because they rest on few trials.
    pub(super) left_out: usize,
}

fn shape(quantity: &str, length: u64, sub_gaussian: f64) -> Result<f64, Failure> {
    let length = PromptLength::new(length)?;
    let constants = BoundConstants { factor: 1.0, exponent: EXPONENT };
    // The propositions are stated for σ ≥ 1: a smaller parameter is one of 1, too.
    let sigma = sub_gaussian.max(1.0);
    Ok(match quantity {
        "score-gradient" => score_gradient_bound(length, sigma, constants)?,
        "value-gradient" => value_gradient_bound(length, sigma, constants)?,
        _ => output_bound(length, sigma, constants)?,
    })
}

/// Holds one quantity of a result against the bound and engine against engine.
pub(super) fn compare<'a>(
    found: &'a [Finding],
    quantity: &str,
    findings: &mut Findings,
) -> Result<Compared<'a>, Failure> {
    let mine: Vec<&Finding> = found.iter().filter(|one| one.quantity == quantity).collect();
    let mut compared = Compared {
        rows: Vec::new(),
        origins: Vec::new(),
        curves: Vec::new(),
        closest: 0.0,
        smallest_margin: f64::INFINITY,
        falling: 0,
        tokens: 0,
        engines: (0.0, 0),
        left_out: 0,
    };
    let (factor, smallest) = calibrate(&mine, quantity)?;
    for tokens in tokens_of(&mine) {
        let of = |engine: &str, statistic: &str| -> Vec<&Finding> {
            let same = |one: &&&Finding| {
                one.same_tokens(tokens)
                    && one.engine == engine
                    && one.statistic == statistic
                    && one.length >= 2
            };
            mine.iter().filter(same).copied().collect()
        };
        let exact = of(EXACT_ENGINE, statistic::ERROR);
        let sampled = of(SAMPLED_ENGINE, statistic::ERROR);
        check_engines(&exact, &sampled, quantity, findings, &mut compared);
        let (engine, errors) =
            if exact.is_empty() { (SAMPLED_ENGINE, sampled) } else { (EXACT_ENGINE, exact) };
        let Some(sigma) = tokens.sub_gaussian else { continue };
        let slopes = of(engine, statistic::SLOPE);
        let last = slopes.iter().rev().find(|one| one.note.is_none() && one.value.is_some());
        let (true, Some(last)) = (factor > 0.0, last) else { continue };
        compared.tokens += 1;
        let (mut closest, mut curve) = (0.0_f64, Vec::new());
        for one in &errors {
            let bound = factor * shape(quantity, one.length, sigma)?;
            curve.push(Point::new(one.length as f64, bound));
            if let Some(value) = one.value {
                // Those that c₁ was taken from are below the bound by construction.
                if one.length > CALIBRATED_TO || sigma.max(1.0) > smallest * (1.0 + 1e-9) {
                    closest = closest.max(value / bound);
                }
                findings.require(value - STANDARD_ERRORS * one.error.unwrap_or(0.0) <= bound, || {
                    format!(
                        "the {quantity} error of {} at $L$ = {} is {}, above the bound {}",
                        tokens.tokens(),
                        short(one.length as f64),
                        short(value),
                        short(bound)
                    )
                });
            }
        }
        let from = last.from_length.unwrap_or(2).max(2);
        let fall = shape(quantity, from, sigma)?.ln() - shape(quantity, last.length, sigma)?.ln();
        let bound_slope = fall / (last.length as f64 / from as f64).ln();
        let (slope, error) = (last.value.unwrap_or(0.0), last.error.unwrap_or(0.0));
        // Up to L = e^{2σ²} and more the logarithm makes the bound rise: it then says nothing about slopes.
        let falls = bound_slope > 0.0;
        if falls {
            compared.falling += 1;
            compared.smallest_margin = compared.smallest_margin.min(slope - bound_slope);
            findings.require(slope + STANDARD_ERRORS * error >= bound_slope, || {
                format!(
                    "the {quantity} error of {} falls with slope {} at $L$ = {}, less than the {} of the bound",
                    tokens.tokens(),
                    short(slope),
                    short(last.length as f64),
                    short(bound_slope)
                )
            });
        }
        let square = sigma.max(1.0).powi(2);
        compared.closest = compared.closest.max(closest);
        let number = |value: f64, error: Option<f64>| Cell::Number { value, error };
        compared.rows.push(vec![
            Cell::Text(tokens.law.clone()),
            number(sigma, None),
            rounded(closest),
            number(slope, Some(error)),
            if falls { rounded(bound_slope) } else { Cell::Missing },
            number(slope * square, Some(error * square)),
        ]);
        compared.origins.push((last.accuracy.clone(), last.length, tokens.law.clone()));
        compared.curves.push(BoundCurve { tokens, points: curve });
    }
    Ok(compared)
}

/// The c₁ that all laws and scales are held against, the least that bounds the short prompts of the smallest σ; and that σ.
fn calibrate(mine: &[&Finding], quantity: &str) -> Result<(f64, f64), Failure> {
    let errors = || {
        mine.iter().filter_map(|one| {
            let is_short = one.statistic == statistic::ERROR && (2..=CALIBRATED_TO).contains(&one.length);
            Some((one.length, one.sub_gaussian?.max(1.0), one.value?)).filter(|_| is_short)
        })
    };
    let smallest = errors().map(|(_, sigma, _)| sigma).fold(f64::INFINITY, f64::min);
    let mut factor = 0.0_f64;
    for (length, sigma, value) in errors().filter(|(_, sigma, _)| *sigma <= smallest * (1.0 + 1e-9)) {
        factor = factor.max(value / shape(quantity, length, sigma)?);
    }
    Ok((factor, smallest))
}

/// Where both engines measured the same number, they must agree.
fn check_engines(
    exact: &[&Finding],
    sampled: &[&Finding],
    quantity: &str,
    findings: &mut Findings,
    compared: &mut Compared<'_>,
) {
    for one in sampled {
        let Some(other) = exact.iter().find(|other| other.length == one.length) else { continue };
        if one.note.is_some() {
            compared.left_out += 1;
            continue;
        }
        let (Some(a), Some(b)) = (one.value, other.value) else { continue };
        let error = one.error.unwrap_or(0.0).hypot(other.error.unwrap_or(0.0));
        let distance = (a - b).abs() / error;
        compared.engines = (compared.engines.0.max(distance), compared.engines.1 + 1);
        findings.trust(distance <= STANDARD_ERRORS, || {
            format!(
                "the engines disagree on the {quantity} error of {} at $L$ = {}: simulated {}, exact {}, {} standard errors",
                one.tokens(),
                short(one.length as f64),
                short(a),
                short(b),
                short(distance)
            )
        });
    }
}

impl Compared<'_> {
    /// The numbers that are judged.
    pub(super) fn table(&self, quantity: &str) -> DataTable {
        let columns =
            ["law", "$\\sigma$", "error/bound", "$\\kappa$", "$\\kappa$ of the bound", "$\\sigma^2\\kappa$"];
        let mut groups: Vec<(&str, u64, Vec<&str>)> = Vec::new();
        for (class, length, law) in &self.origins {
            match groups.iter_mut().find(|known| known.0 == class && known.1 == *length) {
                Some((_, _, laws)) if laws.contains(&law.as_str()) => {}
                Some((_, _, laws)) => laws.push(law),
                None => groups.push((class, *length, vec![law])),
            }
        }
        let classes: Vec<String> = groups
            .iter()
            .map(|(class, length, laws)| {
                format!("`{}` {class}, to $L$ = {}", laws.join("`, `"), short(*length as f64))
            })
            .collect();
        DataTable {
            id: format!("{quantity}-judged"),
            caption: format!(
                "{} against its bound: sub-Gaussian parameter $\\sigma$, largest share of the bound where $c_1$ was not taken from, local \
                 slope $\\kappa$ at the longest length beside that of the bound where it falls. Classes: {}.",
                title(quantity),
                classes.join("; ")
            ),
            columns: columns.map(str::to_string).to_vec(),
            rows: self.rows.clone(),
        }
    }
}

/// What a quantity is the error of, to begin a sentence.
fn title(quantity: &str) -> &'static str {
    match quantity {
        "score-gradient" => "The error of the gradient in $U$",
        "value-gradient" => "The error of the gradient in $V$",
        _ => "The error of the output",
    }
}
