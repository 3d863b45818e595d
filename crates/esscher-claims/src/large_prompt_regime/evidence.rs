//! What judges show: tables by column, lists in sentences, axes and guides of figures.

use esscher_questions::measured::{GREY, figures};
use esscher_questions::tabulating::take_constant;
use esscher_report::{Block, Cell, DataTable, Mark, Point, Series};

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

/// The smallest of some numbers, infinity for none.
pub(super) fn smallest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    numbers.into_iter().fold(f64::INFINITY, f64::min)
}

/// A share that nothing exceeds, in per cent: `30 %` of 0.292.
pub(super) fn at_most_percent(share: f64) -> String {
    percent(share, f64::ceil)
}

/// A share that everything reaches, in per cent: `90 %` of 0.907, `0.43 %` of 0.00437.
pub(super) fn at_least_percent(share: f64) -> String {
    percent(share, f64::floor)
}

/// Whole per cents, two figures below one.
fn percent(share: f64, round: fn(f64) -> f64) -> String {
    let percent = 100.0 * share;
    if percent >= 1.0 {
        format!("{} %", rounded_by(percent, round))
    } else {
        format!("{} %", two_figures_by(percent, round))
    }
}

/// Rounded to that side, but what is whole but for rounding stays what it is.
fn rounded_by(value: f64, round: fn(f64) -> f64) -> f64 {
    if (value - value.round()).abs() < 1e-9 { value.round() } else { round(value) }
}

/// A positive number that nothing exceeds, with two figures: `0.034` of 0.0335.
pub(super) fn at_most_two_figures(value: f64) -> String {
    two_figures_by(value, f64::ceil)
}

fn two_figures_by(value: f64, round: fn(f64) -> f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    // Powers of ten are exact on this side of the point.
    let power = 1 - value.abs().log10().floor() as i32;
    let (scaled, digits) = (value * 10f64.powi(power), 1e-9);
    // What is two figures but for rounding stays what it is.
    let rounded = if (scaled - scaled.round()).abs() < digits { scaled.round() } else { round(scaled) };
    two_figures(rounded / 10f64.powi(power))
}

/// A number for titles and cards: two figures, `1.6`, `0.034`, `2·10⁻⁴`.
pub(super) fn two_figures(value: f64) -> String {
    let size = value.abs();
    if (1e-3..100.0).contains(&size) {
        let decimals = (1 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        figures(format!("{value:.1e}").parse().unwrap_or(value))
    }
}

/// A whole number with its digits in groups of three: `19,977`.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut told = String::from(if number < 0 { "−" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// A list in a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn and(pieces: &[String]) -> String {
    match pieces {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Pieces of a sentence.
pub(super) fn listed(pieces: impl IntoIterator<Item = String>, between: &str) -> String {
    pieces.into_iter().collect::<Vec<_>>().join(between)
}

/// The line of slope −1 through the last of some points, as far as the first.
pub(super) fn slope_one(points: &[Point]) -> Option<Series> {
    let (first, last) = (points.first()?, points.last()?);
    let start = Point::new(first.x, last.y * last.x / first.x);
    let points = vec![start, Point::new(last.x, last.y)];
    Some(Series { name: "slope −1".to_string(), mark: Mark::Dashed, colour: GREY, points })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sentences_are_those_of_a_person() {
        assert_eq!([0.1803, 0.00437, 1.5].map(at_least_percent), ["18 %", "0.43 %", "150 %"]);
        assert_eq!(
            [0.292, 0.07, 0.0043, 1.5, 0.0].map(at_most_percent),
            ["30 %", "7 %", "0.43 %", "150 %", "0 %"]
        );
        assert_eq!([0.0331, 0.034, 1.21, 12.4].map(at_most_two_figures), ["0.034", "0.034", "1.3", "13"]);
        assert_eq!(
            [1.632, 0.03349, 1.7e-4, 12.4, 450.0].map(two_figures),
            ["1.6", "0.033", "1.7·10⁻⁴", "12", "450"]
        );
        assert_eq!([7, 1585, 19977, -1_234_567].map(grouped), ["7", "1,585", "19,977", "−1,234,567"]);
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!([and(&words), and(&words[..1]), and(&[])], ["a, b and c", "a", ""]);
    }
}
