//! Series of a figure: measured ones first, then theory and guides dashed, with one entry of the legend for each name of theirs.

use esscher_report::{Axis, Figure, Mark, Point, Series, literal};

/// Series while a figure is drawn; those without points are left out. Names mean themselves: laws are named by users.
#[derive(Default)]
pub struct Drawing {
    measured: Vec<Series>,
    dashed: Vec<Series>,
}

impl Drawing {
    /// A line.
    pub fn line(&mut self, name: impl Into<String>, colour: usize, points: Vec<Point>) {
        push(&mut self.measured, literal(name.into()), Mark::Line, colour, points);
    }

    /// Dots.
    pub fn dots(&mut self, name: impl Into<String>, colour: usize, points: Vec<Point>) {
        push(&mut self.measured, literal(name.into()), Mark::Dots, colour, points);
    }

    /// A dashed line; those of one name share the entry of the first.
    pub fn dashed(&mut self, name: &str, colour: usize, points: Vec<Point>) {
        let name = literal(name);
        let is_known = self.dashed.iter().any(|series| series.name == name);
        let name = if is_known { String::new() } else { name };
        push(&mut self.dashed, name, Mark::Dashed, colour, points);
    }

    /// A dashed line at this height below or above all that is drawn so far.
    pub fn level(&mut self, name: &str, colour: usize, height: f64) {
        let places = || self.measured.iter().chain(&self.dashed).flat_map(|series| &series.points);
        let (low, high) = places().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
            (low.min(point.x), high.max(point.x))
        });
        if low <= high {
            self.dashed(name, colour, vec![Point::new(low, height), Point::new(high, height)]);
        }
    }

    /// Whether something is drawn with this mark.
    pub fn has(&self, mark: Mark) -> bool {
        self.measured.iter().chain(&self.dashed).any(|series| series.mark == mark)
    }

    /// The figure with all series in their order.
    pub fn figure(
        self,
        id: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        (x, y): (Axis, Axis),
    ) -> Figure {
        let series = self.measured.into_iter().chain(self.dashed).collect();
        Figure { id: id.into(), title: title.into(), caption: caption.into(), x, y, series }
    }
}

fn push(series: &mut Vec<Series>, name: String, mark: Mark, colour: usize, points: Vec<Point>) {
    if !points.is_empty() {
        series.push(Series { name, mark, colour, points });
    }
}
