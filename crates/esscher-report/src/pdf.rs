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
        .map(ordered)
        .map_err(|cause| DrawingError::Pdf { reason: cause.to_string() })
}

/// The file with its opacities in order.
///
/// The library lists them in the order of a hash map, which differs from call to call. They are lines such as `/gs1 12 0 R`
/// within one dictionary: sorted they take the same bytes, so that no offset of the file moves.
fn ordered(file: Vec<u8>) -> Vec<u8> {
    let key = |line: &[u8]| -> Option<Vec<u8>> {
        let line = line.trim_ascii();
        let is_entry = line.starts_with(b"/gs") && line.ends_with(b" 0 R");
        is_entry.then(|| line.to_vec())
    };
    let mut sorted = Vec::with_capacity(file.len());
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    for run in lines.chunk_by(|one, next| key(one).is_some() && key(next).is_some()) {
        let mut run = run.to_vec();
        run.sort_by_cached_key(|line| key(line));
        sorted.extend(run.concat());
    }
    sorted
}
