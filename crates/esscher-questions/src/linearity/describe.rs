//! The answer as a document: gain and distance from linear against the size of the query, and all numbers.

use super::QUESTION;
use super::answer::{Row, Statistic, laws, points_of};
use crate::drawing::Drawing;
use crate::tabulating::Tabulation;
use esscher_report::{Axis, Block, DataTable, Figure, Point, Section};

pub(super) fn sections(directions: usize, sizes: usize, rows: &[Row]) -> Vec<Section> {
    let blocks = vec![
        Block::Prose(format!(
            "Attention on the infinite prompt, $T(z) = V\\nabla\\Lambda(Uz)$, at {directions} directions of the query and \
             {sizes} sizes $|z|$. The gain compares it with the linear map $z \\mapsto Vm + V\\Gamma Uz$ of the tokens' mean and \
             covariance: 1 everywhere if attention is that map. The residual is what the best affine map of all leaves \
             unexplained over queries up to that size."
        )),
        Block::Figure(gain_figure(rows)),
        Block::Figure(deviation_figure(rows)),
        Block::Table(numbers(rows)),
    ];
    vec![Section::new("linearity", QUESTION.title, blocks)]
}

fn points(rows: &[Row], law: &str, statistic: Statistic) -> Vec<Point> {
    let found = points_of(rows, law, statistic);
    found.iter().map(|(radius, number)| Point::new(*radius, number.value)).collect()
}

/// The gain against the size of the query, with the linear map dashed.
pub fn gain_figure(rows: &[Row]) -> Figure {
    let (mut drawing, laws) = (Drawing::default(), laws(rows));
    for (colour, law) in laws.iter().enumerate() {
        drawing.line(*law, colour, points(rows, law, Statistic::Gain));
    }
    drawing.level("linear attention", laws.len(), 1.0);
    drawing.figure(
        "linearity-gain",
        "Output over the linear map",
        "The gain: the part of $T(z) - Vm$ along $V\\Gamma Uz$, relative to it, averaged over directions. Exact. $m$ and \
         $\\Gamma$ are the mean and the covariance of the tokens.",
        (Axis::logarithmic("size of the query |z|"), Axis::linear("gain: output over linear map")),
    )
}

/// The deviation against the size of the query, with the residual of the best affine map dashed.
pub fn deviation_figure(rows: &[Row]) -> Figure {
    let mut drawing = Drawing::default();
    for (colour, law) in laws(rows).into_iter().enumerate() {
        drawing.line(law, colour, points(rows, law, Statistic::Deviation));
        drawing.dashed("best affine map", colour, points(rows, law, Statistic::Residual));
    }
    drawing.figure(
        "linearity-deviation",
        "Distance from linear",
        "Lines: the largest distance of $T(z)$ from $Vm + V\\Gamma Uz$, relative to $|V\\Gamma Uz|$. Dashed, in the \
         colour of their law: what the best affine map leaves unexplained. Exact; what is near $10^{-15}$ \
         is rounding.",
        (Axis::logarithmic("size of the query |z|"), Axis::logarithmic("relative distance")),
    )
}

/// All numbers, a row per law and radius.
fn numbers(rows: &[Row]) -> DataTable {
    let lines: Vec<&[Row]> = rows.chunk_by(|a, b| a.law == b.law && a.radius == b.radius).collect();
    let number =
        |line: &[Row], statistic| line.iter().find(|row| row.statistic == statistic).and_then(Row::number);
    Tabulation::of(&lines)
        .column("law", |line| line[0].law.clone())
        .column("$|z|$", |line| line[0].radius)
        .column("gain", |line| number(line, Statistic::Gain))
        .column("deviation", |line| number(line, Statistic::Deviation))
        .column("residual", |line| number(line, Statistic::Residual))
        .table(
            "linearity-numbers",
            "Gain, largest relative deviation from the linear map, and what the best affine map leaves. Exact; errors \
             are bounds on rounding.",
        )
}
