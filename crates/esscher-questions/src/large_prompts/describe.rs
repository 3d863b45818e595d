//! The answer as a document: a table of limits, a figure of errors.

use super::answer::{Quantity, Row};
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Scale, Section, Series};

pub(super) fn section(records: &[Row]) -> Section {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.mechanism.as_str()) {
            names.push(&record.mechanism);
        }
    }
    let of = |name: &str, quantity: Quantity| -> Vec<&Row> {
        records.iter().filter(|record| record.mechanism == name && record.quantity == quantity).collect()
    };
    let cell = |name: &str, quantity: Quantity| {
        of(name, quantity).first().map_or(Cell::Missing, |record| record.number.cell())
    };
    let rows = names
        .iter()
        .map(|name| {
            let limit = of(name, Quantity::Limit);
            vec![
                Cell::Text((*name).to_string()),
                Cell::Text(limit.first().map_or(String::new(), |record| record.fate.clone())),
                cell(name, Quantity::Limit),
                cell(name, Quantity::Distance),
                Cell::Text(
                    limit.first().map_or(String::new(), |record| record.number.accuracy.name().to_string()),
                ),
                cell(name, Quantity::Rate),
            ]
        })
        .collect();
    let columns = ["mechanism", "long prompts", "|limit|", "distance to softmax", "class", "rate κ"];
    let table = DataTable {
        id: "limits".to_string(),
        caption: "Where outputs go: the limit of the output, of its mean where a stationary law remains, of the output per \
                  token where it grows; its distance to softmax's limit; κ of the mean squared error c L^{−κ}. Gates that \
                  tokens would set are constant: decays 0.9, step sizes 0.1, fractions one half, arguments of gates zero."
            .to_string(),
        columns: columns.map(String::from).to_vec(),
        rows,
    };
    let figure = Figure {
        id: "errors".to_string(),
        title: "Mean squared distance to the limit".to_string(),
        caption: "Simulated prompts, one standard error. Averages approach their limit like 1/L; what decays does not settle."
            .to_string(),
        x: Axis { label: "prompt length L".to_string(), scale: Scale::Logarithmic },
        y: Axis { label: "mean squared distance".to_string(), scale: Scale::Logarithmic },
        series: names
            .iter()
            .enumerate()
            .map(|(colour, name)| Series {
                name: (*name).to_string(),
                mark: Mark::Line,
                colour,
                points: of(name, Quantity::Error)
                    .iter()
                    .map(|record| record.number.point(record.length.unwrap_or(0) as f64))
                    .collect(),
            })
            .collect(),
    };
    Section {
        id: "large-prompts".to_string(),
        title: "The large-prompt question".to_string(),
        verdict: None,
        blocks: vec![Block::Table(table), Block::Figure(figure)],
    }
}
