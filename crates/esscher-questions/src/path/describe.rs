//! The answer as a document: distances along single prompts beside what is expected.

use super::answer::{Paths, Row, paths};
use super::{Ask, QUESTION};
use crate::drawing::Drawing;
use crate::tabulating::{Tabulation, rounded};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Point, Section};

pub(super) fn sections(ask: &Ask, rows: &[Row]) -> Vec<Section> {
    let paths = paths(rows);
    let mut blocks = vec![Block::Prose(format!(
        "The distance $|T[\\mu_L](z) - T[\\mu](z)|$, root mean square over {} queries, along {} single \
         prompts per law: every point of a line is a longer prefix of the same tokens.",
        ask.queries.len(),
        ask.prompts
    ))];
    blocks.extend(figures(&paths).into_iter().map(Block::Figure));
    blocks.push(Block::Table(table(&paths)));
    vec![Section::new("path", QUESTION.title, blocks)]
}

/// Laws that one figure can show.
const MOST_LAWS: usize = 7;

/// The laws whose expected distance is exact, and those with an asymptote or nothing: the prompts of a law share its
/// colour, theory is dashed.
pub fn figures(paths: &[Paths]) -> Vec<Figure> {
    let (exact, others): (Vec<&Paths>, Vec<&Paths>) = paths.iter().partition(|known| known.theory_is_exact);
    let explained = "the root of the expected squared distance, exact at every length";
    let mut figures = figures_of(paths, &exact, "expected", explained);
    figures.extend(figures_of(
        paths,
        &others,
        "asymptote",
        "the asymptote of the $1/L$ law, for long prompts",
    ));
    figures
}

fn figures_of(paths: &[Paths], group: &[&Paths], theory: &str, explained: &str) -> Vec<Figure> {
    let varies = paths.windows(2).any(|pair| pair[0].sigma != pair[1].sigma);
    let points =
        |curve: &[(f64, f64)]| curve.iter().map(|&(length, value)| Point::new(length, value)).collect();
    let figure = |(part, laws): (usize, &[&Paths])| {
        let mut drawing = Drawing::default();
        for (colour, known) in laws.iter().enumerate() {
            // σ is said where it is not the same for all.
            let sigma = if varies { format!(", σ = {}", known.sigma) } else { String::new() };
            for prompt in &known.prompts {
                drawing.line(format!("{}{sigma}", known.law), colour, points(prompt));
            }
            drawing.dashed(theory, colour, points(&known.theory));
        }
        let more = if part > 0 { format!("-part-{}", part + 1) } else { String::new() };
        drawing.figure(
            format!("path-{theory}{more}"),
            "Distance from the infinite prompt along single prompts",
            format!("Each line is one prompt that grows. Dashed: {explained}."),
            (Axis::logarithmic("prompt length L"), Axis::logarithmic("distance |T[μ_L] − T[μ]|")),
        )
    };
    group.chunks(MOST_LAWS).enumerate().map(figure).collect()
}

/// First and last distances, a row per law: draws without errors of their own.
pub fn table(paths: &[Paths]) -> DataTable {
    let prompts = paths.first().map_or(0, |known| known.prompts.len());
    Tabulation::of(paths)
        .column("law", |known| known.law.clone())
        .column("$\\sigma$", |known| known.sigma)
        .column("$|T[\\mu]|$", |known| rounded(known.limit))
        .column("first", |known| largest(known.prompts.iter().filter_map(|prompt| prompt.first())))
        .column("last", |known| largest(known.prompts.iter().filter_map(|prompt| prompt.last())))
        .column("expected", |known| known.theory.last().map(|point| rounded(point.1)))
        .constant("$\\sigma$", "$\\sigma$")
        .table(
            "path-numbers",
            format!(
                "Size of the limit, largest distance of {prompts} prompts from it at the first and the last length \
                 (sampled, single draws), and the expected distance at the last."
            ),
        )
}

fn largest<'a>(ends: impl Iterator<Item = &'a (f64, f64)>) -> Option<Cell> {
    ends.map(|point| point.1).max_by(f64::total_cmp).map(rounded)
}
