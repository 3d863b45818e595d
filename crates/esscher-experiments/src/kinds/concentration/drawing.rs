//! Figures and tables of a concentration result.

use super::findings::{EXACT_ENGINE, Finding, SAMPLED_ENGINE, statistic};
use super::{KIND, QUANTITIES};
use crate::measured::figures;
use crate::tabulating::take_constant;
use esscher_lab::Failure;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

/// The sections of any result of the kind.
pub(super) fn sections(found: &[Finding]) -> Result<Vec<Section>, Failure> {
    let mut blocks = vec![Block::Prose(
        "Mean squared errors of a prompt of $L$ independent tokens against the infinite prompt, averaged over queries. \
         Lines are exact in the tokens, dots are simulated with one standard error. A slope $\\kappa$ means that the \
         error falls like $L^{-\\kappa}$ between two lengths; simulated lengths are prefixes of the same prompts, and \
         their joint covariance enters slopes and rates."
            .to_string(),
    )];
    let warnings = found.iter().filter(|one| one.statistic == statistic::ERROR && one.note.is_some()).count();
    if warnings > 0 {
        blocks.push(Block::Prose(format!(
            "**Heavy tails.** {warnings} simulated means rest on few trials; their standard errors are optimistic. The \
             column `note` of the result says which."
        )));
    }
    for (quantity, _) in QUANTITIES {
        let mine: Vec<&Finding> = found.iter().filter(|one| one.quantity == quantity).collect();
        if mine.is_empty() {
            continue;
        }
        for panel in panels(&mine) {
            blocks.push(Block::Figure(error_figure(&mine, quantity, &panel, &[])));
            if mine.iter().any(|one| one.statistic == statistic::SLOPE && panel.shows(one)) {
                blocks.push(Block::Figure(slope_figure(&mine, quantity, &panel)));
            }
        }
        blocks.push(Block::Table(rate_table(&mine, quantity)));
        blocks.push(Block::Table(error_table(&mine, quantity)));
    }
    let (id, title) = ("concentration".to_string(), KIND.title.to_string());
    Ok(vec![Section { id, title, verdict: None, blocks }])
}

/// The different tokens of some findings in their order.
pub(crate) fn tokens_of<'a>(found: &[&'a Finding]) -> Vec<&'a Finding> {
    let mut tokens: Vec<&Finding> = Vec::new();
    for &one in found {
        if !tokens.iter().any(|known| known.same_tokens(one)) {
            tokens.push(one);
        }
    }
    tokens
}

/// Colours that a reader can tell apart.
const MOST_COLOURS: usize = 8;

/// The tokens of one figure: one law at its scales, or several laws at one scale. Each has a colour of its own.
pub(crate) struct Panel<'a> {
    /// For the end of an id: lower case with hyphens.
    id: String,
    /// For the end of a title.
    title: String,
    tokens: Vec<(String, &'a Finding)>,
}

impl Panel<'_> {
    /// Whether it shows this law.
    pub(crate) fn is_of(&self, law: &str) -> bool {
        self.tokens.iter().any(|(_, tokens)| tokens.law == law)
    }

    fn shows(&self, one: &Finding) -> bool {
        self.tokens.iter().any(|(_, tokens)| tokens.same_tokens(one))
    }
}

