//! What is drawn: a figure or a heat map. Everything that makes files of drawings takes either.

use crate::figure::Figure;
use crate::heat_map::HeatMap;

/// A figure or a heat map.
///
/// [`crate::svg`], [`crate::png`], [`crate::pdf`], [`crate::csv::drawing`] and [`crate::latex::drawing`] take it, or a
/// reference to either; [`crate::Block::drawing`] gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawing<'a> {
    /// Curves over two axes.
    Figure(&'a Figure),
    /// Coloured cells.
    HeatMap(&'a HeatMap),
}

impl<'a> Drawing<'a> {
    /// The name of its files.
    pub fn id(self) -> &'a str {
        match self {
            Drawing::Figure(figure) => &figure.id,
            Drawing::HeatMap(map) => &map.id,
        }
    }

    /// Above it, prose.
    pub fn title(self) -> &'a str {
        match self {
            Drawing::Figure(figure) => &figure.title,
            Drawing::HeatMap(map) => &map.title,
        }
    }

    /// Below it, prose.
    pub fn caption(self) -> &'a str {
        match self {
            Drawing::Figure(figure) => &figure.caption,
            Drawing::HeatMap(map) => &map.caption,
        }
    }

    /// Horizontally and vertically: labels with subscripts.
    pub(crate) fn labels(self) -> (&'a str, &'a str) {
        match self {
            Drawing::Figure(figure) => (&figure.x.label, &figure.y.label),
            Drawing::HeatMap(map) => (&map.x, &map.y),
        }
    }
}

impl<'a> From<&'a Figure> for Drawing<'a> {
    fn from(figure: &'a Figure) -> Self {
        Drawing::Figure(figure)
    }
}

impl<'a> From<&'a HeatMap> for Drawing<'a> {
    fn from(map: &'a HeatMap) -> Self {
        Drawing::HeatMap(map)
    }
}
