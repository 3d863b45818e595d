//! Claim: the exponent of L falls like 1/σ² for Gaussian tokens, and is 1 for bounded ones.

use super::evidence::short;
use crate::judging::Judging;
use crate::{Claim, Judgement};
use esscher_core::Quantity;
use esscher_core::prompt::rate_exponent;
use esscher_lab::{Failure, Table};
use esscher_questions::concentration::answer::{Engine, Row, Statistic, rows_of, select, tokens_of};
use esscher_questions::concentration::describe::{error_figure, slope_figure};
use esscher_questions::concentration::panels::main_panels;
use esscher_questions::measured::GREY;
use esscher_questions::tabulating::rounded;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Series};

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

/// A measured exponent of one law at one scale.
struct Exponent<'a> {
    /// Of an exact one, the slope at the shortest lengths.
    first: Option<&'a Row>,
    /// The slope at the longest lengths, or the fitted rate.
    row: &'a Row,
    value: f64,
    expected: f64,
}

impl<'a> Exponent<'a> {
    /// A local slope at the longest lengths.
    fn exact(first: &'a Row, row: &'a Row) -> Result<Self, Failure> {
        // The normal part of the mixture has the scale σ, and it alone decides the exponent.
        let expected = row.theory.map_or_else(|| rate_exponent(row.sigma), Ok)?;
        Ok(Exponent { first: Some(first), row, value: row.value.unwrap_or(0.0), expected })
    }

    /// A rate fitted to all lengths of a bounded law.
    fn fitted(row: &'a Row) -> Self {
        Exponent { first: None, row, value: row.value.unwrap_or(0.0), expected: 1.0 }
    }

    fn error(&self) -> f64 {
        self.row.error.unwrap_or(f64::INFINITY)
    }

    fn gap(&self) -> f64 {
        (self.value - self.expected).abs()
    }

    /// Whether it is certain enough to decide.
    fn decides(&self) -> bool {
        self.error() <= if self.first.is_some() { SLOPE_TOO_UNCERTAIN } else { TOO_UNCERTAIN }
    }

