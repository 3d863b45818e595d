//! The answer as a document: distances along single prompts beside what is expected.

use super::QUESTION;
use super::answer::{Paths, Row, paths};
use crate::tabulating::{rounded, take_constant};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

pub(super) fn sections(queries: usize, prompts: u64, rows: &[Row]) -> Vec<Section> {
    let paths = paths(rows);
    let mut blocks = vec![Block::Prose(format!(
        "The distance $|T[\\mu_L](z) - T[\\mu](z)|$, root mean square over {queries} queries, along {prompts} single prompts \
         per law: every point of a line is a longer prefix of the same tokens."
    ))];
    blocks.extend(figures(&paths).into_iter().map(Block::Figure));
    blocks.push(Block::Table(table(&paths)));
    let (id, title) = ("path".to_string(), QUESTION.title.to_string());
    vec![Section { id, title, verdict: None, blocks }]
}

/// The names of paths in legends: σ is said where it is not the same for all.
fn names(paths: &[Paths]) -> Vec<String> {
    let varies = paths.windows(2).any(|pair| pair[0].sigma != pair[1].sigma);
    let name = |known: &Paths| match varies {
        true => format!("{}, σ = {}", known.law, known.sigma),
        false => known.law.clone(),
    };
    paths.iter().map(name).collect()
}

/// Laws that one figure can show.
const MOST_LAWS: usize = 7;

/// The laws whose expected distance is exact, and those with an asymptote or nothing: the prompts of a law share its
/// colour, theory is dashed.
pub fn figures(paths: &[Paths]) -> Vec<Figure> {
    let all: Vec<(String, &Paths)> = names(paths).into_iter().zip(paths).collect();
    let (exact, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, known)| known.theory_is_exact);
    let mut figures = Vec::new();
    for (group, theory, explained, id) in [
        (
            exact,
            "expected",
            "the root of the expected squared distance, exact at every length",
            "path-expected",
        ),
        (others, "asymptote", "the asymptote of the $1/L$ law, for long prompts", "path-asymptote"),
    ] {
        for (part, laws) in group.chunks(MOST_LAWS).enumerate() {
            let more = if part > 0 { format!("-part-{}", part + 1) } else { String::new() };
            let (mut series, mut dashed) = (Vec::new(), Vec::new());
            let mut theory = theory.to_string();
            let point = |&(length, value): &(f64, f64)| Point::new(length, value);
            for (colour, (name, known)) in laws.iter().enumerate() {
                for prompt in known.prompts.iter().filter(|prompt| !prompt.is_empty()) {
                    let points = prompt.iter().map(point).collect();
                    series.push(Series { name: name.clone(), mark: Mark::Line, colour, points });
                }
                if !known.theory.is_empty() {
                    let (name, points) =
                        (std::mem::take(&mut theory), known.theory.iter().map(point).collect());
                    dashed.push(Series { name, mark: Mark::Dashed, colour, points });
                }
            }
            series.extend(dashed);
            figures.push(Figure {
                id: format!("{id}{more}"),
                title: "Distance from the infinite prompt along single prompts".to_string(),
                caption: format!("Each line is one prompt that grows. Dashed: {explained}."),
                x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
                y: Axis { label: "distance |T[μ_L] − T[μ]|".to_string(), scale: Scale::Logarithmic },
                series,
            });
        }
    }
    figures
}

/// First and last distances, a row per law: draws without errors of their own.
pub fn table(paths: &[Paths]) -> DataTable {
    let mut rows = Vec::new();
    for known in paths {
        let largest = |points: Vec<Option<&(f64, f64)>>| {
            points.into_iter().flatten().map(|point| point.1).max_by(f64::total_cmp)
        };
        let first = largest(known.prompts.iter().map(|prompt| prompt.first()).collect());
        let last = largest(known.prompts.iter().map(|prompt| prompt.last()).collect());
        rows.push(vec![
            Cell::Text(known.law.clone()),
            Cell::Number { value: known.sigma, error: None },
            rounded(known.limit),
            first.map_or(Cell::Missing, rounded),
            last.map_or(Cell::Missing, rounded),
            known.theory.last().map_or(Cell::Missing, |point| rounded(point.1)),
        ]);
    }
    let columns = ["law", "$\\sigma$", "$|T[\\mu]|$", "first", "last", "expected"];
    let mut columns = columns.map(str::to_string).to_vec();
    take_constant(&mut columns, &mut rows, "$\\sigma$");
    let prompts = paths.first().map_or(0, |known| known.prompts.len());
    DataTable {
        id: "path-numbers".to_string(),
        caption: format!(
            "Size of the limit, largest distance of {prompts} prompts from it at the first and the last length (sampled, \
             single draws), and the expected distance at the last."
        ),
        columns,
        rows,
    }
}
