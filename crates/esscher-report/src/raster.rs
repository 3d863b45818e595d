//! A drawing as PNG: the SVG drawn at three times its size, 288 dots per inch.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

use crate::drawing::Drawing;
use crate::error::DrawingError;
use crate::font;
use crate::svg::svg;

/// Dots for each unit of the SVG, of which there are 96 in an inch.
const DENSITY: f32 = 3.0;

/// A figure or a heat map as PNG, 6.5 inches wide at 288 dots per inch. The same one gives the same bytes.
///
/// # Errors
///
/// [`DrawingError`] if the drawing cannot be read or stored, which is a fault of this crate and not of the drawing.
pub fn png<'a>(drawing: impl Into<Drawing<'a>>) -> Result<Vec<u8>, DrawingError> {
    let tree = tree(drawing.into())?;
    let size = tree.size();
    let (width, height) = ((size.width() * DENSITY).ceil() as u32, (size.height() * DENSITY).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or(DrawingError::Size { width, height })?;
    resvg::render(&tree, Transform::from_scale(DENSITY, DENSITY), &mut pixels.as_mut());
    pixels.encode_png().map_err(|cause| DrawingError::Png { reason: cause.to_string() })
}

/// The SVG read back, with the font of this crate and no other: drawings do not depend on the machine.
pub(crate) fn tree(drawing: Drawing) -> Result<Tree, DrawingError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(font::BYTES.to_vec());
    let options =
        Options { fontdb: Arc::new(fonts), font_family: "DejaVu Sans".to_string(), ..Options::default() };
    Tree::from_str(&font::drawable(&svg(drawing)), &options)
        .map_err(|cause| DrawingError::Svg { reason: cause.to_string() })
}
