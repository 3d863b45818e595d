//! Drawings as Vega-Lite specifications: the interactive form. Colours and fonts come from the theme of the page.

mod cells;
mod curves;

use serde_json::Value;

use crate::drawing::Drawing;
use crate::subscript::{Piece, pieces};

pub(crate) use cells::size as size_of_cells;

const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// A specification and the data that the script of the page hands to it.
pub(crate) fn vega(drawing: Drawing) -> Value {
    match drawing {
        Drawing::Figure(figure) => curves::curves(figure),
        Drawing::Panels(panels) => curves::panels(panels),
        Drawing::HeatMap(map) => cells::cells(map),
        Drawing::Tiles(_) => Value::Null,
    }
}

/// The pieces of a label: on the line, below it, on the line, and so on.
fn by_turns(label: &str) -> Vec<String> {
    let pieces = pieces(label);
    let begins_lowered = pieces.first().is_some_and(|piece: &Piece| piece.lowered);
    begins_lowered.then(String::new).into_iter().chain(pieces.into_iter().map(|piece| piece.text)).collect()
}
