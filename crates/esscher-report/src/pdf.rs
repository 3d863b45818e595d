//! A figure as PDF: the SVG as vectors, with the letters it uses embedded.

use svg2pdf::{ConversionOptions, PageOptions};

use crate::error::DrawingError;
use crate::figure::Figure;
use crate::raster::tree;

/// A figure as PDF of one page, 6.5 inches wide. The same figure gives the same bytes.
///
/// # Errors
///
/// [`DrawingError`] if the drawing cannot be converted, which is a fault of this crate and not of the figure.
pub fn pdf(figure: &Figure) -> Result<Vec<u8>, DrawingError> {
    let page = PageOptions { dpi: 96.0 };
    svg2pdf::to_pdf(&tree(figure)?, ConversionOptions::default(), page)
        .map_err(|cause| DrawingError::Pdf { reason: cause.to_string() })
}
