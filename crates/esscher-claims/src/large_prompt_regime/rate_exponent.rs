//! Claim: the exponent of L falls like 1/σ² for Gaussian tokens, and is 1 for bounded ones.

use super::evidence::{at_most_two_figures, largest, number, slope_one, smallest, table, text, two_figures};
use crate::judging::{Found, Judging};
use esscher_core::Quantity;
use esscher_core::prompt::rate_exponent;
use esscher_lab::{Failure, Table};
use esscher_questions::concentration::answer::{Engine, Row, Statistic, rows_of, select, tokens_of};
use esscher_questions::concentration::describe::{error_figure, slope_figure};
use esscher_questions::concentration::panels::main_panels;
use esscher_questions::measured::figures;
use esscher_questions::tabulating::rounded;
use esscher_report::{Axis, Block, Cell, Figure, Mark, Point, Series, literal};

claim! {
    name: "rate-exponent",
    title: "The larger the scale of normal tokens, the more slowly prompts converge",
    statement: "The mean squared error of the output falls like $L^{-\\kappa}$. That the paper’s exponent is of order one over the squared \
                scale is no weakness of its proof: for Gaussian tokens $\\kappa$ falls so with the spread $H$ of the scores. Not all \
                sub-Gaussian tokens pay this price: bounded tokens of the same scale have exponent 1.",
    formula: r"\kappa(H) = \begin{cases} 1 & H^2 \le 1/2 \\ \sqrt{1/H^2 + 1/4} - 1/2 & H^2 > 1/2 \end{cases} \qquad H = \|\Gamma^{1/2} U S^{1/2}\|",
    citation: "The exponent $c_2/\\sigma^2$: [Boursier & Boyer 2025](https://arxiv.org/abs/2512.11784), Section 3. The formula for $\\kappa(H)$ and the \
               exponent 1 of bounded tokens are ours. The formula is a heuristic of large deviations; slopes approach it as \
               slowly as $1/\\ln L$.",
    measurement: "Local slopes of the exact output error of normal tokens from $10^3$ to $10^{12}$ tokens against \
                  $\\kappa(H)$, queries $\\mathcal N(0, I)$, so that $H = \\sigma$; in the full form also of normal tokens \
                  mixed with an atom. Fitted rates of simulated errors of random signs, cube and sphere. \
                  All laws have two dimensions. In more dimensions the slopes approach $\\kappa(H)$ more slowly: in eight, at a scale of 1, \
                  they are further from it than the tolerance even at $10^{12}$ tokens, and nothing is judged there.",
    criterion: "For normal tokens: a last slope is more than 0.05 from $\\kappa(H)$ (0.01 where $\\kappa = 1$), or not nearer \
                to it than the first slope where both are further than 0.02; slopes do not fall with $\\sigma$; a \
                slope times $\\sigma^2$ is outside $[1/2, 1.2]$ for $\\sigma \\ge 1$. For bounded tokens: a fitted rate is more \
                than 0.05 plus five standard errors from 1 (a false alarm in fewer than $10^{-6}$ of all fits if \
                logarithms of means are normal). Rates with a standard error above 0.04 and slopes with one above 0.01 \
                decide nothing.",
    decided_by: "more trials on longer prompts, the full form of this claim (about an hour of one core)",
    judge: judge,
}

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

/// A measured exponent of one law at one scale.
struct Exponent<'a> {
    /// Of an exact one, the slope at the shortest lengths.
    first: Option<&'a Row>,
    /// The slope at the longest lengths, or the fitted rate.
    row: &'a Row,
    value: f64,
    error: f64,
    expected: f64,
}

impl<'a> Exponent<'a> {
    fn new(first: Option<&'a Row>, row: &'a Row, expected: f64) -> Self {
        let (value, error) = (row.value.unwrap_or(0.0), row.error.unwrap_or(f64::INFINITY));
        Exponent { first, row, value, error, expected }
    }

    fn gap(&self) -> f64 {
        (self.value - self.expected).abs()
    }

    /// σ² times the exponent and its error.
    fn scaled(&self) -> (f64, Option<f64>) {
        let square = self.row.sigma * self.row.sigma;
        (self.value * square, self.row.error.map(|error| error * square))
    }

    /// Whether it is certain enough to decide.
    fn decides(&self) -> bool {
        self.error <= if self.first.is_some() { SLOPE_TOO_UNCERTAIN } else { TOO_UNCERTAIN }
    }