    fn judge(&self, before: &[Exponent<'_>], judging: &mut Judging) {
        let (name, told) = (self.row.tokens(), short(self.value));
        let Some(first) = self.first.map(|first| first.value.unwrap_or(0.0)) else {
            judging.require(self.gap() <= NEAR + STANDARD_ERRORS * self.error(), || {
                format!("the rate of {name} is {told} ± {}, not 1", short(self.error()))
            });
            return;
        };
        let near = if self.expected == 1.0 { NEAR_ONE } else { NEAR };
        judging.require(self.gap() <= near, || {
            let (length, theory) = (short(self.row.length as f64), short(self.expected));
            format!("the slope of {name} at $L$ = {length} is {told}, $\\kappa(H)$ is {theory}")
        });
        let first_gap = (first - self.expected).abs();
        judging.require(self.gap() <= PASSING || first_gap <= PASSING || self.gap() < first_gap, || {
            format!("the slope of {name} moves away from $\\kappa(H)$, from {} to {told}", short(first))
        });
        let (sigma, scaled) = (self.row.sigma, self.value * (self.row.sigma * self.row.sigma));
        judging.require(sigma < 1.0 || (0.5..=1.2).contains(&scaled), || {
            format!("the slope of {name} times $\\sigma^2$ is {}", short(scaled))
        });
        let is_smaller = |one: &&Exponent| {
            one.first.is_some() && one.row.law == self.row.law && one.row.sigma < self.row.sigma
        };
        let smaller = before.iter().rev().find(is_smaller);
        judging.require(smaller.is_none_or(|smaller| self.value < smaller.value), || {
            format!("the slope of {name} is {told}, not below that of the smaller scale")
        });
    }

    fn cells(&self) -> Vec<Cell> {
        let number = |row: &Row| row.value.map(|value| Cell::Number { value, error: row.error });
        let square = self.row.sigma * self.row.sigma;
        let scaled =
            Cell::Number { value: self.value * square, error: self.row.error.map(|error| error * square) };
        vec![
            Cell::Text(self.row.law.clone()),
            Cell::Number { value: self.row.sigma, error: None },
            Cell::Text(self.row.accuracy.name().to_string()),
            self.first.and_then(number).unwrap_or(Cell::Missing),
            number(self.row).unwrap_or(Cell::Missing),
            rounded(self.expected),
            if self.first.is_some() { scaled } else { Cell::Missing },
        ]
    }
}

fn judge(result: &Table) -> Result<Judgement, Failure> {
    let found: Vec<Row> = result.read()?;
    let mine = rows_of(&found, Quantity::Output);
    let mut judging = Judging::default();
    let (mut exponents, mut uncertain): (Vec<Exponent<'_>>, usize) = (Vec::new(), 0);
    for tokens in tokens_of(&mine) {
        let of = |engine, statistic| -> Vec<&Row> {
            select(&mine, tokens, engine, statistic).into_iter().filter(|row| row.value.is_some()).collect()
        };
        let slopes = of(Engine::Exact, Statistic::Slope);
        let ends = slopes.first().zip(slopes.last());
        let slope = ends.map(|(first, last)| Exponent::exact(first, last)).transpose()?;
        let rate = of(Engine::Sampled, Statistic::Rate).last().map(|rate| Exponent::fitted(rate));
        for exponent in slope.into_iter().chain(rate) {
            if exponent.decides() {
                exponent.judge(&exponents, &mut judging);
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
    let is_complete = !exact.is_empty() && !fitted.is_empty();
    judging.trust(is_complete, || {
        "the result has no exact slopes, or no simulated rate that is certain enough".to_string()
    });
    let farthest = |of: &[&Exponent]| short(of.iter().map(|one| one.gap()).fold(0.0, f64::max));
    let doubt = if uncertain > 0 {
        format!(" {uncertain} rates are too uncertain to decide.")
    } else {
        String::new()
    };
    let told = is_complete.then(|| {
        format!(
            "At the longest lengths the {} exact slopes, which must fall with the scale, are within {} of $\\kappa(H)$ \
             (tolerance 0.05). The {} fitted rates of bounded tokens (scales of a law share their prompts) are within {} of 1 \
             (tolerance 0.05 plus five standard errors).{doubt}",
            exact.len(),
            farthest(&exact),
            fitted.len(),
            farthest(&fitted)
        )
    });
    let figure = exponent_figure(&[exact, fitted].concat())?;
    Ok(judging.judgement(CLAIM.name, told.unwrap_or_default(), evidence(&mine, &exponents, figure)))
}

fn evidence(mine: &[&Row], exponents: &[Exponent<'_>], figure: Figure) -> Vec<Block> {
    let mut evidence = vec![Block::Figure(figure)];
    for panel in main_panels(mine) {
        let mut errors = error_figure(mine, Quantity::Output, &panel, &[]);
        if exponents.iter().any(|one| one.first.is_some() && panel.is_of(&one.row.law)) {
            evidence.push(Block::Figure(errors));
            evidence.push(Block::Figure(slope_figure(mine, Quantity::Output, &panel)));
        } else {
            let guides: Vec<Series> = errors.series.iter().filter_map(guide).collect();
            errors.series.extend(guides);
            errors.caption.push_str(" Dashed: the exponent 1, through the last dots.");
            evidence.push(Block::Figure(errors));
        }
    }
    let columns =
        ["law", "$\\sigma$", "class", "first $\\kappa$", "last $\\kappa$", "expected", "$\\sigma^2\\kappa$"];
    evidence.push(Block::Table(DataTable {
        id: "judged".to_string(),
        caption: "Normal tokens: local slopes $\\kappa$ at the shortest and the longest lengths against \
                  $\\kappa(H)$. Bounded tokens: the rate fitted to all lengths against 1."
            .to_string(),
        columns: columns.map(str::to_string).to_vec(),
        rows: exponents.iter().map(Exponent::cells).collect(),
    }));
    evidence
}

/// The line of slope −1 through the last point of a series.
fn guide(series: &Series) -> Option<Series> {
    let (first, last) = (series.points.first()?, series.points.last()?);
    let start = Point::new(first.x, last.y * last.x / first.x);
    let points = vec![start, Point::new(last.x, last.y)];
    Some(Series { name: "slope −1".to_string(), mark: Mark::Dashed, colour: GREY, points })
}

/// Exponents against σ, with κ(σ) and the exponent 1 dashed.
fn exponent_figure(exponents: &[&Exponent<'_>]) -> Result<Figure, Failure> {
    let mut series: Vec<Series> = Vec::new();
    for one in exponents {
        let (law, sigma) = (&one.row.law, one.row.sigma);
        let point = match one.first {
            Some(_) => Point::new(sigma, one.value),
            None => Point::with_error(sigma, one.value, one.error()),
        };
        match series.iter_mut().find(|known| known.name == *law) {
            Some(known) => known.points.push(point),
            None => {
                let (name, mark, colour) = (law.clone(), Mark::Dots, series.len());
                series.push(Series { name, mark, colour, points: vec![point] });
            }
        }
    }
    let sigmas = || exponents.iter().map(|one| one.row.sigma);
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
