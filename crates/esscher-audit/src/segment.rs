//! Segments of a text: disjoint pieces of equal length, spread over it, each beginning as the model expects.

use crate::Error;

/// Cuts `count` disjoint segments of `length` tokens, evenly spread over the text; each begins with `begin` where there is one.
///
///
/// # Errors
/// An empty text, or one too short for so many segments.
pub fn segments(
    text: &[u32],
    begin: Option<u32>,
    length: usize,
    count: usize,
) -> Result<Vec<Vec<u32>>, Error> {
    let body = length.saturating_sub(usize::from(begin.is_some()));
    if text.is_empty() {
        return Err(Error::Request("the text is empty: give one of some thousand words".to_string()));
    }
    if body == 0 || count == 0 {
        return Err(Error::Request(format!(
            "{count} segments of {length} tokens hold no text: ask for at least one of 2"
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
    Ok((0..count)
        .map(|segment| begin.into_iter().chain(text[segment * stride..][..body].iter().copied()).collect())
        .collect())
}
