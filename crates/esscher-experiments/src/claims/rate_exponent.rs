//! Claim: the exponent of L falls like 1/σ² for Gaussian tokens, and is 1 for bounded ones.

use super::evidence::{Findings, named, short};
use super::{Claim, Judgement};
use crate::kinds::concentration::drawing::{error_figure, main_panels, slope_figure, tokens_of};
use crate::kinds::concentration::findings::{EXACT_ENGINE, Finding, SAMPLED_ENGINE, findings, statistic};
use crate::measured::GREY;
use crate::tabulating::rounded;
use esscher_core::prompt::rate_exponent;
use esscher_lab::{Failure, Table};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series, Verdict};

pub(super) const CLAIM: Claim = Claim {
    name: "rate-exponent",
    title: "The exponent of the rate",
    statement: "The exponent of order one over the squared scale is real: for Gaussian tokens the error falls more slowly \
                the larger the scale, with an exponent $\\kappa(H)$ that behaves like $1/\\sigma^2$ at large scales. It is not \
                the price of being sub-Gaussian, though: bounded tokens of the same scale have exponent 1.",
    formula: r"\kappa(H) = \begin{cases} 1 & H^2 \le 1/2 \\ \sqrt{1/H^2 + 1/4} - 1/2 & H^2 > 1/2 \end{cases} \qquad H = \|\Gamma^{1/2} U S^{1/2}\|",
    citation: "The exponent $c_2/\\sigma^2$: Boursier & Boyer 2025, arXiv 2512.11784. The formula for $\\kappa(H)$ and the \
               exponent 1 of bounded tokens are ours, the former a heuristic of large deviations, approached as slowly \
               as $1/\\ln L$.",
    measurement: "Local slopes of the exact output error of normal tokens from $10^3$ to $10^{12}$ tokens against \
                  $\\kappa(H)$, queries $\\mathcal N(0, I)$, so that $H = \\sigma$; at full scale also of normal tokens \
                  mixed with an atom. Fitted rates of simulated errors of random signs, cube and sphere.",
    criterion: "For normal tokens: a last slope more than 0.05 from $\\kappa(H)$ (0.01 where $\\kappa = 1$), or not nearer \
                to it than the first slope where both are further than 0.02; slopes that do not fall with $\\sigma$; a \
                slope times $\\sigma^2$ outside $[1/2, 1.2]$ for $\\sigma \\ge 1$. For bounded tokens: a fitted rate more \
                than 0.05 plus five standard errors from 1 (a false alarm in fewer than $10^{-6}$ of all fits if \
                logarithms of means are normal). Rates with a standard error above 0.04 and slopes with one above 0.01 \
                decide nothing.",
    quick: include_str!("../../../../experiments/rate-exponent/quick.toml"),
    full: include_str!("../../../../experiments/rate-exponent/full.toml"),
    judge,
};

