//! The answer as a document: a table of limits, a figure of errors.

use super::answer::{Quantity, Row};
use crate::drawing::Drawing;
use crate::tabulating::{Tabulation, distinct};
use esscher_report::{Axis, Block, Section};

pub(super) fn section(rows: &[Row]) -> Section {
    let names = distinct(rows.iter().map(|row| row.mechanism.as_str()));
    let of = |name: &str, quantity: Quantity| -> Vec<&Row> {
        rows.iter().filter(|row| row.mechanism == name && row.quantity == quantity).collect()
    };
    let first = |name: &str, quantity| of(name, quantity).first().copied();
    let number = |name: &str, quantity| first(name, quantity).map(|row| row.number);
    let class = |name: &str| number(name, Quantity::Limit).map(|number| number.accuracy.name());
    let table = Tabulation::of(&names)
        .column("mechanism", |name| *name)
        .column("long prompts", |name| first(name, Quantity::Limit).map(|row| row.fate.clone()))
        .column("|limit|", |name| number(name, Quantity::Limit))
        .column("distance to softmax", |name| number(name, Quantity::Distance))
        .column("class", |name| class(name))
        .column("rate κ", |name| number(name, Quantity::Rate))
        .table(
            "limits",
            "Where outputs go: the limit of the output, of its mean where a stationary law remains, of the output per \
             token where it grows; its distance to softmax's limit; κ of the mean squared error c L^{−κ}. Gates that \
             tokens would set are constant: decays 0.9, step sizes 0.1, fractions one half, arguments of gates zero.",
        );
    let mut drawing = Drawing::default();
    for (colour, name) in names.iter().enumerate() {
        let errors = of(name, Quantity::Error);
        let points = errors.iter().map(|row| row.number.point(row.length.unwrap_or(0) as f64));
        drawing.line(*name, colour, points.collect());
    }
    let figure = drawing.figure(
        "errors",
        "Mean squared distance to the limit",
        "Simulated prompts, one standard error. Averages approach their limit like 1/L; what decays does \
         not settle.",
        (Axis::logarithmic("prompt length L"), Axis::logarithmic("mean squared distance")),
    );
    let blocks = vec![Block::Table(table), Block::Figure(figure)];
    Section::new("large-prompts", "The large-prompt question", blocks)
}
