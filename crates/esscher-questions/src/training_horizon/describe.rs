//! The answer as a table and a figure of L(ε).

use super::answer::{Quantity, Row, beside};
use crate::measured::figures;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

pub(super) fn sections(scales: &[f64], rows: &[Row]) -> Vec<Section> {
    let scales: Vec<String> = scales.iter().copied().map(figures).collect();
    let prose = format!(
        "The smallest $L$ at which gradient flow from $A = \\alpha I/\\sqrt d$, $b = \\alpha$ (α = {}) becomes stationary \
         with a risk of at most the noise floor plus ε. Exact: nothing is sampled; limits are known to 1e-6 ε. That the \
         excess falls with $L$ is assumed by the search.",
        scales.join(", ")
    );
    vec![Section {
        id: "horizon".to_string(),
        title: "Prompt lengths that suffice".to_string(),
        verdict: None,
        blocks: vec![Block::Prose(prose), Block::Table(table(rows)), Block::Figure(figure(rows))],
    }]
}

/// L(ε) with what is found there.
pub fn table(rows: &[Row]) -> DataTable {
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.quantity == Quantity::NoiseFloor) {
        let here = |quantity| beside(rows, row, quantity);
        let number = |quantity| here(quantity).map_or(Cell::Missing, |row| row.number.cell());
        lines.push(vec![
            Cell::Integer(row.dimension),
            Cell::Number { value: row.excess, error: None },
            here(Quantity::Horizon)
                .and_then(|row| row.length)
                .map_or(Cell::Text(row.outcome.to_string()), Cell::Integer),
            number(Quantity::ExcessRisk),
            number(Quantity::ExcessRiskBefore),
            number(Quantity::FirstOrderHorizon),
        ]);
    }
    DataTable {
        id: "horizons".to_string(),
        caption: "$L(\\varepsilon)$, the excess risk at the limit of the flow there and with one token less, and the \
                  first-order prediction $\\min_b R_1(b)/\\varepsilon$ of $L(\\varepsilon)$. Exact."
            .to_string(),
        columns: [
            "$d$",
            "$\\varepsilon$",
            "$L(\\varepsilon)$",
            "excess",
            "excess before",
            "first order",
        ]
        .map(String::from)
        .to_vec(),
        rows: lines,
    }
}

/// L(ε) over ε, dots, with the first-order prediction dashed.
pub fn figure(rows: &[Row]) -> Figure {
    let (mut series, mut dashed) = (Vec::new(), Vec::new());
    let mut prediction = "first order".to_string();
    let mut dimensions: Vec<i64> = rows.iter().map(|row| row.dimension).collect();
    dimensions.dedup();
    for (colour, dimension) in dimensions.into_iter().enumerate() {
        let points = |quantity: Quantity| -> Vec<Point> {
            rows.iter()
                .filter(|row| row.dimension == dimension && row.quantity == quantity)
                .map(|row| Point::new(row.excess, row.number.value))
                .collect()
        };
        series.push(Series {
            name: format!("d = {dimension}"),
            mark: Mark::Dots,
            colour,
            points: points(Quantity::Horizon),
        });
        dashed.push(Series {
            name: std::mem::take(&mut prediction),
            mark: Mark::Dashed,
            colour,
            points: points(Quantity::FirstOrderHorizon),
        });
    }
    series.extend(dashed);
    Figure {
        id: "horizons-figure".to_string(),
        title: "Prompts that suffice for an excess risk".to_string(),
        caption: "Dots: exact, a whole number each. Dashed: the first-order prediction $\\min_b R_1(b)/\\varepsilon$, with $R_1$ \
                  the coefficient of $1/L$ in the risk along the valley of the infinite prompt."
            .to_string(),
        x: Axis { label: "excess risk ε above the noise floor".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "prompt length L(ε)".to_string(), scale: Scale::Logarithmic },
        series,
    }
}
