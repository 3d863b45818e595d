//! The answer as sections: how it ended, eigenvalues and mean on the way.

use super::answer::{Quantity, Row};
use super::{Ask, Attention};
use crate::drawing::Drawing;
use crate::tabulating::Tabulation;
use esscher_core::Ending;
use esscher_lab::Named;
use esscher_report::{Axis, Block, Point, Section};

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
    let curve = |quantity: Quantity, index: i64| {
        mine.iter().filter(move |row| row.quantity == quantity && row.index == Some(index))
    };
    let measured = |quantity, index| -> Vec<Point> {
        curve(quantity, index).map(|row| row.number.point(row.time)).collect()
    };
    let count = mine.iter().filter_map(|row| row.index).max().unwrap_or(0);
    let (mut eigenvalues, mut means) = (Drawing::default(), Drawing::default());
    for index in 1..=count.min(MOST_CURVES) {
        let colour = index as usize - 1;
        eigenvalues.line(format!("eigenvalue {index}"), colour, measured(Quantity::Eigenvalue, index));
        let exact = curve(Quantity::ClosedFormEigenvalue, index);
        let exact = exact.map(|row| Point::new(row.time, row.number.value)).collect();
        eigenvalues.dashed("closed form", colour, exact);
        means.line(format!("mean, entry {index}"), colour, measured(Quantity::Mean, index));
    }
    let x = if ask.layers.is_some() { "depth: layers times step size" } else { "time t" };
    let figure = |id: &str, title: &str, caption: &str, y: Axis, drawing: Drawing| {
        Block::Figure(drawing.figure(format!("{id}-{name}"), title, caption, (Axis::linear(x), y)))
    };
    let ends: Vec<&Row> =
        mine.iter().copied().filter(|row| row.time == last || row.index.is_none()).collect();
    let table = Tabulation::of(&ends)
        .column("quantity", |row| row.quantity.name())
        .column("index", |row| row.index)
        .column("time", |row| row.time)
        .column("value", |row| row.number)
        .column("class", |row| row.number.accuracy.name())
        .constant("class", "Class")
        .table(format!("ends-{name}"), "Where it ended.");
    let blocks = vec![
        Block::Prose(prose),
        Block::Table(table),
        figure(
            "eigenvalues",
            "Eigenvalues of the covariance",
            "Exact up to the integration, whose error is the width of the line. Dashed: the closed form, where there \
             is one.",
            Axis::logarithmic("eigenvalues of the covariance"),
            eigenvalues,
        ),
        figure("mean", "The mean", "Entries of the mean.", Axis::linear("mean"), means),
    ];
    Section::new(format!("layers-{name}"), format!("Residual {name} attention"), blocks)
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
