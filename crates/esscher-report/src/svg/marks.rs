//! What points, lines and dots look like, in drawings and in legends.

use std::fmt::Write;

use crate::figure::{Mark, Series};
use crate::legend::Entry;
use crate::palette::{COUNT, LIGHT};

use super::lettering::Units;

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

pub(super) fn stroke(mark: Mark, paint: &str) -> String {
    let dash = if mark == Mark::Dashed { " stroke-dasharray=\"6 3.5\"" } else { "" };
    format!("fill=\"none\" stroke=\"{paint}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"{dash}")
}

/// A bar between two heights; an end that reaches beyond the axes has no cap.
pub(super) fn bar(out: &mut String, x: f64, ends: [(f64, bool); 2]) {
    const CAP: f64 = 2.5;
    let _ = write!(out, "M{} {}V{}", Units(x), Units(ends[0].0), Units(ends[1].0));
    for (y, _) in ends.into_iter().filter(|(_, capped)| *capped) {
        let _ = write!(out, "M{} {}h{}", Units(x - CAP), Units(y), Units(2.0 * CAP));
    }
}

/// The outline of a dot, in the shapes of [`crate::palette::SHAPES`].
pub(super) fn marker(number: usize, x: f64, y: f64) -> String {
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
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
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

pub(super) fn colour(series: &Series) -> &'static str {
    LIGHT[series.colour % COUNT]
}
