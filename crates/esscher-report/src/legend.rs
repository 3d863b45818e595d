//! The entries of a legend: what reads and looks the same is said once.

use crate::figure::{Figure, Mark, Series};
use crate::frame::Frame;
use crate::palette::{COUNT, GREY};

/// One line of a legend, for all series that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) mark: Mark,
    /// Below [`COUNT`].
    pub(crate) colour: usize,
    /// Whether some of its series show intervals.
    pub(crate) has_intervals: bool,
    /// Where its lines end: 0 at the foot of the plot, 1 at its head; the middle if it stands for several.
    pub(crate) end: Option<f64>,
    /// Whether they all end there.
    pub(crate) ends_once: bool,
}

/// The entries in the order of their first series, and for each series the position of its entry, if it has one.
///
/// A dashed line that is drawn in several colours, under one name or with a name at the first only, is one entry in grey.
pub(crate) fn entries<'a>(figure: &'a Figure, frame: &Frame) -> (Vec<Entry<'a>>, Vec<Option<usize>>) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut ends: Vec<Vec<f64>> = Vec::new();
    let mut places = Vec::with_capacity(figure.series.len());
    for (series, drawn) in figure.series.iter().zip(&frame.series) {
        let name = series.name.trim();
        if name.is_empty() {
            places.push(None);
            continue;
        }
        let (mark, colour) =
            (series.mark, if spans_colours(figure, series) { GREY } else { series.colour % COUNT });
        let same = |entry: &Entry| (entry.name, entry.mark, entry.colour) == (name, mark, colour);
        let place = entries.iter().position(same).unwrap_or_else(|| {
            entries.push(Entry { name, mark, colour, has_intervals: false, end: None, ends_once: true });
            ends.push(Vec::new());
            entries.len() - 1
        });
        entries[place].has_intervals |= drawn.has_intervals();
        ends[place].extend(drawn.end().map(|point| frame.y.place(point.y).clamp(0.0, 1.0)));
        places.push(Some(place));
    }
    for (entry, ends) in entries.iter_mut().zip(&ends) {
        let apart = ends.iter().fold(0.0, |most: f64, end| most.max((end - ends[0]).abs()));
        entry.ends_once = !ends.is_empty() && apart < 0.02;
        entry.end = (!ends.is_empty()).then(|| ends.iter().sum::<f64>() / ends.len() as f64);
    }
    (entries, places)
}

/// Whether a dashed line with a name is drawn in other colours too: a guide or a bound for all of them.
fn spans_colours(figure: &Figure, one: &Series) -> bool {
    let colour = one.colour % COUNT;
    let is_twin = |other: &&Series| {
        other.mark == Mark::Dashed
            && other.colour % COUNT != colour
            && (other.name.trim().is_empty() || other.name.trim() == one.name.trim())
    };
    let names =
        figure.series.iter().filter(|other| other.mark == Mark::Dashed && !other.name.trim().is_empty());
    one.mark == Mark::Dashed
        && figure.series.iter().any(|other| is_twin(&other))
        && names.map(|other| other.name.trim()).all(|name| name == one.name.trim())
}

/// Middles of boxes of these heights that stand as near as possible to where they should, in order and not over each
/// other, between two ends if there is room for that.
pub(crate) fn spread(boxes: &[(f64, f64)], first: f64, last: f64) -> Vec<f64> {
    let total: f64 = boxes.iter().map(|(_, height)| height).sum();
    // Where the first box would begin if only this one counted. Boxes that would overlap move as one, by their mean.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let mut above = 0.0;
    for (wanted, height) in boxes {
        let mut block = (wanted - height / 2.0 - above, 1);
        while let Some(&(begin, count)) = blocks.last().filter(|(begin, _)| *begin > block.0) {
            let all = count + block.1;
            block = ((begin * count as f64 + block.0 * block.1 as f64) / all as f64, all);
            blocks.pop();
        }
        blocks.push(block);
        above += height;
    }
    let begins = blocks.iter().flat_map(|(begin, count)| std::iter::repeat_n(*begin, *count));
    let mut above = 0.0;
    begins
        .zip(boxes)
        .map(|(begin, (_, height))| {
            let middle = begin.clamp(first, (last - total).max(first)) + above + height / 2.0;
            above += height;
            middle
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Point;
    use crate::frame::frame;

    #[test]
    fn series_that_read_and_look_the_same_share_an_entry() {
        let series =
            |name: &str, mark, colour, point| Series { name: name.into(), mark, colour, points: vec![point] };
        let figure = Figure {
            series: vec![
                series("prompt", Mark::Line, 1, Point::new(1.0, 1.0)),
                series("prompt", Mark::Line, 1 + COUNT, Point::with_error(1.0, 1.0, 0.1)),
                series("", Mark::Line, 1, Point::new(1.0, 1.0)),
                series("prompt", Mark::Dashed, 1, Point::new(1.0, 1.0)),
                series("prompt", Mark::Line, 2, Point::new(1.0, 1.0)),
                series("limit", Mark::Line, 1, Point::new(1.0, 1.0)),
            ],
            ..Figure::default()
        };
        let (entries, places) = entries(&figure, &frame(&figure));
        assert_eq!(places, [Some(0), Some(0), None, Some(1), Some(2), Some(3)]);
        assert_eq!(
            entries.iter().map(|entry| entry.has_intervals).collect::<Vec<_>>(),
            [true, false, false, false]
        );
    }

    #[test]
    fn a_dashed_line_of_all_colours_is_one_entry_in_grey() {
        let series = |name: &str, mark, colour| Series {
            name: name.into(),
            mark,
            colour,
            points: vec![Point::new(1.0, 1.0)],
        };
        let named = |names: [&str; 2]| Figure {
            series: vec![
                series("one", Mark::Dots, 0),
                series(names[0], Mark::Dashed, 0),
                series("two", Mark::Dots, 1),
                series(names[1], Mark::Dashed, 1),
            ],
            ..Figure::default()
        };
        let told = |figure: &Figure| {
            entries(figure, &frame(figure))
                .0
                .iter()
                .map(|entry| (entry.name.to_string(), entry.colour))
                .collect::<Vec<_>>()
        };
        for names in [["bound", "bound"], ["bound", ""]] {
            assert_eq!(told(&named(names)), [("one".into(), 0), ("bound".into(), GREY), ("two".into(), 1)]);
        }
        assert_eq!(told(&named(["bound of one", "bound of two"])).len(), 4);
    }

    #[test]
    fn boxes_keep_their_order_and_do_not_overlap() {
        assert_eq!(spread(&[(10.0, 4.0), (20.0, 4.0)], 0.0, 100.0), [10.0, 20.0]);
        assert_eq!(spread(&[(10.0, 4.0), (10.0, 4.0), (90.0, 4.0)], 0.0, 100.0), [8.0, 12.0, 90.0]);
        assert_eq!(spread(&[(0.0, 4.0), (0.0, 4.0)], 0.0, 100.0), [2.0, 6.0]);
        assert_eq!(spread(&[(99.0, 4.0), (100.0, 4.0)], 0.0, 100.0), [94.0, 98.0]);
        assert_eq!(spread(&[(5.0, 8.0), (5.0, 8.0)], 0.0, 10.0), [4.0, 12.0]);
    }
}
