//! The answer as sections: how it ended, eigenvalues and mean on the way.

use super::answer::{Quantity, Row};
use super::{Ask, Attention};
use crate::tabulating::take_constant;
use esscher_core::Ending;
use esscher_lab::Named;
use esscher_report::{Axis, Block, Cell, DataTable, Figure, Mark, Point, Scale, Section, Series};

/// Curves that a figure shows at most; the table has them all.
const MOST_CURVES: i64 = 6;

pub(super) fn section(ask: &Ask, attention: Attention, rows: &[Row]) -> Section {
    let name = attention.name();
    let mine: Vec<&Row> = rows.iter().filter(|row| row.attention == attention).collect();
    let of_law = |row: &&&Row| matches!(row.quantity, Quantity::Eigenvalue | Quantity::Mean);
    let last = mine.iter().filter(of_law).map(|row| row.time).fold(f64::NEG_INFINITY, f64::max);
    let mut prose = format!("How it ended: {}.", ending(ask, &mine, last));
    let single = |quantity| mine.iter().find(|row| row.quantity == quantity);
    let blow_ups = (single(Quantity::BlowUpTime), single(Quantity::ClosedFormBlowUpTime));
    if let (Some(found), Some(exact)) = blow_ups {
        prose += &format!(
            " The closed form $1/\\lambda_{{\\max}}(S^{{1/2}}(U + U^\\top)S^{{1/2}})$ blows up at {}: {:.1e} away.",
            exact.number.value,
            (found.number.value - exact.number.value).abs()
        );
    }
    let curve = |quantity: Quantity, index: i64| -> Vec<&&Row> {
        mine.iter().filter(|row| row.quantity == quantity && row.index == Some(index)).collect()
    };
    let count = mine.iter().filter_map(|row| row.index).max().unwrap_or(0);
    let x = if ask.layers.is_some() { "depth: layers times step size" } else { "time t" };
    let mut eigen = Vec::new();
    let mut mean = Vec::new();
    for index in 1..=count.min(MOST_CURVES) {
        let line = |name: String, mark: Mark, curve: Vec<&&Row>| Series {
            name,
            mark,
            colour: index as usize - 1,
            points: curve
                .iter()
                .map(|row| match mark {
                    Mark::Dashed => Point::new(row.time, row.number.value),
                    _ => row.number.point(row.time),
                })
                .collect(),
        };
        eigen.push(line(format!("eigenvalue {index}"), Mark::Line, curve(Quantity::Eigenvalue, index)));
        let exact = curve(Quantity::ClosedFormEigenvalue, index);
        if !exact.is_empty() {
            let name = if index == 1 { "closed form" } else { "" };
            eigen.push(line(name.to_string(), Mark::Dashed, exact));
        }
        mean.push(line(format!("mean, entry {index}"), Mark::Line, curve(Quantity::Mean, index)));
    }
    let axes = |label: &str, scale: Scale| {
        (Axis { label: x.to_string(), scale: Scale::Linear }, Axis { label: label.to_string(), scale })
    };
    let (x_axis, y_axis) = axes("eigenvalues of the covariance", Scale::Logarithmic);
    let eigenvalues = Figure {
        id: format!("eigenvalues-{name}"),
        title: "Eigenvalues of the covariance".to_string(),
        caption: "Exact up to the integration, whose error is the width of the line. Dashed: the closed form, where \
                  there is one."
            .to_string(),
        x: x_axis,
        y: y_axis,
        series: eigen,
    };
    let (x_axis, y_axis) = axes("mean", Scale::Linear);
    let means = Figure {
        id: format!("mean-{name}"),
        title: "The mean".to_string(),
        caption: "Entries of the mean.".to_string(),
        x: x_axis,
        y: y_axis,
        series: mean,
    };
    let mut cells: Vec<Vec<Cell>> = mine
        .iter()
        .filter(|row| row.time == last || row.index.is_none())
        .map(|row| {
            vec![
                Cell::Text(row.quantity.to_string()),
                row.index.map_or(Cell::Missing, Cell::Integer),
                Cell::Number { value: row.time, error: None },
                row.number.cell(),
                Cell::Text(row.number.accuracy.name().to_string()),
            ]
        })
        .collect();
    let mut columns = ["quantity", "index", "time", "value", "class"].map(String::from).to_vec();
    let mut caption = "Where it ended.".to_string();
    if let Some(Cell::Text(class)) = take_constant(&mut columns, &mut cells, "class") {
        caption.push_str(&format!(" All: {class}."));
    }
    let table = DataTable { id: format!("ends-{name}"), caption, columns, rows: cells };
    Section {
        id: format!("layers-{name}"),
        title: format!("Residual {name} attention"),
        verdict: None,
        blocks: vec![
            Block::Prose(prose),
            Block::Table(table),
            Block::Figure(eigenvalues),
            Block::Figure(means),
        ],
    }
}

/// How the way through the layers ended, in words with what to do.
fn ending(ask: &Ask, rows: &[&Row], last: f64) -> String {
    let Some(row) = rows.first() else { return "there are no rows".to_string() };
    let event = |quantity| rows.iter().find(|row| row.quantity == quantity).map_or(last, |row| row.time);
    match row.ending {
        Ending::Completed => match (ask.layers, ask.step_size) {
            (Some(layers), Some(size)) => format!("passed {layers} layers of step size {size}"),
            _ => format!("reached time {last}"),
        },
        Ending::BlownUp => format!(
            "blows up at time {}; end earlier, or make the scores smaller: halving the score matrix of softmax \
             attention doubles the time",
            event(Quantity::BlowUpTime)
        ),
        Ending::Collapsed => format!(
            "the covariance lost a direction at time {}; go on with `at_collapse = \"continue\"`, or lower \
             `collapse_threshold`",
            event(Quantity::CollapseTime)
        ),
        Ending::Diverged => format!(
            "tokens grew too large to go on after time {last}, and no blow-up in finite time was seen before; end \
             earlier, or scale the value matrix or the tokens down"
        ),
        Ending::Stuck => format!(
            "stuck after time {last}: no step is short enough; end earlier (a blow-up may be near), or rescale tokens \
             whose entries differ by many orders of magnitude"
        ),
        other => format!("{} after time {last}; end earlier", other.name()),
    }
}
