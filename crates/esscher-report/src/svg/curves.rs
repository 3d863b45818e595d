//! Curves over two axes as SVG, legend outside the data.

use std::fmt::Write;

use crate::escape::xml;
use crate::figure::{Figure, Mark, Point, Series};
use crate::frame::{Drawn, Frame, Range, frame, left_out_note};
use crate::legend::{Entry, entries};
use crate::palette::{COUNT, LIGHT};
use crate::subscript::{self, Piece, wrapped};
use crate::ticks::{Tick, ticks};

use super::lettering::{
    LABEL_SIZE, LEADING, LEGEND_SIZE, MARGIN, NOTE_SIZE, TICK_LENGTH, TICK_SIZE, Units, WIDTH, label_width,
    letters, text, tick_label, turned,
};
use super::opened;

/// 4 inches; legends below add to it.
const HEIGHT: f64 = 384.0;
const SWATCH: f64 = 26.0;
/// A legend takes at most this part of the width before it moves below the axes.
const LEGEND_SHARE: f64 = 0.3;
const LEAST_PLOT_HEIGHT: f64 = 250.0;

/// A figure as SVG. Points that cannot be placed are left out, and a line at the foot says how many.
pub(super) fn curves(figure: &Figure) -> String {
    let frame = frame(figure);
    let page = Page::new(figure, &frame);
    let mut out = opened(&figure.title, &figure.y.label, page.height);
    page.axes(&mut out, figure);
    // All bands first, all dots last: a band that covers the dots of an earlier series would hide data.
    let drawn = || figure.series.iter().zip(&frame.series);
    for (series, drawn) in drawn().filter(|(series, _)| series.mark == Mark::Line) {
        page.bands(&mut out, series, drawn);
    }
    for (series, drawn) in drawn().filter(|(series, _)| series.mark != Mark::Dots) {
        page.lines(&mut out, series, drawn);
    }
    for (series, drawn) in drawn().filter(|(series, _)| series.mark == Mark::Dots) {
        page.dots(&mut out, series, drawn);
    }
    page.legend.draw(&mut out);
    if let Some(note) = &page.note {
        text(&mut out, (page.left, page.height - MARGIN / 2.0), NOTE_SIZE, "start", &xml(note), "#555555");
    }
    out.push_str("</svg>\n");
    out
}

/// Where everything stands.
struct Page<'a> {
    frame: &'a Frame,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    height: f64,
    x_ticks: (Vec<Tick>, Vec<f64>),
    y_ticks: (Vec<Tick>, Vec<f64>),
    x_label: Vec<Vec<Piece>>,
    y_label: Vec<Vec<Piece>>,
    legend: Legend<'a>,
    note: Option<String>,
}

