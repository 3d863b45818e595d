//! Text in static drawings: sizes, lines of letters, labels of ticks, coordinates.

use std::fmt::Write;

use crate::escape::xml;
use crate::font;
use crate::subscript::{DROP, Piece, SIZE};
use crate::ticks::Label;

/// 6.5 inches at 96 units each.
pub(super) const WIDTH: f64 = 624.0;
pub(super) const MARGIN: f64 = 10.0;
pub(super) const TICK_SIZE: f64 = 11.0;
pub(super) const LABEL_SIZE: f64 = 12.5;
pub(super) const LEGEND_SIZE: f64 = 11.0;
pub(super) const NOTE_SIZE: f64 = 9.0;
/// Size of raised powers relative to their base.
const RAISED: f64 = 0.72;
pub(super) const LEADING: f64 = 1.3;
pub(super) const TICK_LENGTH: f64 = 5.0;

pub(super) fn label_width(label: &Label) -> f64 {
    let power = label.power.map_or(0.0, |power| font::width(&raised(power), TICK_SIZE * RAISED) + 0.5);
    font::width(&label.base, TICK_SIZE) + power
}

fn raised(power: i32) -> String {
    power.to_string().replace('-', "−")
}

pub(super) fn tick_label(out: &mut String, (x, y): (f64, f64), anchor: &str, label: &Label) {
    let power = label.power.map_or_else(String::new, |power| {
        format!(
            "<tspan dx=\"0.5\" dy=\"{}\" font-size=\"{}\">{}</tspan>",
            Units(-TICK_SIZE * 0.38),
            Units(TICK_SIZE * RAISED),
            raised(power)
        )
    });
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{anchor}\">{}{power}</text>",
        Units(x),
        Units(y),
        Units(TICK_SIZE),
        xml(&label.base),
    );
}

/// A line of text; `content` is markup.
pub(super) fn text(out: &mut String, (x, y): (f64, f64), size: f64, anchor: &str, content: &str, fill: &str) {
    let fill = if fill.is_empty() { String::new() } else { format!(" fill=\"{fill}\"") };
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{anchor}\"{fill}>{content}</text>",
        Units(x),
        Units(y),
        Units(size),
    );
}

/// A line of a label as the content of a text.
pub(super) fn letters(line: &[Piece], size: f64) -> String {
    line.iter()
        .enumerate()
        .map(|(index, piece)| match piece.lowered {
            true => format!(
                "<tspan dy=\"{}\" font-size=\"{}\">{}</tspan>",
                Units(DROP * size),
                Units(SIZE * size),
                xml(&piece.text)
            ),
            false if index == 0 => xml(&piece.text),
            false => format!("<tspan dy=\"{}\">{}</tspan>", Units(-DROP * size), xml(&piece.text)),
        })
        .collect()
}

/// A coordinate with at most two decimals.
pub(crate) struct Units(pub(crate) f64);

impl std::fmt::Display for Units {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = format!("{:.2}", self.0);
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        formatter.write_str(if digits == "-0" { "0" } else { digits })
    }
}

/// The lines of the label of a vertical axis, read from below, the first of them `left` units from the left.
pub(super) fn turned(out: &mut String, (left, middle): (f64, f64), lines: &[Vec<Piece>]) {
    for (index, words) in lines.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text transform=\"translate({} {}) rotate(-90)\" font-size=\"{}\" text-anchor=\"middle\">{}</text>",
            Units(left + LABEL_SIZE * 0.8 + index as f64 * LABEL_SIZE * LEADING),
            Units(middle),
            Units(LABEL_SIZE),
            letters(words, LABEL_SIZE),
        );
    }
}
