//! The answer as a document: errors and slopes against the length, fitted rates, all errors.

use super::answer::{Engine, Row, Statistic, rows_of, select, tokens_of};
use super::panels::{Panel, panels};
use crate::drawing::Drawing;
use crate::measured::figures;
use crate::tabulating::Tabulation;
use esscher_core::Quantity;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Panels, Point, Section, literal};

/// The sections of any result of the kind.
pub(super) fn sections(found: &[Row]) -> Vec<Section> {
    let mut method = Some(Block::Prose(
        "Mean squared errors of a prompt of $L$ independent tokens against the infinite prompt, averaged over queries. \
         Lines are exact in the tokens, dots are simulated with one standard error. A slope $\\kappa$ means that the \
         error falls like $L^{-\\kappa}$ between two lengths; simulated lengths are prefixes of the same prompts, and \
         their joint covariance enters slopes and rates."
            .to_string(),
    ));
    let mut sections = Vec::new();
    for quantity in Quantity::ALL {
        let mine = rows_of(found, quantity);
        if mine.is_empty() {
            continue;
        }
        let name = long_name(quantity);
        let mut blocks = vec![Block::Lead(last_slopes(&mine, quantity))];
        blocks.extend(method.take());
        let mut folded = Vec::new();
        let panels = panels(&mine);
        for panel in &panels {
            let figure = error_figure(&mine, quantity, panel, &[]);
            let whose = if panels.len() > 1 { format!(": {}", panel.title) } else { String::new() };
            let title = format!("How the {name} falls with the length of the prompt{whose}");
            blocks.push(Block::Figure(Figure { title, ..figure }));
            if mine.iter().any(|one| one.statistic == Statistic::Slope && panel.shows(one)) {
                folded.push(Block::Figure(slope_figure(&mine, quantity, panel)));
            }
        }
        let warnings =
            mine.iter().filter(|one| one.statistic == Statistic::Error && one.note.is_some()).count();
        if warnings > 0 {
            blocks.push(Block::Prose(format!(
                "**Heavy tails.** {warnings} simulated means rest on few trials; their standard errors are optimistic. The \
                 column `note` of the result says which."
            )));
        }
        folded.push(Block::Table(rate_table(&mine, quantity)));
        folded.push(Block::Table(error_table(&mine, quantity)));
        let title = format!("Slopes, fitted rates and all numbers of the {name}");
        blocks.push(Block::Folded { id: String::new(), title, blocks: folded });
        sections.push(Section::new(quantity.name(), format!("The {name}"), blocks));
    }
    sections
}

/// How steeply the errors of all tokens fall at their longest lengths.
fn last_slopes(found: &[&Row], quantity: Quantity) -> String {
    let slope = |tokens: &&Row| {
        let known = |engine| {
            select(found, tokens, engine, Statistic::Slope).into_iter().rfind(|one| one.value.is_some())
        };
        let one = known(Engine::Exact).or_else(|| known(Engine::Sampled))?;
        let doubt = match one.engine {
            Engine::Sampled => format!(" ± {:.2}", one.error?),
            Engine::Exact => String::new(),
        };
        let lengths = [one.from_length?, one.length].map(whole).join(" to ");
        Some(format!("{} $\\kappa$ = {:.2}{doubt} from {lengths}", literal(named(one, found)), one.value?))
    };
    let told: Vec<String> = tokens_of(found).iter().filter_map(slope).collect();
    let name = long_name(quantity);
    match told.is_empty() {
        true => format!("The {name}: there are too few lengths to say how steeply it falls."),
        false => format!(
            "At the longest lengths the mean squared {name} falls like $L^{{-\\kappa}}$: {}.",
            told.join("; ")
        ),
    }
}

/// The law, with its scale where there are several.
fn named(one: &Row, found: &[&Row]) -> String {
    if found.iter().all(|other| other.sigma == one.sigma) { one.law.clone() } else { one.tokens() }
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
        draw(&mut drawing, name, colour, of(tokens, Engine::Exact), of(tokens, Engine::Sampled));
        for bound in bounds.iter().filter(|bound| bound.tokens.same_tokens(tokens)) {
            drawing.dashed("bound", colour, bound.points.clone());
        }
    }
    let (name, told) = (long_name(quantity), caption(&drawing));
    drawing.figure(
        format!("{}-error-{}", quantity.name(), panel.id),
        format!("Mean squared {name}: {}", panel.title),
        told,
        (Axis::logarithmic("prompt length L"), Axis::logarithmic(format!("mean squared {name}"))),
    )
}