/// A figure per law; one for all laws if there is one scale only.
pub(crate) fn panels<'a>(found: &[&'a Finding]) -> Vec<Panel<'a>> {
    let all = tokens_of(found);
    if let Some(first) = all.first()
        && all.iter().all(|tokens| tokens.sigma == first.sigma)
    {
        return laws_at(&all).into_iter().collect();
    }
    let mut laws: Vec<&str> = Vec::new();
    for tokens in &all {
        if !laws.contains(&tokens.law.as_str()) {
            laws.push(&tokens.law);
        }
    }
    let of = |law: &&str| {
        let mine = all.iter().filter(|tokens| tokens.law == *law).copied();
        mine.map(|tokens| (format!("σ = {}", tokens.sigma), tokens)).collect::<Vec<_>>()
    };
    let mut panels = Vec::new();
    for (number, law) in laws.iter().enumerate() {
        for (part, tokens) in of(law).chunks(MOST_COLOURS).enumerate() {
            // Numbers keep ids apart if names are spelt alike.
            let twin = laws[..number].iter().any(|other| slug(other) == slug(law));
            let twin = if twin { format!("-{}", number + 1) } else { String::new() };
            let more = if part > 0 { format!("-part-{}", part + 1) } else { String::new() };
            let id = format!("{}{twin}{more}", slug(law));
            panels.push(Panel { id, title: law.to_string(), tokens: tokens.to_vec() });
        }
    }
    panels
}

/// What a claim shows of many laws: each that is known exactly at all its scales, the others together at the largest.
pub(crate) fn main_panels<'a>(found: &[&'a Finding]) -> Vec<Panel<'a>> {
    let is_exact =
        |tokens: &Finding| found.iter().any(|one| one.same_tokens(tokens) && one.engine == EXACT_ENGINE);
    let mut panels = panels(found);
    let largest = tokens_of(found).iter().map(|tokens| tokens.sigma).fold(0.0, f64::max);
    let is_simulated = |one: &&Finding| one.sigma == largest && !is_exact(one);
    let simulated = tokens_of(&found.iter().copied().filter(is_simulated).collect::<Vec<_>>());
    panels.retain(|panel| panel.tokens.iter().any(|(_, tokens)| is_exact(tokens)));
    if panels.iter().all(|panel| simulated.iter().all(|tokens| !panel.shows(tokens))) {
        panels.extend(laws_at(&simulated));
    }
    panels
}

/// The laws of tokens that share a scale, in one panel.
fn laws_at<'a>(all: &[&'a Finding]) -> Option<Panel<'a>> {
    let (sigma, laws) = (all.first()?.sigma, all.iter().map(|tokens| tokens.law.as_str()));
    let title = format!("{}, $\\sigma = {sigma}$", laws.collect::<Vec<_>>().join(", "));
    let tokens = all.iter().map(|tokens| (tokens.law.clone(), *tokens)).collect();
    Some(Panel { id: "laws".to_string(), title, tokens })
}

/// A name in lower case with hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

fn long_name(quantity: &str) -> &'static str {
    match quantity {
        "score-gradient" => "error of the gradient in U",
        "value-gradient" => "error of the gradient in V",
        _ => "error of the output",
    }
}

fn number(one: &Finding) -> Cell {
    one.value.map_or(Cell::Missing, |value| Cell::Number { value, error: one.error })
}

/// A calibrated bound on the error of some tokens.
pub(crate) struct BoundCurve<'a> {
    pub(crate) tokens: &'a Finding,
    pub(crate) points: Vec<Point>,
}

