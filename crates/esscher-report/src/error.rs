//! Why a static drawing could not be made.

/// Why a drawing could not be turned into PNG or PDF. Every drawing has an SVG; what can fail is the conversion.
#[derive(Debug, thiserror::Error)]
pub enum DrawingError {
    /// Our own SVG was refused.
    #[error("the SVG of the figure could not be read back: {reason}. Please report this figure as a bug")]
    Svg {
        /// What the reader said.
        reason: String,
    },
    /// An image of this many dots cannot be held.
    #[error("an image of {width} by {height} dots is too large; use SVG or PDF, or fewer series")]
    Size {
        /// Width in dots.
        width: u32,
        /// Height in dots.
        height: u32,
    },
    /// The image could not be encoded.
    #[error("the PNG could not be encoded: {reason}")]
    Png {
        /// What the encoder said.
        reason: String,
    },
    /// The drawing could not be converted.
    #[error("the PDF could not be written: {reason}")]
    Pdf {
        /// What the converter said.
        reason: String,
    },
}
