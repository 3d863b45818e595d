//! The answer as a document: errors and slopes against the length, fitted rates, all errors.

use super::QUESTION;
use super::answer::{Engine, Row, Statistic, rows_of, select};
use super::panels::{Panel, panels};
use crate::measured::figures;
use crate::tabulating::take_constant;
use esscher_core::Quantity;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

/// The sections of any result of the kind.
pub(super) fn sections(found: &[Row]) -> Vec<Section> {
    let mut blocks = vec![Block::Prose(
        "Mean squared errors of a prompt of $L$ independent tokens against the infinite prompt, averaged over queries. \
         Lines are exact in the tokens, dots are simulated with one standard error. A slope $\\kappa$ means that the \
         error falls like $L^{-\\kappa}$ between two lengths; simulated lengths are prefixes of the same prompts, and \
         their joint covariance enters slopes and rates."
            .to_string(),
    )];
    let warnings = found.iter().filter(|one| one.statistic == Statistic::Error && one.note.is_some()).count();
    if warnings > 0 {
        blocks.push(Block::Prose(format!(
            "**Heavy tails.** {warnings} simulated means rest on few trials; their standard errors are optimistic. The \
             column `note` of the result says which."
        )));
    }
    for quantity in Quantity::ALL {
        let mine = rows_of(found, quantity);
        if mine.is_empty() {
            continue;
        }
        for panel in panels(&mine) {
            blocks.push(Block::Figure(error_figure(&mine, quantity, &panel, &[])));
            if mine.iter().any(|one| one.statistic == Statistic::Slope && panel.shows(one)) {
                blocks.push(Block::Figure(slope_figure(&mine, quantity, &panel)));
            }
        }
        blocks.push(Block::Table(rate_table(&mine, quantity)));
        blocks.push(Block::Table(error_table(&mine, quantity)));
    }
    let (id, title) = ("concentration".to_string(), QUESTION.title.to_string());
    vec![Section { id, title, verdict: None, blocks }]
}

fn long_name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Output => "error of the output",
        Quantity::ScoreGradient => "error of the gradient in U",
        Quantity::ValueGradient => "error of the gradient in V",
    }
}

fn number(one: &Row) -> Cell {
    one.value.map_or(Cell::Missing, |value| Cell::Number { value, error: one.error })
}

/// A calibrated bound on the error of some tokens.
pub struct BoundCurve<'a> {
    /// A row of these tokens.
    pub tokens: &'a Row,
    /// The bound at every length.
    pub points: Vec<Point>,
}

/// Errors of the tokens of a panel against length, log-log, with their bounds dashed.
pub fn error_figure(
    found: &[&Row],
    quantity: Quantity,
    panel: &Panel<'_>,
    bounds: &[BoundCurve<'_>],
) -> Figure {
    let of = |tokens: &Row, engine| -> Vec<Point> {
        let point = |one: &Row| {
            let (x, y) = (one.length as f64, one.value?);
            // A bar down to 0 has no place on a logarithmic axis.
            let low = |error: f64| (y - error).max(0.05 * y);
            Some(Point { x, y, interval: one.error.map(|error| (low(error), y + error)) })
        };
        select(found, tokens, engine, Statistic::Error).into_iter().filter_map(point).collect()
    };
    let mut drawing = Drawing::default();
    for (colour, (name, tokens)) in panel.tokens.iter().enumerate() {
        drawing.measured(name, colour, of(tokens, Engine::Exact), of(tokens, Engine::Sampled));
        for bound in bounds.iter().filter(|bound| bound.tokens.same_tokens(tokens)) {
            drawing.dashed("bound", colour, bound.points.clone());
        }
    }
    let name = long_name(quantity);
    Figure {
        id: format!("{}-error-{}", quantity.name(), panel.id),
        title: format!("Mean squared {name}: {}", panel.title),
        caption: drawing.caption(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: format!("mean squared {name}"), scale: Scale::Logarithmic },
        series: drawing.series(),
    }
}

/// Series with one entry in the legend for each colour, and a last one for all dashed lines.
#[derive(Default)]
struct Drawing {
    measured: Vec<Series>,
    dashed: Vec<Series>,
}

impl Drawing {
    /// Exact points as a line, simulated ones as dots of the same colour.
    fn measured(&mut self, name: &str, colour: usize, exact: Vec<Point>, simulated: Vec<Point>) {
        let mut name = name.to_string();
        for (mark, points) in [(Mark::Line, exact), (Mark::Dots, simulated)] {
            if points.is_empty() {
                continue;
            }
            self.measured.push(Series { name: std::mem::take(&mut name), mark, colour, points });
        }
    }

    fn dashed(&mut self, name: &str, colour: usize, points: Vec<Point>) {
        let name = if self.dashed.is_empty() { name.to_string() } else { String::new() };
        self.dashed.push(Series { name, mark: Mark::Dashed, colour, points });
    }

    fn caption(&self) -> String {
        let has = |mark: Mark| self.measured.iter().any(|series| series.mark == mark);
        match (has(Mark::Line), has(Mark::Dots)) {
            (true, true) => "Lines: exact in the tokens. Dots: simulated, one standard error.",
            (true, false) => {
                "Exact in the tokens; errors are below the width of the lines unless a band shows them."
            }
            _ => "Simulated; bars are one standard error.",
        }
        .to_string()
    }

    fn series(self) -> Vec<Series> {
        self.measured.into_iter().chain(self.dashed).collect()
    }
}

/// Slopes of the tokens of a panel against length, with κ(H) dashed where theory gives it.
pub fn slope_figure(found: &[&Row], quantity: Quantity, panel: &Panel<'_>) -> Figure {
    let slopes = |tokens: &Row, engine| select(found, tokens, engine, Statistic::Slope);
    let points = |slopes: &[&Row]| -> Vec<Point> {
        let point = |one: &&Row| {
            let middle = ((one.from_length? as f64) * (one.length as f64)).sqrt();
            Some(Point::with_error(middle, one.value?, one.error?))
        };
        slopes.iter().filter_map(point).collect()
    };
    let mut drawing = Drawing::default();
    for (colour, (name, tokens)) in panel.tokens.iter().enumerate() {
        let exact = slopes(tokens, Engine::Exact);
        drawing.measured(name, colour, points(&exact), points(&slopes(tokens, Engine::Sampled)));
        let ends = exact.first().and_then(|one| one.from_length).zip(exact.last().map(|one| one.length));
        if let Some((from, to)) = ends
            && let Some(theory) = exact.last().and_then(|one| one.theory)
        {
            let ends = [from, to].map(|length| Point::new(length as f64, theory));
            drawing.dashed("limit κ(H)", colour, ends.to_vec());
        }
    }
    let mut caption = format!("The exponent $\\kappa$ between neighbouring lengths. {}", drawing.caption());
    if !drawing.dashed.is_empty() {
        caption.push_str(
            " Dashed: the limit $\\kappa(H)$ of normal tokens and queries, a heuristic that is approached as slowly as \
             $1/\\ln L$.",
        );
    }
    Figure {
        id: format!("{}-slope-{}", quantity.name(), panel.id),
        title: format!("Local slope of the {}: {}", long_name(quantity), panel.title),
        caption,
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "local slope κ".to_string(), scale: Scale::Linear },
        series: drawing.series(),
    }
}