impl<'a> Page<'a> {
    fn new(figure: &'a Figure, frame: &'a Frame) -> Self {
        let note = left_out_note(frame.left_out);
        let legend = Legend::new(entries(figure, frame).0);
        let line = LABEL_SIZE * LEADING;
        let tick_line = TICK_LENGTH + 4.0 + TICK_SIZE;

        // The height does not depend on the widths except through wrapped labels, which get the least room there is.
        let x_label = wrapped(&figure.x.label, LABEL_SIZE, WIDTH * 0.6);
        let note_height = if note.is_some() { NOTE_SIZE * LEADING } else { 0.0 };
        let foot =
            tick_line + 8.0 + line * x_label.len() as f64 + legend.height_below + note_height + MARGIN / 2.0;
        let top = MARGIN + TICK_SIZE / 2.0;
        let height = HEIGHT.max(top + LEAST_PLOT_HEIGHT + foot).max(legend.height_beside + 2.0 * MARGIN);
        let bottom = height - foot;

        let y_label = wrapped(&figure.y.label, LABEL_SIZE, bottom - top);
        let y_ticks = ticks(figure.y.scale, frame.y.low, frame.y.high, ((bottom - top) / 32.0) as usize);
        let widest = y_ticks.0.iter().map(|tick| label_width(&tick.label)).fold(0.0, f64::max);
        let left = MARGIN + line * y_label.len() as f64 + 6.0 + widest + 4.0 + TICK_LENGTH;

        let mut right = WIDTH - MARGIN - legend.width_beside;
        let mut x_ticks = ticks(figure.x.scale, frame.x.low, frame.x.high, 8);
        for most in (2..=8).rev() {
            x_ticks = ticks(figure.x.scale, frame.x.low, frame.x.high, most);
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
        Page { frame, left, right, top, bottom, height, x_ticks, y_ticks, x_label, y_label, legend, note }
            .with_legend_placed()
    }

    fn with_legend_placed(mut self) -> Self {
        let below = self.bottom
            + TICK_LENGTH
            + 4.0
            + TICK_SIZE
            + 8.0
            + LABEL_SIZE * LEADING * self.x_label.len() as f64
            + 8.0;
        self.legend.origin = if self.legend.width_beside > 0.0 {
            (WIDTH - MARGIN - self.legend.width_beside + 14.0, self.top)
        } else {
            (self.left.min(WIDTH - MARGIN - self.legend.width()), below)
        };
        self
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.frame.x.place(value) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.frame.y.place(value) * (self.bottom - self.top)
    }

    fn axes(&self, out: &mut String, figure: &Figure) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        let mut grid = String::new();
        let mut marks = String::new();
        for tick in &self.x_ticks.0 {
            let x = Units(self.x(tick.value));
            let _ = write!(grid, "M{x} {}V{}", Units(top), Units(bottom));
            let _ = write!(marks, "M{x} {}v{}", Units(bottom), Units(TICK_LENGTH));
        }
        for tick in &self.y_ticks.0 {
            let y = Units(self.y(tick.value));
            let _ = write!(grid, "M{} {y}H{}", Units(left), Units(right));
            let _ = write!(marks, "M{} {y}h{}", Units(left), Units(-TICK_LENGTH));
        }
        for value in &self.x_ticks.1 {
            let _ =
                write!(marks, "M{} {}v{}", Units(self.x(*value)), Units(bottom), Units(TICK_LENGTH * 0.55));
        }
        for value in &self.y_ticks.1 {
            let _ =
                write!(marks, "M{} {}h{}", Units(left), Units(self.y(*value)), Units(-TICK_LENGTH * 0.55));
        }
        let _ = writeln!(out, "<path d=\"{grid}\" fill=\"none\" stroke=\"#e4e4e4\" stroke-width=\"0.8\"/>");
        let _ = writeln!(
            out,
            "<path d=\"M{} {}V{}H{}{marks}\" fill=\"none\" stroke=\"#333333\" stroke-width=\"0.9\"/>",
            Units(left),
            Units(top),
            Units(bottom),
            Units(right),
        );
        for tick in &self.x_ticks.0 {
            let at = (self.x(tick.value), bottom + TICK_LENGTH + 4.0 + TICK_SIZE * 0.9);
            tick_label(out, at, "middle", &tick.label);
        }
        for tick in &self.y_ticks.0 {
            let at = (left - TICK_LENGTH - 4.0, self.y(tick.value) + TICK_SIZE * 0.36);
            tick_label(out, at, "end", &tick.label);
        }
        let line = LABEL_SIZE * LEADING;
        let first = bottom + TICK_LENGTH + 4.0 + TICK_SIZE + 8.0 + LABEL_SIZE * 0.8;
        for (index, words) in self.x_label.iter().enumerate() {
            let at = ((left + right) / 2.0, first + index as f64 * line);
            text(out, at, LABEL_SIZE, "middle", &letters(words, LABEL_SIZE), "");
        }
        turned(out, (MARGIN, (top + bottom) / 2.0), &self.y_label);
        if figure.series.iter().all(|series| series.points.is_empty()) {
            let at = ((left + right) / 2.0, (top + bottom) / 2.0);
            text(out, at, LABEL_SIZE, "middle", "no data", "#777777");
        }
    }

    fn bands(&self, out: &mut String, series: &Series, drawn: &Drawn) {
        for segment in &drawn.segments {
            for run in segment.split(|point| point.interval.is_none()).filter(|run| run.len() > 1) {
                let edge = |point: &Point, end: fn((f64, f64)) -> f64| {
                    (
                        self.x(point.x),
                        self.y(self.frame.y.nearest(end(point.interval.unwrap_or((point.y, point.y))))),
                    )
                };
                let above = run.iter().map(|point| edge(point, |(_, high)| high));
                let below = run.iter().rev().map(|point| edge(point, |(low, _)| low));
                let outline = path(above.chain(below));
                let _ = writeln!(
                    out,
                    "<path d=\"{outline}Z\" fill=\"{}\" fill-opacity=\"0.18\" stroke=\"none\"/>",
                    colour(series)
                );
            }
        }
    }

