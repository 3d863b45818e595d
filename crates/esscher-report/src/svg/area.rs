//! The rectangle of a plot: grid, axes with their numbers, and the marks of series in it.

use std::fmt::Write;

use crate::figure::{Mark, Point, Series};
use crate::frame::{Drawn, Frame, Range};
use crate::ticks::Tick;

use super::lettering::{LABEL_SIZE, TICK_LENGTH, TICK_SIZE, Units, label_width, text, tick_label};
use super::marks::{bar, colour, marker, path, stroke};

/// Where a plot stands, and its ticks.
pub(super) struct Area<'a> {
    pub(super) frame: &'a Frame,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x_ticks: (Vec<Tick>, Vec<f64>),
    pub(super) y_ticks: (Vec<Tick>, Vec<f64>),
}

impl Area<'_> {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.frame.x.place(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - self.frame.y.place(value) * (self.bottom - self.top)
    }

    /// The marks of all series.
    pub(super) fn marks(&self, out: &mut String, series: &[Series], drawn: &[Drawn]) {
        // All bands first, all dots last: a band that covers the dots of an earlier series would hide data.
        let all = || series.iter().zip(drawn);
        for (series, drawn) in all().filter(|(series, _)| series.mark == Mark::Line) {
            self.bands(out, series, drawn);
        }
        for (series, drawn) in all().filter(|(series, _)| series.mark != Mark::Dots) {
            self.lines(out, series, drawn);
        }
        for (series, drawn) in all().filter(|(series, _)| series.mark == Mark::Dots) {
            self.dots(out, series, drawn);
        }
        if series.iter().all(|series| series.points.is_empty()) {
            let at = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
            text(out, at, LABEL_SIZE, "middle", "no data", "#777777");
        }
    }

    /// The grid and the axes, with the numbers of the vertical one if it is wanted.
    pub(super) fn axes(&self, out: &mut String, y_numbers: bool) {
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
        for tick in self.y_ticks.0.iter().filter(|_| y_numbers) {
            let at = (left - TICK_LENGTH - 4.0, self.y(tick.value) + TICK_SIZE * 0.36);
            tick_label(out, at, "end", &tick.label);
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

/// Whether the numbers of a horizontal axis of some length stand apart.
pub(super) fn fits(ticks: &[Tick], range: &Range, length: f64) -> bool {
    ticks.windows(2).all(|pair| {
        let apart = (range.place(pair[1].value) - range.place(pair[0].value)) * length;
        apart >= (label_width(&pair[0].label) + label_width(&pair[1].label)) / 2.0 + 10.0
    })
}
