//! The entries of a legend: what reads and looks the same is said once.

use crate::figure::{Figure, Mark};
use crate::frame::Frame;
use crate::palette::COUNT;

/// One line of a legend, for all series that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) mark: Mark,
    /// Below [`COUNT`].
    pub(crate) colour: usize,
    /// Whether some of its series show intervals.
    pub(crate) has_intervals: bool,
}

/// The entries in the order of their first series, and for each series the position of its entry, if it has a name.
pub(crate) fn entries<'a>(figure: &'a Figure, frame: &Frame) -> (Vec<Entry<'a>>, Vec<Option<usize>>) {
    let mut entries: Vec<Entry> = Vec::new();
    let mut places = Vec::with_capacity(figure.series.len());
    for (series, drawn) in figure.series.iter().zip(&frame.series) {
        let (name, mark, colour) = (series.name.trim(), series.mark, series.colour % COUNT);
        if name.is_empty() {
            places.push(None);
            continue;
        }
        let same = |entry: &Entry| (entry.name, entry.mark, entry.colour) == (name, mark, colour);
        let place = entries.iter().position(same).unwrap_or_else(|| {
            entries.push(Entry { name, mark, colour, has_intervals: false });
            entries.len() - 1
        });
        entries[place].has_intervals |= drawn.has_intervals();
        places.push(Some(place));
    }
    (entries, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::frame;
    use crate::{Point, Series};

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
}