/// Errors of the tokens of a panel against length, log-log, with their bounds dashed.
pub(crate) fn error_figure(
    found: &[&Finding],
    quantity: &str,
    panel: &Panel<'_>,
    bounds: &[BoundCurve<'_>],
) -> Figure {
    let of = |tokens: &Finding, engine: &str| -> Vec<Point> {
        found
            .iter()
            .filter(|one| one.same_tokens(tokens) && one.engine == engine)
            .filter(|one| one.statistic == statistic::ERROR && one.quantity == quantity)
            .filter_map(|one| {
                let (x, y) = (one.length as f64, one.value?);
                // A bar down to 0 has no place on a logarithmic axis.
                let low = |error: f64| (y - error).max(0.05 * y);
                Some(Point { x, y, interval: one.error.map(|error| (low(error), y + error)) })
            })
            .collect()
    };
    let mut drawing = Drawing::default();
    for (colour, (name, tokens)) in panel.tokens.iter().enumerate() {
        drawing.measured(name, colour, of(tokens, EXACT_ENGINE), of(tokens, SAMPLED_ENGINE));
        for bound in bounds.iter().filter(|bound| bound.tokens.same_tokens(tokens)) {
            drawing.dashed("bound", colour, bound.points.clone());
        }
    }
    let name = long_name(quantity);
    Figure {
        id: format!("{quantity}-error-{}", panel.id),
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
pub(crate) fn slope_figure(found: &[&Finding], quantity: &str, panel: &Panel<'_>) -> Figure {
    let slopes = |tokens: &Finding, engine: &str| -> Vec<&Finding> {
        found
            .iter()
            .filter(|one| one.same_tokens(tokens) && one.engine == engine)
            .filter(|one| one.statistic == statistic::SLOPE && one.quantity == quantity)
            .copied()
            .collect()
    };
    let points = |slopes: &[&Finding]| -> Vec<Point> {
        let point = |one: &&Finding| {
            let middle = ((one.from_length? as f64) * (one.length as f64)).sqrt();
            Some(Point::with_error(middle, one.value?, one.error?))
        };
        slopes.iter().filter_map(point).collect()
    };
    let mut drawing = Drawing::default();
    for (colour, (name, tokens)) in panel.tokens.iter().enumerate() {
        let exact = slopes(tokens, EXACT_ENGINE);
        drawing.measured(name, colour, points(&exact), points(&slopes(tokens, SAMPLED_ENGINE)));
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
        id: format!("{quantity}-slope-{}", panel.id),
        title: format!("Local slope of the {}: {}", long_name(quantity), panel.title),
        caption,
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "local slope κ".to_string(), scale: Scale::Linear },
        series: drawing.series(),
    }
}

/// The fitted rates.
fn rate_table(found: &[&Finding], quantity: &str) -> DataTable {
    let mut rows = Vec::new();
    for one in found.iter().filter(|one| one.statistic == statistic::RATE && one.quantity == quantity) {
        let plain =
            |value: Option<f64>| value.map_or(Cell::Missing, |value| Cell::Number { value, error: None });
        let interval = one.interval.map(|(lower, upper)| format!("{lower:.3} to {upper:.3}"));
        let lengths = one.from_length.map(|from| [from, one.length].map(whole).join(" to "));
        rows.push(vec![
            Cell::Text(one.law.clone()),
            plain(Some(one.sigma)),
            lengths.map_or(Cell::Missing, Cell::Text),
            number(one),
            interval.map_or(Cell::Missing, Cell::Text),
            plain(one.theory),
            Cell::Text(one.accuracy.clone()),
            one.note.clone().map_or(Cell::Missing, Cell::Text),
        ]);
    }
    let columns = ["law", "$\\sigma$", "lengths", "$\\kappa$", "interval", "$\\kappa(H)$", "class", "note"];
    let caption =
        format!("Fitted rates $\\kappa$ of the {}, with standard errors and intervals.", long_name(quantity));
    shortened(format!("{quantity}-rate"), caption, &columns, rows)
}

fn whole(length: u64) -> String {
    if length < 10_000 { length.to_string() } else { figures(length as f64) }
}

/// The errors at all lengths.
fn error_table(found: &[&Finding], quantity: &str) -> DataTable {
    let rows = found
        .iter()
        .filter(|one| one.statistic == statistic::ERROR && one.quantity == quantity)
        .map(|one| {
            vec![
                Cell::Text(one.law.clone()),
                Cell::Number { value: one.sigma, error: None },
                Cell::Integer(one.length as i64),
                number(one),
                Cell::Text(one.accuracy.clone()),
                one.note.clone().map_or(Cell::Missing, Cell::Text),
            ]
        })
        .collect();
    let caption = format!("Mean squared {} at every length.", long_name(quantity));
    let columns = ["law", "$\\sigma$", "$L$", "error", "class", "note"];
    shortened(format!("{quantity}-errors"), caption, &columns, rows)
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