    fn lines(&self, out: &mut String, series: &Series, drawn: &Drawn) {
        let mut data = String::new();
        for segment in &drawn.segments {
            match segment.as_slice() {
                [point] => {
                    // A line of one point would be invisible.
                    let (x, y) = (Units(self.x(point.x)), Units(self.y(point.y)));
                    let _ =
                        writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"2\" fill=\"{}\"/>", colour(series));
                }
                points => data.push_str(&path(points.iter().map(|point| (self.x(point.x), self.y(point.y))))),
            }
        }
        if !data.is_empty() {
            let _ = writeln!(out, "<path d=\"{data}\" {}/>", stroke(series.mark, colour(series)));
        }
    }

    fn dots(&self, out: &mut String, series: &Series, drawn: &Drawn) {
        let mut bars = String::new();
        let mut markers = String::new();
        for point in drawn.segments.iter().flatten() {
            let (x, y) = (self.x(point.x), self.y(point.y));
            if let Some((low, high)) = point.interval {
                let range = &self.frame.y;
                let ends = [low, high].map(|end| (self.y(range.nearest(end)), range.nearest(end) == end));
                bar(&mut bars, x, ends);
            }
            markers.push_str(&marker(series.colour, x, y));
        }
        if !bars.is_empty() {
            let _ = writeln!(
                out,
                "<path d=\"{bars}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.1\"/>",
                colour(series)
            );
        }
        if !markers.is_empty() {
            let _ = writeln!(
                out,
                "<path d=\"{markers}\" fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.5\"/>",
                colour(series)
            );
        }
    }
}

/// Names of series with what they look like, beside the axes or below them.
struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    /// The name of each entry in lines.
    names: Vec<Vec<Vec<Piece>>>,
    column_width: f64,
    columns: usize,
    /// Zero if it stands below.
    width_beside: f64,
    height_beside: f64,
    /// Zero if it stands beside.
    height_below: f64,
    origin: (f64, f64),
}

impl<'a> Legend<'a> {
    fn new(entries: Vec<Entry<'a>>) -> Self {
        let line = LEGEND_SIZE * LEADING;
        let broken = |room: f64| -> Vec<Vec<Vec<Piece>>> {
            entries.iter().map(|entry| wrapped(entry.name, LEGEND_SIZE, room)).collect()
        };
        let widest = |names: &[Vec<Vec<Piece>>]| {
            names.iter().flatten().map(|line| subscript::width(line, LEGEND_SIZE)).fold(0.0, f64::max)
        };
        let beside = broken(WIDTH * LEGEND_SHARE - SWATCH - 24.0);
        let heights = |names: &[Vec<Vec<Piece>>]| {
            names.iter().map(|lines| lines.len() as f64 * line + 4.0).sum::<f64>()
        };
        let mut legend = Legend {
            entries: Vec::new(),
            names: Vec::new(),
            column_width: 0.0,
            columns: 1,
            width_beside: 0.0,
            height_beside: 0.0,
            height_below: 0.0,
            origin: (0.0, 0.0),
        };
        if entries.is_empty() {
            return legend;
        }
        // Beside, names may take two lines each, as long as they all fit into the usual height.
        if beside.iter().all(|lines| lines.len() <= 2) && heights(&beside) <= HEIGHT - 60.0 {
            legend.width_beside = SWATCH + 8.0 + widest(&beside) + 14.0;
            legend.height_beside = heights(&beside);
            legend.names = beside;
        } else {
            let room = WIDTH - 2.0 * MARGIN;
            legend.names = broken(room - SWATCH - 26.0);
            legend.column_width = SWATCH + 8.0 + widest(&legend.names) + 18.0;
            legend.columns = ((room / legend.column_width).floor() as usize).clamp(1, entries.len());
            let rows = legend.names.chunks(legend.columns).map(tallest);
            legend.height_below = 12.0 + rows.map(|lines| lines as f64 * line + 4.0).sum::<f64>();
        }
        legend.entries = entries;
        legend
    }

    fn width(&self) -> f64 {
        self.column_width * self.columns as f64
    }

    fn draw(&self, out: &mut String) {
        let line = LEGEND_SIZE * LEADING;
        let mut y = self.origin.1;
        for (entries, names) in self.entries.chunks(self.columns).zip(self.names.chunks(self.columns)) {
            for (column, (entry, lines)) in entries.iter().zip(names).enumerate() {
                let x = self.origin.0 + column as f64 * self.column_width;
                let _ = writeln!(
                    out,
                    "<g transform=\"translate({} {})\">{}</g>",
                    Units(x),
                    Units(y + line / 2.0 - 7.0),
                    swatch(entry, LIGHT[entry.colour])
                );
                for (offset, words) in lines.iter().enumerate() {
                    let baseline = y + line * offset as f64 + line * 0.5 + LEGEND_SIZE * 0.36;
                    let words = letters(words, LEGEND_SIZE);
                    text(out, (x + SWATCH + 8.0, baseline), LEGEND_SIZE, "start", &words, "");
                }
            }
            y += tallest(names) as f64 * line + 4.0;
        }
    }
}

fn tallest(row: &[Vec<Vec<Piece>>]) -> usize {
    row.iter().map(Vec::len).max().unwrap_or(1)
}

