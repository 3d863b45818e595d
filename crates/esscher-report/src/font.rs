//! The font of static figures: carried inside, so that text measures and looks the same on every machine.

use std::sync::LazyLock;

use ttf_parser::Face;

/// DejaVu Sans: free, and complete in Greek, mathematics and raised digits.
pub(crate) const BYTES: &[u8] = include_bytes!("../assets/DejaVuSans.ttf");

/// Its name, then what comes closest where an SVG is opened without it. Verdana has the same widths.
pub(crate) const FAMILIES: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// The advance of a character that the font lacks, in widths of the size.
const UNKNOWN_ADVANCE: f64 = 0.8;

static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(BYTES, 0).ok());

/// Width of a line of text at a font size, in the unit of the size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = FACE.as_ref() else {
        return text.chars().count() as f64 * UNKNOWN_ADVANCE * size;
    };
    let em = f64::from(face.units_per_em());
    let advance = |character: char| {
        let glyph = face.glyph_index(character)?;
        Some(f64::from(face.glyph_hor_advance(glyph)?) / em)
    };
    text.chars().map(|character| advance(character).unwrap_or(UNKNOWN_ADVANCE) * size).sum()
}

/// Text with a box for every character that the font lacks.
///
/// The drawing library looks for such characters in other fonts, of which there are none, and panics on some of them.
pub(crate) fn drawable(text: &str) -> String {
    let is_known = |character: char| {
        character.is_ascii() || FACE.as_ref().is_some_and(|face| face.glyph_index(character).is_some())
    };
    text.chars().map(|character| if is_known(character) { character } else { '□' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_labels_need() {
        let face = FACE.as_ref().map(|face| {
            "σεκτλμΛ⁰¹²³⁴⁵⁶⁷⁸⁹⁻−≤≥±×‖∞→ℓ√ᵀ∈"
                .chars()
                .filter(|c| face.glyph_index(*c).is_none())
                .collect::<String>()
        });
        assert_eq!(face.as_deref(), Some(""));
        assert_eq!(drawable("a σ 𝋀ꟕ_𝕒 ®"), "a σ □□_𝕒 ®");
    }
}