/// The same, a panel for each law and a colour for each scale, for the scales that are kept.
pub fn error_panels(
    found: &[&Row],
    quantity: Quantity,
    bounds: &[BoundCurve<'_>],
    keep: impl Fn(f64) -> bool,
) -> Panels {
    let kept: Vec<&Row> = found.iter().copied().filter(|one| keep(one.sigma)).collect();
    let panel = |panel: Panel<'_>| {
        let figure = error_figure(&kept, quantity, &panel, bounds);
        esscher_report::Panel { title: panel.title, series: figure.series }
    };
    let name = long_name(quantity);
    Panels {
        id: format!("{}-error", quantity.name()),
        title: format!("Mean squared {name}, law by law"),
        caption: "Lines: exact in the tokens. Dots: simulated, one standard error.".to_string(),
        x: Axis::logarithmic("prompt length L (tokens)"),
        y: Axis::logarithmic(format!("mean squared {name}")),
        panels: panels(&kept).into_iter().map(panel).collect(),
    }
}

/// Exact points as a line, simulated ones as dots of the same colour; one entry of the legend.
fn draw(drawing: &mut Drawing, name: &str, colour: usize, exact: Vec<Point>, simulated: Vec<Point>) {
    let again = if exact.is_empty() { name } else { "" };
    drawing.line(name, colour, exact);
    drawing.dots(again, colour, simulated);
}

fn caption(drawing: &Drawing) -> &'static str {
    match (drawing.has(Mark::Line), drawing.has(Mark::Dots)) {
        (true, true) => "Lines: exact in the tokens. Dots: simulated, one standard error.",
        (true, false) => {
            "Exact in the tokens; errors are below the width of the lines unless a band shows them."
        }
        _ => "Simulated; bars are one standard error.",
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
        let simulated = slopes(tokens, Engine::Sampled);
        draw(&mut drawing, name, colour, points(&exact), points(&simulated));
        let ends = exact.first().and_then(|one| one.from_length).zip(exact.last().map(|one| one.length));
        if let Some((from, to)) = ends
            && let Some(theory) = exact.last().and_then(|one| one.theory)
        {
            let ends = [from, to].map(|length| Point::new(length as f64, theory));
            drawing.dashed("limit κ(H)", colour, ends.to_vec());
        }
    }
    let mut told = format!("The exponent $\\kappa$ between neighbouring lengths. {}", caption(&drawing));
    if drawing.has(Mark::Dashed) {
        told.push_str(
            " Dashed: the limit $\\kappa(H)$ of normal tokens and queries, a heuristic that is approached as slowly as \
             $1/\\ln L$.",
        );
    }
    drawing.figure(
        format!("{}-slope-{}", quantity.name(), panel.id),
        format!("Local slope of the {}: {}", long_name(quantity), panel.title),
        told,
        (Axis::logarithmic("prompt length L"), Axis::linear("local slope κ")),
    )
}

/// The fitted rates.
fn rate_table(found: &[&Row], quantity: Quantity) -> DataTable {
    let interval = |one: &Row| Some(format!("{:.3} to {:.3}", one.lower?, one.upper?));
    let lines = of(found, Statistic::Rate);
    let table = Tabulation::of(&lines)
        .column("law", |one| one.law.as_str())
        .column("$\\sigma$", |one| one.sigma)
        .column("lengths", |one| one.from_length.map(|from| [from, one.length].map(whole).join(" to ")))
        .column("$\\kappa$", |one| number(one))
        .column("interval", |one| interval(one))
        .column("$\\kappa(H)$", |one| one.theory)
        .column("class", |one| one.accuracy.name())
        .column("note", |one| one.note.clone());
    let name = long_name(quantity);
    let caption = format!(
        "One power law through all lengths of the fit: its exponent $\\kappa$ for the {name}, with the standard error and the interval. \
         An interval that is wide, or that comes from the residuals, means that there is no one power law there: the slope still \
         changes with the length."
    );
    shortened(table)
        .constant("$\\kappa(H)$", "$\\kappa(H)$")
        .table(format!("{}-rate", quantity.name()), caption)
}

fn whole(length: u64) -> String {
    if length < 10_000 { length.to_string() } else { figures(length as f64) }
}

/// The errors at all lengths.
fn error_table(found: &[&Row], quantity: Quantity) -> DataTable {
    let lines = of(found, Statistic::Error);
    let table = Tabulation::of(&lines)
        .column("law", |one| one.law.as_str())
        .column("$\\sigma$", |one| one.sigma)
        .column("$L$", |one| one.length)
        .column("error", |one| number(one))
        .column("class", |one| one.accuracy.name())
        .column("note", |one| one.note.clone());
    let caption = format!("Mean squared {} at every length.", long_name(quantity));
    shortened(table).table(format!("{}-errors", quantity.name()), caption)
}

fn of<'a>(found: &[&'a Row], statistic: Statistic) -> Vec<&'a Row> {
    found.iter().copied().filter(|one| one.statistic == statistic).collect()
}

/// Class, note and scale are said in the caption where they are the same in every row.
fn shortened<'a>(table: Tabulation<'a, &'a Row>) -> Tabulation<'a, &'a Row> {
    table.constant("class", "Class").constant("note", "Everywhere").constant("$\\sigma$", "$\\sigma$")
}