/// The fitted rates.
fn rate_table(found: &[&Row], quantity: Quantity) -> DataTable {
    let mut rows = Vec::new();
    for one in found.iter().filter(|one| one.statistic == Statistic::Rate) {
        let plain =
            |value: Option<f64>| value.map_or(Cell::Missing, |value| Cell::Number { value, error: None });
        let interval = one.lower.zip(one.upper).map(|(lower, upper)| format!("{lower:.3} to {upper:.3}"));
        let lengths = one.from_length.map(|from| [from, one.length].map(whole).join(" to "));
        rows.push(vec![
            Cell::Text(one.law.clone()),
            plain(Some(one.sigma)),
            lengths.map_or(Cell::Missing, Cell::Text),
            number(one),
            interval.map_or(Cell::Missing, Cell::Text),
            plain(one.theory),
            Cell::Text(one.accuracy.name().to_string()),
            one.note.clone().map_or(Cell::Missing, Cell::Text),
        ]);
    }
    let columns = ["law", "$\\sigma$", "lengths", "$\\kappa$", "interval", "$\\kappa(H)$", "class", "note"];
    let caption =
        format!("Fitted rates $\\kappa$ of the {}, with standard errors and intervals.", long_name(quantity));
    shortened(format!("{}-rate", quantity.name()), caption, &columns, rows)
}

fn whole(length: u64) -> String {
    if length < 10_000 { length.to_string() } else { figures(length as f64) }
}

/// The errors at all lengths.
fn error_table(found: &[&Row], quantity: Quantity) -> DataTable {
    let rows = found
        .iter()
        .filter(|one| one.statistic == Statistic::Error)
        .map(|one| {
            vec![
                Cell::Text(one.law.clone()),
                Cell::Number { value: one.sigma, error: None },
                Cell::Integer(one.length as i64),
                number(one),
                Cell::Text(one.accuracy.name().to_string()),
                one.note.clone().map_or(Cell::Missing, Cell::Text),
            ]
        })
        .collect();
    let caption = format!("Mean squared {} at every length.", long_name(quantity));
    let columns = ["law", "$\\sigma$", "$L$", "error", "class", "note"];
    shortened(format!("{}-errors", quantity.name()), caption, &columns, rows)
}

/// A table whose constant columns are said in the caption, those without an entry not at all.
fn shortened(id: String, mut caption: String, columns: &[&str], mut rows: Vec<Vec<Cell>>) -> DataTable {
    let mut columns: Vec<String> = columns.iter().map(|column| column.to_string()).collect();
    for (heading, word) in [
        ("class", "Class"),
        ("note", "Everywhere"),
        ("$\\sigma$", "$\\sigma$"),
        ("$\\kappa(H)$", "$\\kappa(H)$"),
    ] {
        match take_constant(&mut columns, &mut rows, heading) {
            Some(Cell::Text(text)) => caption.push_str(&format!(" {word}: {text}.")),
            Some(Cell::Number { value, .. }) => {
                caption.push_str(&format!(" {word} is {}.", (1e3 * value).round() / 1e3))
            }
            _ => {}
        }
    }
    DataTable { id, caption, columns, rows }
}
