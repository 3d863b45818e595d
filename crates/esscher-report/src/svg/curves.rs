//! Curves over two axes as SVG, legend outside the data.

use crate::escape::xml;
use crate::figure::Figure;
use crate::frame::{Frame, frame, left_out_note};
use crate::legend::entries;
use crate::subscript::{Piece, wrapped};
use crate::ticks::axis_ticks;

use super::area::{Area, fits};
use super::legend::Legend;
use super::lettering::{
    LABEL_SIZE, LEADING, MARGIN, NOTE_SIZE, TICK_LENGTH, TICK_SIZE, WIDTH, label_width, letters, text, turned,
};
use super::opened;

/// 4 inches; legends below add to it.
const HEIGHT: f64 = 384.0;
const LEAST_PLOT_HEIGHT: f64 = 250.0;

/// A figure as SVG. Points that cannot be placed are left out, and a line at the foot says how many.
pub(super) fn curves(figure: &Figure) -> String {
    let frame = frame(figure);
    let page = Page::new(figure, &frame);
    let mut out = opened(&figure.title, &figure.y.label, page.height);
    page.area.axes(&mut out, true);
    page.labels(&mut out);
    page.area.marks(&mut out, &figure.series, &frame.series);
    let Area { left, right, top, bottom, .. } = page.area;
    if page.legend.width_beside > 0.0 {
        page.legend.draw_beside(&mut out, right, top, bottom);
    } else {
        page.legend.draw_below(&mut out, (left, page.under_label + 8.0));
    }
    if let Some(note) = &page.note {
        text(&mut out, (left, page.height - MARGIN / 2.0), NOTE_SIZE, "start", &xml(note), "#555555");
    }
    out.push_str("</svg>\n");
    out
}

/// Where everything stands.
struct Page<'a> {
    area: Area<'a>,
    height: f64,
    x_label: Vec<Vec<Piece>>,
    y_label: Vec<Vec<Piece>>,
    under_label: f64,
    legend: Legend<'a>,
    note: Option<String>,
}

impl<'a> Page<'a> {
    fn new(figure: &'a Figure, frame: &'a Frame) -> Self {
        let note = left_out_note(frame.left_out);
        let legend = Legend::new(entries(figure, frame).0, HEIGHT - 60.0);
        let line = LABEL_SIZE * LEADING;
        let tick_line = TICK_LENGTH + 4.0 + TICK_SIZE;

        // The height does not depend on the widths except through wrapped labels, which get the least room there is.
        let x_label = wrapped(&figure.x.label, LABEL_SIZE, WIDTH * 0.6);
        let note_height = if note.is_some() { NOTE_SIZE * LEADING } else { 0.0 };
        let foot =
            tick_line + 8.0 + line * x_label.len() as f64 + legend.height_below + note_height + MARGIN / 2.0;
        let top = MARGIN + TICK_SIZE / 2.0;
        // No legend is larger than its plot.
        let plot_height = LEAST_PLOT_HEIGHT.max(legend.height_below);
        let height = HEIGHT.max(top + plot_height + foot).max(legend.height_beside + 2.0 * MARGIN);
        let bottom = height - foot;

        let y_label = wrapped(&figure.y.label, LABEL_SIZE, bottom - top);
        let y_ticks = axis_ticks(&frame.y, std::iter::empty(), ((bottom - top) / 32.0) as usize);
        let widest = y_ticks.0.iter().map(|tick| label_width(&tick.label)).fold(0.0, f64::max);
        let left = MARGIN + line * y_label.len() as f64 + 6.0 + widest + 4.0 + TICK_LENGTH;

        let mut right = WIDTH - MARGIN - legend.width_beside;
        let mut x_ticks = axis_ticks(&frame.x, frame.positions(|point| point.x), 8);
        for most in (2..=8).rev() {
            x_ticks = axis_ticks(&frame.x, frame.positions(|point| point.x), most);
            let overhang = x_ticks.0.last().map_or(0.0, |tick| {
                let room = (1.0 - frame.x.place(tick.value)) * (right - left);
                (label_width(&tick.label) / 2.0 - room).max(0.0)
            });
            let end = (WIDTH - MARGIN - legend.width_beside.max(overhang)).max(left + 60.0);
            if fits(&x_ticks.0, &frame.x, end - left) {
                right = end;
                break;
            }
        }
        let under_label = bottom + tick_line + 8.0 + line * x_label.len() as f64;
        let area = Area { frame, left, right, top, bottom, x_ticks, y_ticks };
        Page { area, height, x_label, y_label, under_label, legend, note }
    }

    fn labels(&self, out: &mut String) {
        let Area { left, right, top, bottom, .. } = self.area;
        x_label(out, (left + right) / 2.0, bottom, &self.x_label);
        turned(out, (MARGIN, (top + bottom) / 2.0), &self.y_label);
    }
}

/// The lines of the label of a horizontal axis that stands at some height.
pub(super) fn x_label(out: &mut String, middle: f64, bottom: f64, lines: &[Vec<Piece>]) {
    let first = bottom + TICK_LENGTH + 4.0 + TICK_SIZE + 8.0 + LABEL_SIZE * 0.8;
    for (index, words) in lines.iter().enumerate() {
        let at = (middle, first + index as f64 * LABEL_SIZE * LEADING);
        text(out, at, LABEL_SIZE, "middle", &letters(words, LABEL_SIZE), "");
    }
}
