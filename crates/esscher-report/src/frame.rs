//! What of a figure can be drawn: the range of each axis and the points within, shared by all drawings.

use crate::figure::{Axis, Figure, Point, Scale};

/// Numbers beyond this in size, or below its inverse on a logarithmic axis, are left out of drawings: sums and
/// differences of axis ends would overflow.
const LARGEST: f64 = 1e300;

/// Ends of intervals may widen a logarithmic axis by this many decades beyond the points: the lower end of
/// "1 ± 1" is at 0, and must not stretch the axis to it.
const INTERVAL_DECADES: f64 = 1.0;

/// The drawable part of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) x: Range,
    pub(crate) y: Range,
    /// One for each series, in their order.
    pub(crate) series: Vec<Drawn>,
    /// How many points no drawing shows.
    pub(crate) left_out: usize,
}

/// What an axis spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The drawable points of a series, cut where points are left out: a line must not bridge a gap. Their intervals may
/// reach beyond the axes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) segments: Vec<Vec<Point>>,
}

impl Frame {
    /// Where the points of all series stand along an axis.
    pub(crate) fn positions(&self, along: fn(&Point) -> f64) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|drawn| drawn.segments.iter().flatten()).map(along)
    }
}

impl Drawn {
    /// The point that is farthest to the right.
    pub(crate) fn end(&self) -> Option<Point> {
        let points = self.segments.iter().flatten().copied();
        points.reduce(|far, point| if point.x >= far.x { point } else { far })
    }

    pub(crate) fn has_intervals(&self) -> bool {
        self.segments.iter().flatten().any(|point| point.interval.is_some())
    }
}

impl Range {
    /// Where a number lies: 0 at the low end, 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10()),
        }
    }

    /// The number, or the end of the axis that it lies beyond: for ends of intervals, which may reach outside.
    pub(crate) fn nearest(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// From the least to the greatest of values; with some air if they are alike, of any width if there are none.
    pub(crate) fn spanning(scale: Scale, values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let apart = match scale {
            Scale::Linear => high - low > 1e-9 * low.abs().max(high.abs()),
            Scale::Logarithmic => high.log10() - low.log10() > 1e-9,
        };
        if apart && low < high { Range { scale, low, high } } else { Range::around(scale, values) }
    }

    /// Around values, with some air; of any width if there are none.
    fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            Scale::Linear if low > high => Range { scale, low: 0.0, high: 1.0 },
            Scale::Logarithmic if low > high => Range { scale, low: 1.0, high: 10.0 },
            Scale::Linear => {
                let size = low.abs().max(high.abs());
                // A constant gets room around it; numbers that differ by rounding only count as constant.
                let air = if high - low > 1e-9 * size { 0.04 * (high - low) } else { 0.1 * size };
                let air = if air > 1.0 / LARGEST { air } else { 1.0 };
                let below = if low >= 0.0 { (low - air).max(0.0) } else { low - air };
                let above = if high <= 0.0 && low < 0.0 { (high + air).min(0.0) } else { high + air };
                Range { scale, low: below, high: above }
            }
            Scale::Logarithmic => {
                let decades = high.log10() - low.log10();
                let air = if decades > 1e-9 { (0.03 * decades).min(2.0) } else { 0.5 };
                Range { scale, low: 10f64.powf(low.log10() - air), high: 10f64.powf(high.log10() + air) }
            }
        }
    }
}

/// The drawable part of a figure.
pub(crate) fn frame(figure: &Figure) -> Frame {
    let drawable =
        |point: &&Point| can_be_placed(figure.x.scale, point.x) && can_be_placed(figure.y.scale, point.y);
    let points: Vec<&Point> = figure.series.iter().flat_map(|series| &series.points).collect();
    let kept: Vec<&Point> = points.iter().copied().filter(drawable).collect();
    let reached = |axis: &Axis| axis.includes.filter(|value| can_be_placed(axis.scale, *value));
    let x = Range::around(figure.x.scale, kept.iter().map(|point| point.x).chain(reached(&figure.x)));

    let bare = Range::around(figure.y.scale, kept.iter().map(|point| point.y).chain(reached(&figure.y)));
    let (lowest, highest) = match figure.y.scale {
        Scale::Linear => (-LARGEST, LARGEST),
        Scale::Logarithmic => {
            let stretch = 10f64.powf(INTERVAL_DECADES);
            ((bare.low / stretch).max(1.0 / LARGEST), (bare.high * stretch).min(LARGEST))
        }
    };
    let ends = kept.iter().filter_map(|point| point.interval).flat_map(|(low, high)| [low, high]);
    let ends = ends.filter(|end| end.is_finite() && (lowest..=highest).contains(end));
    let y =
        Range::around(figure.y.scale, kept.iter().map(|point| point.y).chain(ends).chain(reached(&figure.y)));

    let series = figure
        .series
        .iter()
        .map(|series| Drawn {
            segments: series
                .points
                .split(|point| !drawable(&point))
                .filter(|segment| !segment.is_empty())
                .map(|segment| segment.iter().map(with_ordered_interval).collect())
                .collect(),
        })
        .collect();
    Frame { x, y, series, left_out: points.len() - kept.len() }
}

