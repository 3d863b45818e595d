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
    if text.is_empty() {
        return Err(Error::Request("the text is empty: give one of some thousand words".to_string()));
    }
    if body == 0 || count == 0 {
        let shortest = template.around(&[]).len() + 1;
        return Err(Error::Request(format!(
            "{count} segments of {length} tokens hold no text: ask for at least one of {shortest}"
        )));
    }
    let needed = body.saturating_mul(count);
    if text.len() < needed {
        let found = text.len();
        return Err(Error::Request(format!(
            "the text has {found} tokens, {count} segments of {length} need {needed}: give a longer text, or fewer or shorter segments"
        )));
    }
    let stride = text.len() / count;
    Ok((0..count).map(|segment| template.around(&text[segment * stride..][..body])).collect())
}
