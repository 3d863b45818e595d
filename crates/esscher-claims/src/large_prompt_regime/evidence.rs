//! What judges show: tables by column, lists in sentences, axes and guides of figures.

use esscher_questions::measured::GREY;
use esscher_questions::tabulating::take_constant;
use esscher_report::{Axis, Block, Cell, DataTable, Mark, Point, Scale, Series};

/// A heading, and what stands below it about each thing.
pub(super) type TableColumn<'a, T> = (&'a str, &'a dyn Fn(&T) -> Cell);

/// A table with a row for each thing; a dimension or a number of draws that all rows share goes into the caption.
pub(super) fn table<T>(id: &str, caption: &str, things: &[T], columns: &[TableColumn<'_, T>]) -> Block {
    let mut headings: Vec<String> = columns.iter().map(|(heading, _)| heading.to_string()).collect();
    let row = |thing: &T| columns.iter().map(|(_, cell)| cell(thing)).collect();
    let mut rows: Vec<Vec<Cell>> = things.iter().map(row).collect();
    let mut caption = caption.to_string();
    for heading in ["$d$", "draws"] {
        if let Some(Cell::Integer(value)) = take_constant(&mut headings, &mut rows, heading) {
            caption.push_str(&format!(" In all rows {heading} = {value}."));
        }
    }
    Block::Table(DataTable { id: id.to_string(), caption, columns: headings, rows })
}

/// A cell of text.
pub(super) fn text(text: impl ToString) -> Cell {
    Cell::Text(text.to_string())
}

/// A number that may be missing.
pub(super) fn number(value: Option<f64>, error: Option<f64>) -> Cell {
    value.map_or(Cell::Missing, |value| Cell::Number { value, error })
}

/// The largest of some numbers, 0 for none.
pub(super) fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    numbers.into_iter().fold(0.0, f64::max)
}

/// Pieces of a sentence.
pub(super) fn listed(pieces: impl IntoIterator<Item = String>, between: &str) -> String {
    pieces.into_iter().collect::<Vec<_>>().join(between)
}

pub(super) fn linear(label: &str) -> Axis {
    Axis { label: label.to_string(), scale: Scale::Linear }
}

pub(super) fn logarithmic(label: &str) -> Axis {
    Axis { label: label.to_string(), scale: Scale::Logarithmic }
}

/// The line of slope −1 through the last of some points, as far as the first.
pub(super) fn slope_one(points: &[Point]) -> Option<Series> {
    let (first, last) = (points.first()?, points.last()?);
    let start = Point::new(first.x, last.y * last.x / first.x);
    let points = vec![start, Point::new(last.x, last.y)];
    Some(Series { name: "slope −1".to_string(), mark: Mark::Dashed, colour: GREY, points })
}
