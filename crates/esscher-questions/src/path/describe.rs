//! The answer as a document: distances along single prompts beside what is expected.

use super::answer::{Paths, Row, paths};
use super::{Ask, QUESTION};
use crate::measured::GREY;
use crate::tabulating::{Tabulation, rounded};
use esscher_report::{Axis, Block, Cell, DataTable, Mark, Panel, Panels, Point, Section, Series, literal};

pub(super) fn sections(ask: &Ask, rows: &[Row]) -> Vec<Section> {
    let paths = paths(rows);
    let mut blocks = vec![Block::Prose(format!(
        "The distance $|T[\\mu_L](z) - T[\\mu](z)|$, root mean square over {} queries, along {} single \
         prompts per law: every point of a line is a longer prefix of the same tokens.",
        ask.queries.len(),
        ask.prompts
    ))];
    blocks.push(Block::Panels(panels(&paths)));
    blocks.push(Block::Table(table(&paths)));
    vec![Section::new("path", QUESTION.title, blocks)]
}

/// A panel per law: one prompt among the others, with what is expected dashed.
pub fn panels(paths: &[Paths]) -> Panels {
    let varies = paths.windows(2).any(|pair| pair[0].sigma != pair[1].sigma);
    let points = |curve: &[(f64, f64)]| -> Vec<Point> {
        curve.iter().map(|&(length, value)| Point::new(length, value)).collect()
    };
    let line = |name: &str, mark, colour, points| Series { name: name.to_string(), mark, colour, points };
    let panel = |known: &Paths| {
        // σ is said where it is not the same for all.
        let sigma = if varies { format!(", σ = {}", known.sigma) } else { String::new() };
        let (first, others) = known.prompts.split_first().unzip();
        let others = others.into_iter().flatten();
        let mut series: Vec<Series> =
            others.map(|prompt| line("other prompts", Mark::Line, GREY, points(prompt))).collect();
        series.extend(first.map(|prompt| line("one prompt", Mark::Line, 0, points(prompt))));
        let (theory, colour) = if known.theory_is_exact {
            ("expected", 1)
        } else {
            ("expected of long prompts (∝ 1/√L)", 2)
        };
        series.push(line(theory, Mark::Dashed, colour, points(&known.theory)));
        series.retain(|series| !series.points.is_empty());
        Panel { title: format!("{}{sigma}", literal(&known.law)), series }
    };
    Panels {
        id: "path-distance".to_string(),
        title: "Distance from the infinite prompt along single prompts".to_string(),
        caption: "Each line is one prompt that grows token by token; what is simulated has no error of its own. Dashed: the root of \
                  the expected squared distance, exact at every length where it is known, else its asymptote for long prompts."
            .to_string(),
        x: Axis::logarithmic("prompt length L (tokens)"),
        y: Axis::logarithmic("distance |T[μ_L] − T[μ]|"),
        panels: paths.iter().map(panel).filter(|panel| !panel.series.is_empty()).collect(),
    }
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
        .constant("$\\sigma$", "The factor $\\sigma$ that multiplies all these laws")
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