/// The logarithms of the heuristic still count at 10¹² tokens.
const NEAR: f64 = 0.05;
/// Where κ = 1 they do not.
const NEAR_ONE: f64 = 0.01;
/// So near a slope may pass through κ on its way.
const PASSING: f64 = 0.02;
const STANDARD_ERRORS: f64 = 5.0;
/// A rate less certain than this decides nothing.
const TOO_UNCERTAIN: f64 = 0.04;
/// So is an exact slope less certain than this, a fifth of what it may pass by.
const SLOPE_TOO_UNCERTAIN: f64 = 0.01;

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let found = findings(result)?;
    let mine: Vec<&Finding> = found.iter().filter(|one| one.quantity == "output").collect();
    let mut against = Findings::default();
    let (mut rows, mut exact, mut fitted) = (Vec::new(), Vec::new(), Vec::new());
    let mut farthest = (0.0_f64, 0.0_f64);
    let mut uncertain = 0;
    let number = |value: f64, error: Option<f64>| Cell::Number { value, error };
    for tokens in tokens_of(&mine) {
        let of = |engine: &str, statistic: &str| -> Vec<&Finding> {
            let same = |one: &&&Finding| {
                one.same_tokens(tokens)
                    && one.engine == engine
                    && one.statistic == statistic
                    && one.value.is_some()
            };
            mine.iter().filter(same).copied().collect()
        };
        let slopes = of(EXACT_ENGINE, statistic::SLOPE);
        let is_certain = |one: &&Finding| one.error.is_some_and(|error| error <= SLOPE_TOO_UNCERTAIN);
        let slopes = if slopes.last().is_none_or(is_certain) {
            slopes
        } else {
            uncertain += 1;
            Vec::new()
        };
        if let (Some(first), Some(last)) = (slopes.first(), slopes.last()) {
            // The normal part of the mixture has the scale σ, and it alone decides the exponent.
            let theory = match last.theory {
                Some(theory) => theory,
                None => rate_exponent(tokens.sigma)?,
            };
            let (first, slope) = (first.value.unwrap_or(0.0), last.value.unwrap_or(0.0));
            let gap = (slope - theory).abs();
            farthest.0 = farthest.0.max(gap);
            let near = if theory == 1.0 { NEAR_ONE } else { NEAR };
            against.require(gap <= near, || {
                format!(
                    "the slope of {} at $L$ = {} is {}, $\\kappa(H)$ is {}",
                    tokens.tokens(),
                    short(last.length as f64),
                    short(slope),
                    short(theory)
                )
            });
            let first_gap = (first - theory).abs();
            against.require(gap <= PASSING || first_gap <= PASSING || gap < first_gap, || {
                format!(
                    "the slope of {} moves away from $\\kappa(H)$, from {} to {}",
                    tokens.tokens(),
                    short(first),
                    short(slope)
                )
            });
            let square = tokens.sigma * tokens.sigma;
            against.require(tokens.sigma < 1.0 || (0.5..=1.2).contains(&(slope * square)), || {
                format!("the slope of {} times $\\sigma^2$ is {}", tokens.tokens(), short(slope * square))
            });
            if let Some((_, _, before)) = exact
                .iter()
                .rev()
                .find(|(law, sigma, _): &&(&str, f64, f64)| *law == tokens.law && *sigma < tokens.sigma)
            {
                against.require(slope < *before, || {
                    format!(
                        "the slope of {} is {}, not below that of the smaller scale",
                        tokens.tokens(),
                        short(slope)
                    )
                });
            }
            exact.push((tokens.law.as_str(), tokens.sigma, slope));
            rows.push(vec![
                Cell::Text(tokens.law.clone()),
                number(tokens.sigma, None),
                Cell::Text(last.accuracy.clone()),
                number(first, slopes[0].error),
                number(slope, last.error),
                rounded(theory),
                number(slope * square, last.error.map(|error| error * square)),
            ]);
        }
        if let Some(rate) = of(SAMPLED_ENGINE, statistic::RATE).last() {
            let (value, error) = (rate.value.unwrap_or(0.0), rate.error.unwrap_or(f64::INFINITY));
            if error > TOO_UNCERTAIN {
                uncertain += 1;
            } else {
                farthest.1 = farthest.1.max((value - 1.0).abs());
                against.require((value - 1.0).abs() <= NEAR + STANDARD_ERRORS * error, || {
                    format!("the rate of {} is {} ± {}, not 1", tokens.tokens(), short(value), short(error))
                });
                fitted.push((tokens.law.as_str(), tokens.sigma, value, error));
            }
            rows.push(vec![
                Cell::Text(tokens.law.clone()),
                number(tokens.sigma, None),
                Cell::Text(rate.accuracy.clone()),
                Cell::Missing,
                number(value, Some(error)),
                number(1.0, None),
                Cell::Missing,
            ]);
        }
    }
    let (verdict, reason) = if exact.is_empty() || fitted.is_empty() {
        let reason =
            "The result has no exact slopes, or no simulated rate that is certain enough.".to_string();
        (Verdict::NotMeasurable, reason)
    } else {
        let doubt = if uncertain > 0 {
            format!(" {uncertain} rates are too uncertain to decide.")
        } else {
            String::new()
        };
        against.verdict(format!(
            "At the longest lengths the {} exact slopes are within {} of $\\kappa(H)$ (tolerance 0.05) and fall with the \
             scale. The {} fitted rates of bounded tokens (scales of a law share their prompts) are within {} of 1 \
             (tolerance 0.05 plus five standard errors).{doubt}",
            exact.len(),
            short(farthest.0),
            fitted.len(),
            short(farthest.1)
        ))
    };
    let columns =
        ["law", "$\\sigma$", "class", "first $\\kappa$", "last $\\kappa$", "expected", "$\\sigma^2\\kappa$"];
    let table = DataTable {
        id: "judged".to_string(),
        caption: "Normal tokens: local slopes $\\kappa$ at the shortest and the longest lengths against \
                  $\\kappa(H)$. Bounded tokens: the rate fitted to all lengths against 1."
            .to_string(),
        columns: columns.map(str::to_string).to_vec(),
        rows,
    };
    let mut evidence = vec![Block::Figure(exponent_figure(&exact, &fitted)?)];
    for panel in main_panels(&mine) {
        let mut errors = error_figure(&mine, "output", &panel, &[]);
        if exact.iter().any(|(law, _, _)| panel.is_of(law)) {
            evidence.push(Block::Figure(errors));
            evidence.push(Block::Figure(slope_figure(&mine, "output", &panel)));
        } else {
            let guides: Vec<Series> = errors.series.iter().filter_map(guide).collect();
            errors.series.extend(guides);
            errors.caption.push_str(" Dashed: the exponent 1, through the last dots.");
            evidence.push(Block::Figure(errors));
        }
    }
    evidence.push(Block::Table(table));
    Ok(Judgement { verdict, reason, evidence: named(CLAIM.name, evidence) })
}

