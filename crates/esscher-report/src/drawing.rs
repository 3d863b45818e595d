//! What is drawn: a figure, panels, a heat map or tiles. Everything that makes files of drawings takes any of them.

use crate::figure::Figure;
use crate::heat_map::HeatMap;
use crate::panels::Panels;
use crate::tiles::Tiles;

/// A figure, panels, a heat map or tiles.
///
/// [`crate::svg`], [`crate::png`], [`crate::pdf`], [`crate::csv::drawing`] and [`crate::latex::drawing`] take it, or a
/// reference to one of them; [`crate::Block::drawing`] gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawing<'a> {
    /// Curves over two axes.
    Figure(&'a Figure),
    /// Figures side by side.
    Panels(&'a Panels),
    /// Coloured cells.
    HeatMap(&'a HeatMap),
    /// Coloured tiles with words.
    Tiles(&'a Tiles),
}

impl<'a> Drawing<'a> {
    /// The name of its files.
    pub fn id(self) -> &'a str {
        match self {
            Drawing::Figure(figure) => &figure.id,
            Drawing::Panels(panels) => &panels.id,
            Drawing::HeatMap(map) => &map.id,
            Drawing::Tiles(tiles) => &tiles.id,
        }
    }

    /// Above it, prose.
    pub fn title(self) -> &'a str {
        match self {
            Drawing::Figure(figure) => &figure.title,
            Drawing::Panels(panels) => &panels.title,
            Drawing::HeatMap(map) => &map.title,
            Drawing::Tiles(tiles) => &tiles.title,
        }
    }

    /// Below it, prose.
    pub fn caption(self) -> &'a str {
        match self {
            Drawing::Figure(figure) => &figure.caption,
            Drawing::Panels(panels) => &panels.caption,
            Drawing::HeatMap(map) => &map.caption,
            Drawing::Tiles(tiles) => &tiles.caption,
        }
    }

    /// Horizontally and vertically: labels with subscripts.
    pub(crate) fn labels(self) -> (&'a str, &'a str) {
        match self {
            Drawing::Figure(figure) => (&figure.x.label, &figure.y.label),
            Drawing::Panels(panels) => (&panels.x.label, &panels.y.label),
            Drawing::HeatMap(map) => (&map.x, &map.y),
            Drawing::Tiles(tiles) => (&tiles.x, &tiles.y),
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

impl<'a> From<&'a Panels> for Drawing<'a> {
    fn from(panels: &'a Panels) -> Self {
        Drawing::Panels(panels)
    }
}

impl<'a> From<&'a Tiles> for Drawing<'a> {
    fn from(tiles: &'a Tiles) -> Self {
        Drawing::Tiles(tiles)
    }
}