    fn weigh(&self, before: &[Exponent<'_>], judging: &mut Judging) {
        let (name, told, theory) = (self.row.tokens(), figures(self.value), figures(self.expected));
        let Some(first) = self.first.map(|first| first.value.unwrap_or(0.0)) else {
            judging.require(self.gap() <= NEAR + STANDARD_ERRORS * self.error, || {
                format!("the rate of {name} is {told} ± {}, not 1", figures(self.error))
            });
            return;
        };
        let near = if self.expected == 1.0 { NEAR_ONE } else { NEAR };
        judging.require(self.gap() <= near, || {
            let length = figures(self.row.length as f64);
            format!("the slope of {name} at L = {length} is {told}, $\\kappa(H)$ is {theory}")
        });
        let first_gap = (first - self.expected).abs();
        judging.require(self.gap() <= PASSING || first_gap <= PASSING || self.gap() < first_gap, || {
            format!("the slope of {name} moves away from $\\kappa(H)$, from {} to {told}", figures(first))
        });
        let (scaled, _) = self.scaled();
        judging.require(self.row.sigma < 1.0 || (0.5..=1.2).contains(&scaled), || {
            format!("the slope of {name} times $\\sigma^2$ is {}", figures(scaled))
        });
        let is_smaller = |one: &&Exponent| {
            one.first.is_some() && one.row.law == self.row.law && one.row.sigma < self.row.sigma
        };
        let smaller = before.iter().rev().find(is_smaller);
        judging.require(smaller.is_none_or(|smaller| self.value < smaller.value), || {
            format!("the slope of {name} is {told}, not below that of the smaller scale")
        });
    }
}

fn judge(result: &Table, judging: &mut Judging) -> Result<Found, Failure> {
    let found: Vec<Row> = result.read()?;
    let mine = rows_of(&found, Quantity::Output);
    let (mut exponents, mut uncertain): (Vec<Exponent<'_>>, usize) = (Vec::new(), 0);
    for tokens in tokens_of(&mine) {
        let of = |engine, statistic| -> Vec<&Row> {
            select(&mine, tokens, engine, statistic).into_iter().filter(|row| row.value.is_some()).collect()
        };
        let mut here = Vec::new();
        let slopes = of(Engine::Exact, Statistic::Slope);
        if let (Some(first), Some(last)) = (slopes.first(), slopes.last()) {
            // The normal part of the mixture has the scale σ, and it alone decides the exponent.
            let expected = last.theory.map_or_else(|| rate_exponent(last.sigma), Ok)?;
            here.push(Exponent::new(Some(first), last, expected));
        }
        here.extend(of(Engine::Sampled, Statistic::Rate).last().map(|rate| Exponent::new(None, rate, 1.0)));
        for exponent in here {
            if exponent.decides() {
                exponent.weigh(&exponents, judging);
            } else {
                uncertain += 1;
            }
            // The table shows rates that decide nothing, too.
            if exponent.decides() || exponent.first.is_none() {
                exponents.push(exponent);
            }
        }
    }
    let deciding = exponents.iter().filter(|one| one.decides());
    let (exact, fitted): (Vec<&Exponent>, Vec<&Exponent>) = deciding.partition(|one| one.first.is_some());
    judging.trust(!exact.is_empty() && !fitted.is_empty(), || {
        "the result has no exact slopes, or no simulated rate that is certain enough".to_string()
    });
    let farthest = |of: &[&Exponent]| at_most_two_figures(largest(of.iter().map(|one| one.gap())));
    let mut told = format!(
        "At the longest lengths the {} exact slopes, which must fall with the scale, are within {} of $\\kappa(H)$ \
         (tolerance 0.05). The {} fitted rates of bounded tokens (scales of a law share their prompts) are within {} of 1 \
         (tolerance 0.05 plus five standard errors).",
        exact.len(),
        farthest(&exact),
        fitted.len(),
        farthest(&fitted)
    );
    if uncertain > 0 {
        told += &format!(" {uncertain} rates are too uncertain to decide.");
    }
    let ends = |of: &[&Exponent]| -> [f64; 4] {
        let sigmas = || of.iter().map(|one| one.row.sigma);
        let at = |sigma| of.iter().find(|one| one.row.sigma == sigma).map_or(0.0, |one| one.value);
        let (low, high) = (smallest(sigmas()), largest(sigmas()));
        [low, at(low), high, at(high)]
    };
    let [low, at_low, high, at_high] = ends(&exact);
    let expected = |sigma| exact.iter().find(|one| one.row.sigma == sigma).map_or(0.0, |one| one.expected);
    let all = [exact.clone(), fitted.clone()].concat();
    Ok(Found {
        lead: format!(
            "In two dimensions the mean squared error of the output falls like a power $L^{{-\\kappa}}$ of the prompt length. For normal tokens \
             $\\kappa$ drops from {} at scale {low} to {} at scale {high}; a formula of ours, a heuristic, says {} and {}, where the paper \
             proves an order of $1/\\sigma^2$. For tokens of bounded size $\\kappa$ stays 1. Exponents of normal tokens are within {} of \
             the formula, those of bounded ones within {} of 1 (allowed: 0.05).",
            two_figures(at_low),
            two_figures(at_high),
            two_figures(expected(low)),
            two_figures(expected(high)),
            farthest(&exact),
            farthest(&fitted)
        ),
        number: match exact.is_empty() {
            true => "–".to_string(),
            false => format!("{} to {}", two_figures(at_low), two_figures(at_high)),
        },
        meaning: format!(
            "the exponent of normal tokens from scale {low} to {high} (our formula: {} to {})",
            two_figures(expected(low)),
            two_figures(expected(high))
        ),
        told,
        main: Some(Block::Figure(against_scale(&all)?)),
        headline: "Normal tokens pay for their scale, bounded ones do not".to_string(),
        explained: vec![
            "All laws have two dimensions here. In more dimensions the exponent is approached more slowly, so that slopes at these \
             lengths lie farther from the formula: in eight dimensions, at a scale of 1, they are outside the tolerance even at $10^{12}$ tokens."
                .to_string(),
            "An exponent of 0.1 means that ten times as many tokens make the error only a fifth smaller: at large scales no prompt \
             is long. Bounded tokens of the same scale escape because their scores are bounded, too."
                .to_string(),
        ],
        tables: vec![judged(&exponents)],
        more: panels(&mine, &exponents),
    })
}

/// Errors against the length, with slopes where they are exact and the exponent 1 elsewhere.
fn panels(mine: &[&Row], exponents: &[Exponent<'_>]) -> Vec<Block> {
    let mut evidence = Vec::new();
    for panel in main_panels(mine) {
        let mut errors = error_figure(mine, Quantity::Output, &panel, &[]);
        if exponents.iter().any(|one| one.first.is_some() && panel.is_of(&one.row.law)) {
            let slopes = slope_figure(mine, Quantity::Output, &panel);
            evidence.extend([errors, slopes].map(Block::Figure));
        } else {
            let guides: Vec<Series> =
                errors.series.iter().filter_map(|series| slope_one(&series.points)).collect();
            errors.series.extend(guides);
            errors.caption.push_str(" Dashed: the exponent 1, through the last dots.");
            evidence.push(Block::Figure(errors));
        }
    }
    evidence
}

fn judged(exponents: &[Exponent<'_>]) -> Block {
    table(
        "judged",
        "Normal tokens: local slopes $\\kappa$ at the shortest and the longest lengths against $\\kappa(H)$. Bounded \
         tokens: the rate fitted to all lengths against 1.",
        exponents,
        &[
            ("law", &|one| text(literal(&one.row.law))),
            ("$\\sigma$", &|one| number(Some(one.row.sigma), None)),
            ("class", &|one| text(one.row.accuracy.name())),
            ("first $\\kappa$", &|one| one.first.map_or(Cell::Missing, |row| number(row.value, row.error))),
            ("last $\\kappa$", &|one| number(one.row.value, one.row.error)),
            ("expected", &|one| rounded(one.expected)),
            ("$\\sigma^2\\kappa$", &|one| number(one.first.map(|_| one.scaled().0), one.scaled().1)),
        ],
    )
}

/// Exponents against σ, with κ(σ) dashed.
fn against_scale(exponents: &[&Exponent<'_>]) -> Result<Figure, Failure> {
    let mut series: Vec<Series> = Vec::new();
    for one in exponents {
        let point = match one.first {
            Some(_) => Point::new(one.row.sigma, one.value),
            None => Point::with_error(one.row.sigma, one.value, one.error),
        };
        match series.iter_mut().find(|known| known.name == one.row.law) {
            Some(known) => known.points.push(point),
            None => {
                let (name, mark, colour) = (literal(&one.row.law), Mark::Dots, series.len());
                series.push(Series { name, mark, colour, points: vec![point] });
            }
        }
    }
    let sigmas = || exponents.iter().map(|one| one.row.sigma);
    let (low, high) = (sigmas().fold(f64::INFINITY, f64::min), largest(sigmas()));
    if low < high {
        const STEPS: usize = 60;
        let sigma = |step: usize| low + (high - low) * step as f64 / STEPS as f64;
        let points = (0..=STEPS).map(sigma).map(|sigma| Ok(Point::new(sigma, rate_exponent(sigma)?)));
        let points = points.collect::<Result<_, Failure>>()?;
        series
            .push(Series { name: "theory κ(H), H = σ".to_string(), mark: Mark::Dashed, colour: 0, points });
    }
    Ok(Figure {
        id: "scale".to_string(),
        title: "The exponent of the prompt length against the scale of the tokens".to_string(),
        caption: "Normal tokens: local slopes of exact errors at the longest lengths. Other laws: rates fitted to simulated \
                  errors, with one standard error. Dashed: $\\kappa(H)$."
            .to_string(),
        x: Axis::from_zero("scale σ of the tokens (standard deviation of a coordinate)"),
        y: Axis::from_zero("exponent κ of the prompt length"),
        series,
    })
}