/// The line of slope −1 through the last point of a series.
fn guide(series: &Series) -> Option<Series> {
    let (first, last) = (series.points.first()?, series.points.last()?);
    let start = Point::new(first.x, last.y * last.x / first.x);
    let points = vec![start, Point::new(last.x, last.y)];
    Some(Series { name: "slope −1".to_string(), mark: Mark::Dashed, colour: GREY, points })
}

/// Exponents against σ, with κ(σ) and the exponent 1 dashed.
fn exponent_figure(exact: &[(&str, f64, f64)], fitted: &[(&str, f64, f64, f64)]) -> Result<Figure, Failure> {
    let mut series: Vec<Series> = Vec::new();
    let mut laws: Vec<&str> = Vec::new();
    let measured = exact
        .iter()
        .map(|&(law, sigma, slope)| (law, Point::new(sigma, slope)))
        .chain(fitted.iter().map(|&(law, sigma, rate, error)| (law, Point::with_error(sigma, rate, error))));
    for (law, point) in measured {
        let colour = match laws.iter().position(|known| *known == law) {
            Some(colour) => colour,
            None => {
                laws.push(law);
                let (name, mark, colour) = (law.to_string(), Mark::Dots, series.len());
                series.push(Series { name, mark, colour, points: Vec::new() });
                colour
            }
        };
        series[colour].points.push(point);
    }
    let sigmas = || exact.iter().map(|one| one.1).chain(fitted.iter().map(|one| one.1));
    let (low, high) = (sigmas().fold(f64::INFINITY, f64::min), sigmas().fold(0.0, f64::max));
    if low < high {
        const STEPS: usize = 60;
        let mut points = Vec::new();
        for step in 0..=STEPS {
            let sigma = low + (high - low) * step as f64 / STEPS as f64;
            points.push(Point::new(sigma, rate_exponent(sigma)?));
        }
        series.push(Series { name: "κ(H), H = σ".to_string(), mark: Mark::Dashed, colour: 0, points });
    }
    Ok(Figure {
        id: "scale".to_string(),
        title: "The exponent against the scale of the tokens".to_string(),
        caption: "Normal tokens: local slopes of exact errors at the longest lengths. Other laws: rates fitted to simulated \
                  errors, with one standard error. Dashed: $\\kappa(H)$."
            .to_string(),
        x: Axis { label: "scale σ of the tokens".to_string(), scale: Scale::Linear },
        y: Axis { label: "exponent κ of L".to_string(), scale: Scale::Linear },
        series,
    })
}
