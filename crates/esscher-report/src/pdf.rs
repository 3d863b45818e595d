//! A drawing as PDF: the SVG as vectors, with the letters it uses embedded.

use svg2pdf::{ConversionOptions, PageOptions};

use crate::drawing::Drawing;
use crate::error::DrawingError;
use crate::raster::tree;

/// A figure or a heat map as PDF of one page, 6.5 inches wide. The same one gives the same bytes.
///
/// # Errors
///
/// [`DrawingError`] if the drawing cannot be converted, which is a fault of this crate and not of the drawing.
pub fn pdf<'a>(drawing: impl Into<Drawing<'a>>) -> Result<Vec<u8>, DrawingError> {
    let page = PageOptions { dpi: 96.0 };
    svg2pdf::to_pdf(&tree(drawing.into())?, ConversionOptions::default(), page)
        .map_err(|cause| DrawingError::Pdf { reason: cause.to_string() })
}
