//! Tables and the data of drawings as CSV (RFC 4180), with every digit of the numbers.
//!
//! Text that a spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@`, a tab or the end of a line, as OWASP
//! lists them) gets a single quote in front and stands between double quotes. Numbers, negative ones too, stay numbers. Characters that
//! would steer a terminal or the direction of reading are written as `\u{1b}`, as in every other output.

use crate::document::{Cell, DataTable};
use crate::drawing::Drawing;
use crate::figure::Figure;
use crate::heat_map::{HeatMap, name};
use crate::literal::{unhidden, visible};
use crate::numbers::machine;
use crate::prose;

/// A table as CSV: one line of headings, then the rows.
///
/// A column in which some number has an error is followed by a column of errors. Missing entries are empty, formulas in
/// headings and text become Unicode.
pub fn table(table: &DataTable) -> String {
    let width = table.rows.iter().map(Vec::len).chain([table.columns.len()]).max().unwrap_or(0);
    let has_error: Vec<bool> = (0..width)
        .map(|column| {
            table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Number { error: Some(_), .. })))
        })
        .collect();
    let mut out = String::new();
    let headings = (0..width).flat_map(|column| {
        let heading = table.columns.get(column).map_or_else(String::new, |heading| prose::plain(heading));
        let error = has_error[column].then(|| format!("{heading} error").trim_start().to_string());
        [Some(heading), error].into_iter().flatten().map(Field::Text)
    });
    line(&mut out, headings);
    for row in &table.rows {
        let fields = (0..width).flat_map(|column| {
            let (value, error) = match row.get(column) {
                Some(Cell::Text(text)) => (Field::Text(prose::plain(text)), None),
                Some(Cell::Integer(value)) => (Field::Number(value.to_string()), None),
                Some(Cell::Number { value, error }) => (Field::Number(machine(*value)), *error),
                Some(Cell::Missing) | None => (Field::Empty, None),
            };
            let error = has_error[column].then(|| number(error));
            [Some(value), error].into_iter().flatten()
        });
        line(&mut out, fields);
    }
    out
}

/// The data of a figure or a heat map as CSV.
pub fn drawing<'a>(drawing: impl Into<Drawing<'a>>) -> String {
    match drawing.into() {
        Drawing::Figure(figure) => self::figure(figure),
        Drawing::Panels(panels) => self::figure(&panels.merged()),
        Drawing::HeatMap(map) => heat_map(map),
        Drawing::Tiles(tiles) => table(&tiles.table()),
    }
}

/// The data of a heat map as CSV: one line for each cell, empty after the names if nothing was measured.
///
/// The columns are what the rows, the columns and the colours of the map stand for.
pub fn heat_map(map: &HeatMap) -> String {
    let mut out = String::new();
    let headings = [or(&map.y, "row"), or(&map.x, "column"), or(&map.colour_label, "value")];
    line(&mut out, headings.into_iter().map(text));
    let (rows, columns) = map.size();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let value = number(map.cell(row, column));
        line(&mut out, [text(name(&map.rows, row)), text(name(&map.columns, column)), value].into_iter());
    }
    out
}

/// The data of a figure as CSV: one line for each point of each series, also for those that drawings leave out.
///
/// The columns are `series`, the labels of the axes, and `low` and `high` if some point has an interval.
pub fn figure(figure: &Figure) -> String {
    let points =
        || figure.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let has_intervals = points().any(|(_, point)| point.interval.is_some());
    let ends: &[&str] = if has_intervals { &["low", "high"] } else { &[] };
    let mut out = String::new();
    let headings = ["series", or(&figure.x.label, "x"), or(&figure.y.label, "y")];
    line(&mut out, headings.iter().chain(ends).map(|heading| text(heading)));
    for (series, point) in points() {
        let (low, high) = point.interval.unzip();
        let ends = has_intervals.then(|| [number(low), number(high)]);
        let fields = [text(&figure.data_name(series)), number(Some(point.x)), number(Some(point.y))];
        line(&mut out, fields.into_iter().chain(ends.into_iter().flatten()));
    }
    out
}

fn or<'a>(label: &'a str, otherwise: &'a str) -> &'a str {
    if label.trim().is_empty() { otherwise } else { label }
}

/// An entry of a line.
enum Field {
    Text(String),
    /// As machines read it.
    Number(String),
    Empty,
}

/// A label or a name, its subscripts as they are written.
fn text(label: &str) -> Field {
    Field::Text(visible(&unhidden(label)))
}

fn number(value: Option<f64>) -> Field {
    value.map_or(Field::Empty, |value| Field::Number(machine(value)))
}

/// What a spreadsheet takes for the beginning of a formula, also in the wide forms of Asian keyboards.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

fn line(out: &mut String, fields: impl Iterator<Item = Field>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        match field {
            Field::Text(text) if text.starts_with(FORMULA) => quoted(out, &format!("'{text}")),
            Field::Text(text) if text.contains([',', '"', '\n', '\r']) => quoted(out, &text),
            Field::Text(text) | Field::Number(text) => out.push_str(&text),
            Field::Empty => {}
        }
    }
    out.push('\n');
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}
