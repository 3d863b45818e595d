//! A figure as a small picture without numbers, in the colours of the page that it stands on.

use std::fmt::Write;

use crate::figure::{Figure, Mark, Point, Series};
use crate::frame::{Drawn, Frame, frame};
use crate::palette::COUNT;

use super::marks::{marker, path};

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 96.0;
const MARGIN: f64 = 6.0;
/// More points than this of a series are thinned.
const MOST_POINTS: usize = 120;

/// The picture, for the inside of a page: it takes its colours from the classes of series.
pub(crate) fn thumbnail(figure: &Figure) -> String {
    let frame = frame(figure);
    let mut out = format!(
        "<svg class=\"thumbnail\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\" focusable=\"false\">\
         <path class=\"axes\" d=\"M{MARGIN} 2V{0}H{1}\"/>",
        HEIGHT - MARGIN,
        WIDTH - 2.0
    );
    let all = || figure.series.iter().zip(&frame.series);
    for (series, drawn) in all().filter(|(series, _)| series.mark == Mark::Line) {
        band(&mut out, &frame, series, drawn);
    }
    for (series, drawn) in all().filter(|(series, _)| series.mark != Mark::Dots) {
        let dash = if series.mark == Mark::Dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        for segment in &drawn.segments {
            let line = path(thinned(segment).iter().map(|point| place(&frame, point.x, point.y)));
            let _ = write!(out, "<path class=\"line series-{}\" d=\"{line}\"{dash}/>", series.colour % COUNT);
        }
    }
    for (series, drawn) in all().filter(|(series, _)| series.mark == Mark::Dots) {
        let points: Vec<Point> = drawn.segments.iter().flatten().copied().collect();
        let dots: String = thinned(&points)
            .iter()
            .map(|point| place(&frame, point.x, point.y))
            .map(|(x, y)| marker(series.colour, x, y))
            .collect();
        if !dots.is_empty() {
            let _ = write!(out, "<path class=\"fill series-{}\" d=\"{dots}\"/>", series.colour % COUNT);
        }
    }
    out.push_str("</svg>");
    out
}

fn band(out: &mut String, frame: &Frame, series: &Series, drawn: &Drawn) {
    for segment in &drawn.segments {
        for run in segment.split(|point| point.interval.is_none()).filter(|run| run.len() > 1) {
            let run = thinned(run);
            let edge = |point: &Point, upper: bool| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                place(frame, point.x, frame.y.nearest(if upper { high } else { low }))
            };
            let above = run.iter().map(|point| edge(point, true));
            let below = run.iter().rev().map(|point| edge(point, false));
            let outline = path(above.chain(below));
            let _ =
                write!(out, "<path class=\"fill band series-{}\" d=\"{outline}Z\"/>", series.colour % COUNT);
        }
    }
}

fn place(frame: &Frame, x: f64, y: f64) -> (f64, f64) {
    let (wide, tall) = (WIDTH - 2.0 * MARGIN - 4.0, HEIGHT - 2.0 * MARGIN - 4.0);
    let round = |value: f64| (value * 10.0).round() / 10.0;
    (round(MARGIN + 4.0 + frame.x.place(x) * wide), round(HEIGHT - MARGIN - 4.0 - frame.y.place(y) * tall))
}

fn thinned(points: &[Point]) -> Vec<Point> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.last().filter(|_| !(points.len().max(1) - 1).is_multiple_of(every));
    points.iter().step_by(every).chain(last).copied().collect()
}
