//! Segments of a text: disjoint pieces of equal length, spread over it, each with what the model expects around a text.

use crate::Error;
use crate::vocabulary::Template;

/// Cuts `count` disjoint segments of `length` tokens, evenly spread over the text; the template's tokens stand around each and
/// count.
///
/// # Errors
/// An empty text, or one too short for so many segments.
pub fn segments(
    text: &[u32],
    template: &Template,
    length: usize,
    count: usize,
) -> Result<Vec<Vec<u32>>, Error> {
    let body = template.room(length);
    if body == 0 || count == 0 {
        return Err(Error::TooFewTokens {
            what: "a segment",
            found: if count == 0 { 0 } else { length },
            needed: template.around(&[]).len() + 1,
            purpose: "any text of its own".to_string(),
            remedy: "ask for at least one segment of that length",
        });
    }
    let needed = body.saturating_mul(count);
    if text.len() < needed {
        return Err(Error::TooFewTokens {
            what: "the text",
            found: text.len(),
            needed,
            purpose: format!("{count} segments of {length}"),
            remedy: "give a longer text, or ask for fewer or shorter segments",
        });
    }
    let stride = text.len() / count;
    Ok((0..count).map(|segment| template.around(&text[segment * stride..][..body])).collect())
}