/// What the series of an entry look like, in a box of 26 by 14.
pub(crate) fn swatch(entry: &Entry, paint: &str) -> String {
    let mut out = String::new();
    match entry.mark {
        Mark::Line | Mark::Dashed => {
            if entry.has_intervals && entry.mark == Mark::Line {
                let _ = write!(
                    out,
                    "<rect x=\"0\" y=\"2\" width=\"26\" height=\"10\" fill=\"{paint}\" fill-opacity=\"0.18\"/>"
                );
            }
            let _ = write!(out, "<path d=\"M0 7H26\" {}/>", stroke(entry.mark, paint));
        }
        Mark::Dots => {
            if entry.has_intervals {
                let mut bars = String::new();
                bar(&mut bars, 13.0, [(0.0, true), (14.0, true)]);
                let _ =
                    write!(out, "<path d=\"{bars}\" fill=\"none\" stroke=\"{paint}\" stroke-width=\"1.1\"/>");
            }
            let _ = write!(out, "<path d=\"{}\" fill=\"{paint}\"/>", marker(entry.colour, 13.0, 7.0));
        }
    }
    out
}

fn stroke(mark: Mark, paint: &str) -> String {
    let dash = if mark == Mark::Dashed { " stroke-dasharray=\"6 3.5\"" } else { "" };
    format!("fill=\"none\" stroke=\"{paint}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"{dash}")
}

/// A bar between two heights; an end that reaches beyond the axes has no cap.
fn bar(out: &mut String, x: f64, ends: [(f64, bool); 2]) {
    const CAP: f64 = 2.5;
    let _ = write!(out, "M{} {}V{}", Units(x), Units(ends[0].0), Units(ends[1].0));
    for (y, _) in ends.into_iter().filter(|(_, capped)| *capped) {
        let _ = write!(out, "M{} {}h{}", Units(x - CAP), Units(y), Units(2.0 * CAP));
    }
}

/// The outline of a dot, in the shapes of [`crate::palette::SHAPES`].
fn marker(number: usize, x: f64, y: f64) -> String {
    let corners = |offsets: &[(f64, f64)]| path(offsets.iter().map(|(dx, dy)| (x + dx, y + dy))) + "Z";
    match number % COUNT {
        0 => format!("M{} {}a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0Z", Units(x - 3.2), Units(y)),
        1 => corners(&[(-2.9, -2.9), (2.9, -2.9), (2.9, 2.9), (-2.9, 2.9)]),
        2 => corners(&[(0.0, -3.9), (3.7, 2.8), (-3.7, 2.8)]),
        3 => corners(&[(0.0, -4.1), (4.1, 0.0), (0.0, 4.1), (-4.1, 0.0)]),
        4 => corners(&[(0.0, 3.9), (3.7, -2.8), (-3.7, -2.8)]),
        5 => corners(&[
            (-1.3, -3.8),
            (1.3, -3.8),
            (1.3, -1.3),
            (3.8, -1.3),
            (3.8, 1.3),
            (1.3, 1.3),
            (1.3, 3.8),
            (-1.3, 3.8),
            (-1.3, 1.3),
            (-3.8, 1.3),
            (-3.8, -1.3),
            (-1.3, -1.3),
        ]),
        6 => corners(&[(3.9, 0.0), (-2.8, 3.7), (-2.8, -3.7)]),
        _ => corners(&[(-3.9, 0.0), (2.8, 3.7), (2.8, -3.7)]),
    }
}

/// A polyline; points closer than what a printer shows are merged.
fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    const FINEST: f64 = 0.05;
    let mut data = String::new();
    let mut last: Option<(f64, f64)> = None;
    let mut pending = None;
    for (x, y) in points {
        match last {
            Some((at, height)) if (x - at).abs() < FINEST && (y - height).abs() < FINEST => {
                pending = Some((x, y));
                continue;
            }
            None => {
                let _ = write!(data, "M{} {}", Units(x), Units(y));
            }
            Some(_) => {
                let _ = write!(data, "L{} {}", Units(x), Units(y));
            }
        }
        last = Some((x, y));
        pending = None;
    }
    if let Some((x, y)) = pending {
        let _ = write!(data, "L{} {}", Units(x), Units(y));
    }
    data
}

fn colour(series: &Series) -> &'static str {
    LIGHT[series.colour % COUNT]
}

fn fits(ticks: &[Tick], range: &Range, length: f64) -> bool {
    ticks.windows(2).all(|pair| {
        let apart = (range.place(pair[1].value) - range.place(pair[0].value)) * length;
        apart >= (label_width(&pair[0].label) + label_width(&pair[1].label)) / 2.0 + 10.0
    })
}
