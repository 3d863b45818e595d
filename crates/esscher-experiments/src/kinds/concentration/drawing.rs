//! Figures and tables of a concentration result.

use super::findings::{EXACT_ENGINE, Finding, statistic};
use super::{KIND, QUANTITIES};
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
        blocks.push(Block::Figure(error_figure(&mine, quantity, Vec::new())));
        blocks.push(Block::Figure(slope_figure(&mine, quantity)));
        blocks.push(Block::Table(rate_table(&mine, quantity)));
        blocks.push(Block::Table(error_table(&mine, quantity)));
    }
    let (id, title) = ("concentration".to_string(), KIND.title.to_string());
    Ok(vec![Section { id, title, verdict: None, blocks }])
}

/// The different tokens of some findings in their order: one colour each.
pub(crate) fn tokens_of<'a>(found: &[&'a Finding]) -> Vec<&'a Finding> {
    let mut tokens: Vec<&Finding> = Vec::new();
    for &one in found {
        if !tokens.iter().any(|known| known.same_tokens(one)) {
            tokens.push(one);
        }
    }
    tokens
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

/// Errors against length, log-log; `extra` is drawn after them.
pub(crate) fn error_figure(found: &[&Finding], quantity: &str, extra: Vec<Series>) -> Figure {
    let mut series = Vec::new();
    for (colour, tokens) in tokens_of(found).into_iter().enumerate() {
        for engine in engines(found, tokens) {
            let is_exact = engine == EXACT_ENGINE;
            let points: Vec<Point> = found
                .iter()
                .filter(|one| one.same_tokens(tokens) && one.engine == engine)
                .filter(|one| one.statistic == statistic::ERROR && one.quantity == quantity)
                .filter_map(|one| {
                    let (x, y) = (one.length as f64, one.value?);
                    // A bar down to 0 has no place on a logarithmic axis.
                    let low = |error: f64| (y - error).max(0.05 * y);
                    Some(Point { x, y, interval: one.error.map(|error| (low(error), y + error)) })
                })
                .collect();
            let (name, mark) = if is_exact {
                (tokens.tokens(), Mark::Line)
            } else {
                (format!("{}, simulated", tokens.tokens()), Mark::Dots)
            };
            series.push(Series { name, mark, colour, points });
        }
    }
    series.extend(extra);
    Figure {
        id: format!("concentration-{quantity}-error"),
        title: format!("Mean squared {}", long_name(quantity)),
        caption: "Lines: exact in the tokens, with their error. Dots: simulated, one standard error."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: format!("mean squared {}", long_name(quantity)), scale: Scale::Logarithmic },
        series,
    }
}

fn engines<'a>(found: &[&'a Finding], tokens: &Finding) -> Vec<&'a str> {
    let mut engines: Vec<&str> = Vec::new();
    for one in found.iter().filter(|one| one.same_tokens(tokens)) {
        if !engines.contains(&one.engine.as_str()) {
            engines.push(&one.engine);
        }
    }
    engines
}

/// Slopes against length, with κ(H) dashed where theory gives it.
pub(crate) fn slope_figure(found: &[&Finding], quantity: &str) -> Figure {
    let mut series = Vec::new();
    for (colour, tokens) in tokens_of(found).into_iter().enumerate() {
        let slopes = |engine: &str| {
            found
                .iter()
                .filter(|one| one.same_tokens(tokens) && one.engine == engine)
                .filter(|one| one.statistic == statistic::SLOPE && one.quantity == quantity)
                .copied()
                .collect::<Vec<&Finding>>()
        };
        for engine in engines(found, tokens) {
            let mine = slopes(engine);
            let points = mine.iter().filter_map(|one| {
                let middle = ((one.from_length? as f64) * (one.length as f64)).sqrt();
                Some(Point::with_error(middle, one.value?, one.error?))
            });
            let (name, mark) = if engine == EXACT_ENGINE {
                (tokens.tokens(), Mark::Line)
            } else {
                (format!("{}, simulated", tokens.tokens()), Mark::Dots)
            };
            series.push(Series { name, mark, colour, points: points.collect() });
            let ends = mine.first().and_then(|one| one.from_length).zip(mine.last().map(|one| one.length));
            if engine == EXACT_ENGINE
                && let Some((from, to)) = ends
                && let Some(theory) = mine.last().and_then(|one| one.theory)
            {
                series.push(Series {
                    name: format!("{}: κ(H)", tokens.tokens()),
                    mark: Mark::Dashed,
                    colour,
                    points: vec![Point::new(from as f64, theory), Point::new(to as f64, theory)],
                });
            }
        }
    }
    Figure {
        id: format!("concentration-{quantity}-slope"),
        title: format!("Local slope of the {}", long_name(quantity)),
        caption: "The exponent $\\kappa$ between neighbouring lengths, with one standard error. Dashed: the limit \
                  $\\kappa(H)$ of normal tokens and queries, a heuristic that is approached as slowly as $1/\\ln L$."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "local slope κ".to_string(), scale: Scale::Linear },
        series,
    }
}

/// The fitted rates.
pub(crate) fn rate_table(found: &[&Finding], quantity: &str) -> DataTable {
    let mut rows = Vec::new();
    for one in found.iter().filter(|one| one.statistic == statistic::RATE && one.quantity == quantity) {
        let plain =
            |value: Option<f64>| value.map_or(Cell::Missing, |value| Cell::Number { value, error: None });
        rows.push(vec![
            Cell::Text(one.law.clone()),
            plain(Some(one.sigma)),
            plain(Some(one.operator_norm)),
            Cell::Text(one.accuracy.clone()),
            one.from_length.map_or(Cell::Missing, |length| Cell::Integer(length as i64)),
            Cell::Integer(one.length as i64),
            number(one),
            plain(one.interval.map(|interval| interval.0)),
            plain(one.interval.map(|interval| interval.1)),
            plain(one.theory),
            one.note.clone().map_or(Cell::Missing, Cell::Text),
        ]);
    }
    let columns = [
        "law",
        "$\\sigma$",
        "$H$",
        "class",
        "from $L$",
        "to $L$",
        "rate $\\kappa$",
        "lower",
        "upper",
        "$\\kappa(H)$",
        "note",
    ];
    DataTable {
        id: format!("concentration-{quantity}-rate"),
        caption: format!("Fitted rates of the {}, with standard errors and intervals.", long_name(quantity)),
        columns: columns.map(str::to_string).to_vec(),
        rows,
    }
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
    DataTable {
        id: format!("concentration-{quantity}-errors"),
        caption: format!("Mean squared {} at every length.", long_name(quantity)),
        columns: ["law", "$\\sigma$", "$L$", "error", "class", "note"].map(str::to_string).to_vec(),
        rows,
    }
}
