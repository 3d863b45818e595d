//! The tokens of a long text, piece by piece: as many as are asked for, with no more in memory than a piece needs.
//!
//! Neighbouring pieces share a stretch of the text. What is cut at an edge is cut otherwise than inside the text, but only near that
//! edge: where both pieces agree on a row of tokens inside the shared stretch, the text goes on from one to the other.

use crate::Error;

/// A token and the bytes of the text that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) token: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// How a text is cut into pieces, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutting {
    pub(super) piece: usize,
    /// What two pieces share: less than a piece.
    pub(super) shared: usize,
}

/// A text of one piece is cut whole.
pub(super) const USUAL: Cutting = Cutting { piece: 256 << 10, shared: 16 << 10 };

/// So many tokens on either side of a place must be the same in both pieces.
const AGREEING: usize = 16;

/// The first `most` tokens of a text, or all if there are fewer; `cut` gives the tokens of a piece, and hears whether it is the first.
///
/// Where two pieces agree nowhere in what they share, as in thousands of equal letters without a blank, the text is cut between them.
pub(super) fn first_tokens(
    text: &str,
    most: usize,
    cutting: Cutting,
    cut: impl Fn(&str, bool) -> Result<Vec<Placed>, Error>,
) -> Result<Vec<u32>, Error> {
    let placed = |begin: usize, end: usize| -> Result<Vec<Placed>, Error> {
        let tokens = cut(text.get(begin..end).unwrap_or_default(), begin == 0)?.into_iter();
        let moved = |one: Placed| Placed { start: one.start + begin, end: one.end + begin, ..one };
        Ok(tokens.map(moved).collect())
    };
    let mut settled: Vec<u32> = Vec::new();
    let mut end = character_before(text, cutting.piece);
    let mut open = placed(0, end)?;
    loop {
        // What is near the end of a piece may change with what follows.
        let sure = match end == text.len() {
            true => open.len(),
            false => open.partition_point(|one| one.end + cutting.shared / 2 <= end),
        };
        if end == text.len() || settled.len() + sure >= most {
            let left = most - settled.len().min(most);
            settled.extend(open.iter().take(sure.min(left)).map(|one| one.token));
            return Ok(settled);
        }
        let begin = character_before(text, end.saturating_sub(cutting.shared));
        let next_end = character_before(text, begin.saturating_add(cutting.piece));
        let mut next = placed(begin, next_end)?;
        let (kept, skipped) = match meeting(&open, &next, begin + cutting.shared / 4) {
            Some(places) => places,
            None => {
                next = placed(end, next_end)?;
                (open.len(), 0)
            }
        };
        settled.extend(open.iter().take(kept).map(|one| one.token));
        next.drain(..skipped);
        (open, end) = (next, next_end);
    }
}

/// The last place up to a byte where no character is cut; the end of a shorter text.
pub(super) fn character_before(text: &str, byte: usize) -> usize {
    (0..=byte.min(text.len())).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0)
}

/// The first place from a byte of the text on around which both agree, as a number of tokens of each.
fn meeting(left: &[Placed], right: &[Placed], from: usize) -> Option<(usize, usize)> {
    let mut of_left = left.partition_point(|one| one.start < from);
    let mut of_right = right.partition_point(|one| one.start < from);
    loop {
        let (one, other) = (left.get(of_left)?, right.get(of_right)?);
        let around = |tokens: &[Placed], place: usize| {
            tokens.get(place.checked_sub(AGREEING)?..place + AGREEING).map(<[Placed]>::to_vec)
        };
        if one == other && around(left, of_left).is_some_and(|row| Some(row) == around(right, of_right)) {
            return Some((of_left, of_right));
        }
        of_left += usize::from(one.start <= other.start);
        of_right += usize::from(other.start <= one.start);
    }
}
