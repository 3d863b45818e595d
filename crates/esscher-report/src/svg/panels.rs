//! Panels as SVG: plots on the same axes side by side, one legend below all of them.

use crate::escape::xml;
use crate::frame::{Drawn, frame, left_out_note};
use crate::legend::entries;
use crate::panels::Panels;
use crate::subscript::wrapped;
use crate::ticks::axis_ticks;

use super::area::{Area, fits};
use super::curves::x_label;
use super::legend::Legend;
use super::lettering::{
    LABEL_SIZE, LEADING, LEGEND_SIZE, MARGIN, NOTE_SIZE, TICK_LENGTH, TICK_SIZE, WIDTH, label_width, letters,
    text, turned,
};
use super::opened;

/// Of a plot in a row of this many.
const HEIGHTS: [f64; 3] = [260.0, 200.0, 150.0];
/// Between the plots of a row.
const GAP: f64 = 16.0;

/// Panels as SVG.
pub(super) fn panels(panels: &Panels) -> String {
    let all = panels.overlaid();
    let frame = frame(&all);
    let legend = Legend::below(entries(&all, &frame).0);
    let note = left_out_note(frame.left_out);
    let count = panels.panels.len().max(1);
    let columns = columns(count);
    let rows = count.div_ceil(columns);
    let plot_height = HEIGHTS[columns - 1];

    let line = LABEL_SIZE * LEADING;
    let y_label = wrapped(&panels.y.label, LABEL_SIZE, plot_height * rows as f64);
    let x_lines = wrapped(&panels.x.label, LABEL_SIZE, WIDTH * 0.7);
    let y_ticks = || axis_ticks(&frame.y, std::iter::empty(), (plot_height / 30.0) as usize);
    let widest = y_ticks().0.iter().map(|tick| label_width(&tick.label)).fold(0.0, f64::max);
    let first = MARGIN + line * y_label.len() as f64 + 6.0 + widest + 4.0 + TICK_LENGTH;
    let width = ((WIDTH - MARGIN - first - GAP * (columns - 1) as f64) / columns as f64).max(40.0);
    let x_ticks = || {
        let ticks = |most| axis_ticks(&frame.x, frame.positions(|point| point.x), most);
        (2..=6).rev().map(ticks).find(|ticks| fits(&ticks.0, &frame.x, width)).unwrap_or_else(|| ticks(2))
    };
    let titles: Vec<_> =
        panels.panels.iter().map(|panel| wrapped(&panel.title, LEGEND_SIZE, width + GAP / 2.0)).collect();
    let title_height = titles.iter().map(Vec::len).max().unwrap_or(0) as f64 * LEGEND_SIZE * LEADING + 6.0;
    let numbers = TICK_LENGTH + 4.0 + TICK_SIZE;
    let row_height = title_height + plot_height + numbers + 12.0;

    let top = MARGIN;
    let bottom = top + row_height * rows as f64 - 12.0 - numbers;
    let under_label = bottom + numbers + 8.0 + line * x_lines.len() as f64;
    let note_height = if note.is_some() { NOTE_SIZE * LEADING } else { 0.0 };
    let height = under_label + legend.height_below + note_height + MARGIN;

    let mut out = opened(&panels.title, &panels.y.label, height);
    let mut drawn: &[Drawn] = &frame.series;
    for (index, (panel, title)) in panels.panels.iter().zip(&titles).enumerate() {
        let (row, column) = (index / columns, index % columns);
        let left = first + (width + GAP) * column as f64;
        let head = top + row_height * row as f64;
        let top = head + title_height;
        let (bottom, right) = (top + plot_height, left + width);
        for (line, words) in title.iter().enumerate() {
            let at = (left, head + (line as f64 + 0.8) * LEGEND_SIZE * LEADING);
            text(&mut out, at, LEGEND_SIZE, "start", &letters(words, LEGEND_SIZE), "");
        }
        let area = Area { frame: &frame, left, right, top, bottom, x_ticks: x_ticks(), y_ticks: y_ticks() };
        area.axes(&mut out, column == 0);
        let (own, others) = drawn.split_at(panel.series.len().min(drawn.len()));
        drawn = others;
        area.marks(&mut out, &panel.series, own);
    }
    x_label(&mut out, (first + WIDTH - MARGIN) / 2.0, bottom, &x_lines);
    turned(&mut out, (MARGIN, (top + bottom) / 2.0), &y_label);
    legend.draw_below(&mut out, (first, under_label + 8.0));
    if let Some(note) = note {
        text(&mut out, (first, height - MARGIN / 2.0), NOTE_SIZE, "start", &xml(&note), "#555555");
    }
    out.push_str("</svg>\n");
    out
}

/// Panels in a row: three, or two where that leaves no gap.
fn columns(count: usize) -> usize {
    match count {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}
