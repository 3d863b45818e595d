//! The answer as a table and a figure of L(ε).

use super::answer::{Quantity, Row, beside};
use crate::drawing::Drawing;
use crate::measured::figures;
use crate::tabulating::{Tabulation, distinct};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Point, Section};

pub(super) fn sections(scales: &[f64], rows: &[Row]) -> Vec<Section> {
    let scales: Vec<String> = scales.iter().copied().map(figures).collect();
    let prose = format!(
        "The smallest $L$ at which gradient flow from $A = \\alpha I/\\sqrt d$, $b = \\alpha$ (α = {}) \
         becomes stationary with a risk of at most the noise floor plus ε. Exact: nothing is sampled; \
         limits are known to 1e-6 ε. That the excess falls with $L$ is assumed by the search.",
        scales.join(", ")
    );
    let blocks = vec![Block::Prose(prose), Block::Table(table(rows)), Block::Figure(figure(rows))];
    vec![Section::new("horizon", "Prompt lengths that suffice", blocks)]
}

/// L(ε) with what is found there.
pub fn table(rows: &[Row]) -> DataTable {
    let lines: Vec<&Row> = rows.iter().filter(|row| row.quantity == Quantity::NoiseFloor).collect();
    let number = |row: &Row, quantity| beside(rows, row, quantity).map(|row| row.number);
    let horizon = |row: &Row| {
        let length = beside(rows, row, Quantity::Horizon).and_then(|row| row.length);
        length.map_or(Cell::Text(row.outcome.to_string()), Cell::Integer)
    };
    Tabulation::of(&lines)
        .column("$d$", |row| row.dimension)
        .column("$\\varepsilon$", |row| row.excess)
        .column("$L(\\varepsilon)$", |row| horizon(row))
        .column("excess", |row| number(row, Quantity::ExcessRisk))
        .column("excess before", |row| number(row, Quantity::ExcessRiskBefore))
        .column("first order", |row| number(row, Quantity::FirstOrderHorizon))
        .table(
            "horizons",
            "$L(\\varepsilon)$, the excess risk at the limit of the flow there and with one token less, and the \
             first-order prediction $\\min_b R_1(b)/\\varepsilon$ of $L(\\varepsilon)$. Exact.",
        )
}

/// L(ε) over ε, dots, with the first-order prediction dashed.
pub fn figure(rows: &[Row]) -> Figure {
    let mut drawing = Drawing::default();
    for (colour, dimension) in distinct(rows.iter().map(|row| row.dimension)).into_iter().enumerate() {
        let points = |quantity: Quantity| -> Vec<Point> {
            let mine = rows.iter().filter(|row| row.dimension == dimension && row.quantity == quantity);
            mine.map(|row| Point::new(row.excess, row.number.value)).collect()
        };
        drawing.dots(format!("d = {dimension}"), colour, points(Quantity::Horizon));
        drawing.dashed("first order", colour, points(Quantity::FirstOrderHorizon));
    }
    drawing.figure(
        "horizons-figure",
        "Prompts that suffice for an excess risk",
        "Dots: exact, a whole number each. Dashed: the first-order prediction $\\min_b \
         R_1(b)/\\varepsilon$, with $R_1$ the coefficient of $1/L$ in the risk along the valley of the \
         infinite prompt.",
        (Axis::logarithmic("excess risk ε above the noise floor"), Axis::logarithmic("prompt length L(ε)")),
    )
}