/// Whether a number has a place on a scale.
pub(crate) fn can_be_placed(scale: Scale, value: f64) -> bool {
    match scale {
        Scale::Linear => value.abs() <= LARGEST,
        Scale::Logarithmic => (1.0 / LARGEST..=LARGEST).contains(&value),
    }
}

/// The point with the ends of its interval in order; an end that is no number is no interval.
fn with_ordered_interval(point: &Point) -> Point {
    let interval = point
        .interval
        .filter(|(one, other)| !one.is_nan() && !other.is_nan())
        .map(|(one, other)| (one.min(other), one.max(other)));
    Point { interval, ..*point }
}

/// What a figure says about the points that it does not show, if there are any.
pub(crate) fn left_out_note(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 point is not drawn: not finite, or not positive on a logarithmic axis.".to_string()),
        _ => {
            Some(format!("{count} points are not drawn: not finite, or not positive on a logarithmic axis."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mark, Series};

    fn figure(scale: Scale, points: Vec<Point>) -> Figure {
        Figure {
            x: Axis { label: "x".into(), scale, includes: None },
            y: Axis { label: "y".into(), scale, includes: None },
            series: vec![Series { name: "s".into(), mark: Mark::Line, colour: 0, points }],
            ..Figure::default()
        }
    }

    #[test]
    fn points_that_cannot_be_placed_are_counted_and_cut_the_line() {
        let points = [
            (1.0, 1.0),
            (2.0, f64::NAN),
            (3.0, 1.0),
            (4.0, -1.0),
            (5.0, 0.0),
            (6.0, 2.0),
            (f64::INFINITY, 1.0),
        ];
        let frame = frame(&figure(Scale::Logarithmic, points.map(|(x, y)| Point::new(x, y)).to_vec()));
        assert_eq!(frame.left_out, 4);
        assert_eq!(frame.series[0].segments.len(), 3);
    }

    #[test]
    fn an_interval_down_to_zero_does_not_stretch_a_logarithmic_axis() {
        let frame = frame(&figure(
            Scale::Logarithmic,
            vec![Point::with_error(1.0, 1.0, 1.0), Point::with_error(2.0, 0.5, 0.4999999)],
        ));
        assert!(frame.y.low > 0.01);
        let lower = frame.series[0].segments[0][0].interval.map(|(low, _)| low);
        assert_eq!(lower.map(|low| (low, frame.y.nearest(low))), Some((0.0, frame.y.low)));
    }

    #[test]
    fn an_axis_reaches_what_it_includes() {
        let mut figure = figure(Scale::Linear, vec![Point::new(3.0, 5.0), Point::new(4.0, 6.0)]);
        figure.y.includes = Some(0.0);
        let frame = frame(&figure);
        assert_eq!(frame.y.low, 0.0);
        assert!(frame.x.low > 2.9);
    }

    #[test]
    fn every_range_is_finite_and_not_empty() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [
                vec![],
                vec![1.0],
                vec![0.0],
                vec![1e300, -1e300],
                vec![1.0, 1.0 + 1e-15],
                vec![5e-324],
                vec![1e-300, 1e300],
            ] {
                let frame =
                    frame(&figure(scale, values.iter().map(|&value| Point::new(value, value)).collect()));
                for range in [frame.x, frame.y] {
                    assert!(range.low < range.high && (range.high - range.low).is_finite(), "{range:?}");
                    assert!((0.0..=1.0).contains(&range.place(range.low)));
                }
            }
        }
    }
}
