//! A figure as a small plot of braille characters, for terminals.

use crate::figure::{Axis, Figure, Mark, Point, Series};
use crate::frame::{Range, can_be_placed, frame};
use crate::numbers::number;
use crate::subscript::unicode;

/// Characters of the plot; each holds two dots by four.
const COLUMNS: usize = 46;
const ROWS: usize = 6;

/// The bits of the dots of a character, by row and column.
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// The lines of a plot at most 60 characters wide, the ends of its axes beside and below it; none if nothing can be drawn.
pub(crate) fn plot(figure: &Figure) -> Option<Vec<String>> {
    let frame = frame(figure);
    if frame.series.iter().all(|drawn| drawn.segments.is_empty()) {
        return None;
    }
    // From point to point, so that the ends of the axes are numbers that somebody chose or measured.
    let span = |axis: &Axis, along: fn(&Point) -> f64| {
        let values: Vec<f64> = frame.positions(along).chain(axis.includes).collect();
        Range::spanning(axis.scale, values.iter().copied().filter(|value| can_be_placed(axis.scale, *value)))
    };
    let (x_range, y_range) = (span(&figure.x, |point| point.x), span(&figure.y, |point| point.y));
    let mut cells = [[0_u32; COLUMNS]; ROWS];
    let mut dot = |x: f64, y: f64| {
        let across = (x.clamp(0.0, 1.0) * (2 * COLUMNS - 1) as f64).round() as usize;
        let down = ((1.0 - y.clamp(0.0, 1.0)) * (4 * ROWS - 1) as f64).round() as usize;
        cells[down / 4][across / 2] |= DOTS[down % 4][across % 2];
    };
    for (series, drawn) in figure.series.iter().zip(&frame.series) {
        for segment in &drawn.segments {
            let places: Vec<(f64, f64)> =
                segment.iter().map(|point| (x_range.place(point.x), y_range.place(point.y))).collect();
            places.iter().for_each(|(x, y)| dot(*x, *y));
            for pair in places.windows(2).filter(|_| series.mark != Mark::Dots) {
                let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
                let long = (next_x - x).abs() * 2.0 * COLUMNS as f64;
                let steps = long.max((next_y - y).abs() * 4.0 * ROWS as f64).ceil().clamp(1.0, 400.0);
                // A dashed line has gaps.
                let gap = if series.mark == Mark::Dashed { 3 } else { 1 };
                for step in (0..=steps as usize).step_by(gap) {
                    let part = step as f64 / steps;
                    dot(x + part * (next_x - x), y + part * (next_y - y));
                }
            }
        }
    }
    let ends = |range: &Range| [range.low, range.high].map(|end| brief(end, range));
    let ([x_low, x_high], [y_low, y_high]) = (ends(&x_range), ends(&y_range));
    let width = y_low.chars().count().max(y_high.chars().count());
    let mut lines = Vec::new();
    for (row, cells) in cells.iter().enumerate() {
        let name = match row {
            0 => y_high.as_str(),
            _ if row == ROWS - 1 => y_low.as_str(),
            _ => "",
        };
        let signs: String = cells.iter().filter_map(|bits| char::from_u32(0x2800 + bits)).collect();
        lines.push(format!("{}{name} ┤{signs}", " ".repeat(width - name.chars().count())));
    }
    let room = (COLUMNS + 1).saturating_sub(x_low.chars().count() + x_high.chars().count());
    let label: String = unicode(&figure.x.label).chars().filter(|sign| !sign.is_control()).collect();
    let label = if label.chars().count() + 2 <= room { label } else { String::new() };
    let left = (room - label.chars().count()) / 2;
    let right = room - label.chars().count() - left;
    lines.push(format!(
        "{} {x_low}{}{label}{}{x_high}",
        " ".repeat(width),
        " ".repeat(left),
        " ".repeat(right)
    ));
    lines.extend(legend(figure));
    Some(lines)
}

/// Which curve is which, where several have names: dots have no colours.
fn legend(figure: &Figure) -> Option<String> {
    const LONGEST: usize = 90;
    let mut ends: Vec<(String, f64)> = Vec::new();
    let last_x =
        |series: &Series| series.points.iter().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max);
    let right = figure.series.iter().map(last_x).fold(f64::NEG_INFINITY, f64::max);
    for series in figure.series.iter().filter(|series| !series.name.trim().is_empty()) {
        let name = unicode(&series.name);
        // Curves that end elsewhere cannot be told by their right ends.
        let end = series.points.iter().find(|point| point.x == right)?.y;
        if let Some(end) = Some(end)
            .filter(|end| can_be_placed(figure.y.scale, *end))
            .filter(|_| ends.iter().all(|(known, _)| *known != name))
        {
            ends.push((name, end));
        }
    }
    ends.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    let names: Vec<String> = ends.into_iter().map(|(name, _)| name).collect();
    let line = format!("right ends from above: {}", names.join(", "));
    (names.len() > 1 && line.chars().count() <= LONGEST && !line.contains(char::is_control)).then_some(line)
}

/// The end of an axis with as many digits as tell it from the other.
fn brief(end: f64, range: &Range) -> String {
    let digits = if (range.high - range.low).abs() < 0.05 * range.high.abs() { 3 } else { 1 };
    let value: f64 = format!("{end:.digits$e}").parse().unwrap_or(end);
    // What is nothing compared to the axis is nothing.
    let is_nothing = range.scale == crate::Scale::Linear && value.abs() < 1e-6 * (range.high - range.low);
    number(if is_nothing { 0.0 } else { value }, None).unicode()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_small_and_respects_the_scale() {
        let points = (0..7).map(|k| 10f64.powi(k)).map(|x| Point::new(x, 1.0 / x)).collect();
        let figure = Figure {
            x: Axis::logarithmic("prompt length L"),
            y: Axis::logarithmic("error"),
            series: vec![Series { name: "s".into(), mark: Mark::Line, colour: 0, points }],
            ..Figure::default()
        };
        let lines = plot(&figure).unwrap_or_default();
        assert_eq!(lines.len(), ROWS + 1);
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:?}");
        assert!(lines[ROWS].contains("prompt length L"));
        assert!(
            lines[0].starts_with("   1 ┤")
                && lines[ROWS - 1].starts_with("10⁻⁶ ┤")
                && lines[ROWS].ends_with("10⁶")
        );
        // A straight line on logarithmic axes: every row and every column but the margins has dots.
        assert!(
            lines[..ROWS]
                .iter()
                .all(|line| line.chars().any(|sign| ('\u{2801}'..='\u{28ff}').contains(&sign)))
        );
        assert_eq!(plot(&Figure::default()), None);
        // Two curves are told apart by where they end, guides without a name are not told.
        let level = |name: &str, y: f64| {
            let points = vec![Point::new(1.0, y), Point::new(9.0, y)];
            Series { name: name.into(), mark: Mark::Line, colour: 0, points }
        };
        let series = vec![level("low", 1.0), level("", 3.0), level("high", 2.0)];
        let lines = plot(&Figure { series, ..Figure::default() }).unwrap_or_default();
        assert_eq!(lines.last().map(String::as_str), Some("right ends from above: high, low"));
    }
}
