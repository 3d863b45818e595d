//! Drawings as SVG, fit for a paper: 6.5 inches wide, legend outside the data, text as text.

mod area;
mod cells;
mod colour_bar;
mod curves;
mod legend;
mod lettering;
mod marks;
mod panels;
mod thumbnail;
mod tiles;

use crate::drawing::Drawing;
use crate::escape::xml;
use crate::font::FAMILIES;
use crate::prose;
use crate::subscript;

pub(crate) use cells::key_swatch;
pub(crate) use colour_bar::standing_alone as colour_bar;
use lettering::{Units, WIDTH};
pub(crate) use marks::swatch;
pub(crate) use thumbnail::thumbnail;

/// A drawing as SVG. The same one gives the same bytes.
///
/// What cannot be placed is left out, and a line at the foot says how many points or cells that are.
pub fn svg<'a>(drawing: impl Into<Drawing<'a>>) -> String {
    match drawing.into() {
        Drawing::Figure(figure) => curves::curves(figure),
        Drawing::Panels(panels) => panels::panels(panels),
        Drawing::HeatMap(map) => cells::cells(map),
        Drawing::Tiles(tiles) => tiles::tiles(tiles),
    }
}

/// The beginning of a drawing: white paper, and the title (or else what the drawing measures) for readers that speak.
fn opened(title: &str, otherwise: &str, height: f64) -> String {
    let title = prose::plain(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"{FAMILIES}\" fill=\"#1a1a1a\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n",
        xml(&if title.trim().is_empty() { subscript::unicode(otherwise) } else { title }),
        w = Units(WIDTH),
        h = Units(height),
    )
}
