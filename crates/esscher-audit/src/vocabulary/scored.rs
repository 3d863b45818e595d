//! The sentencepiece way: characters, of which the neighbours whose union has the best score merge first.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::pieces::Placed;
use crate::Error;

/// What a token of the vocabulary stands for.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// A mark that no text contains, such as the beginning of one.
    Control(String),
    /// What is left of characters without a token.
    Byte(u8),
    /// A stretch of text, in which a blank is written as a blank.
    Text { bytes: Vec<u8>, score: f32 },
}

/// Tokens and their scores.
#[derive(Debug, Clone)]
pub(super) struct ScoredPieces {
    pieces: Vec<Piece>,
    numbers: HashMap<Vec<u8>, (u32, f32)>,
    bytes: HashMap<u8, u32>,
    /// Whether a blank is put before a text, so that its first word is cut like any other.
    puts_space: bool,
}

impl ScoredPieces {
    pub(super) fn new(file: &str, pieces: Vec<Piece>, puts_space: bool) -> Result<Self, Error> {
        let (mut numbers, mut singles) = (HashMap::new(), HashMap::new());
        for (number, piece) in (0_u32..).zip(&pieces) {
            match piece {
                Piece::Control(_) => {}
                Piece::Byte(byte) => {
                    singles.entry(*byte).or_insert(number);
                }
                Piece::Text { score, .. } if score.is_nan() => {
                    return Err(Error::Damaged {
                        what: file.to_string(),
                        problem: format!("the score of token {number} is not a number"),
                    });
                }
                Piece::Text { bytes, score } => {
                    numbers.entry(bytes.clone()).or_insert((number, *score));
                }
            }
        }
        Ok(ScoredPieces { pieces, numbers, bytes: singles, puts_space })
    }

    /// The tokens of a text or of a piece of one, with the bytes of it that they stand for.
    pub(super) fn encode(&self, text: &str, begins: bool) -> Result<Vec<Placed>, Error> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let spaced;
        let (text, put) = if self.puts_space && begins {
            spaced = format!(" {text}");
            (spaced.as_str(), 1)
        } else {
            (text, 0)
        };
        let mut tokens = Vec::new();
        for range in self.merge(text) {
            let (start, end) = (range.start.saturating_sub(put), range.end.saturating_sub(put));
            let mut push = |token: u32| tokens.push(Placed { token, start, end });
            let piece = &text.as_bytes()[range];
            match self.numbers.get(piece) {
                Some((number, _)) => push(*number),
                None => {
                    for byte in piece {
                        push(*self.bytes.get(byte).ok_or_else(|| {
                            let problem = format!("it has no token for it nor for its byte {byte:#04x}");
                            Error::NotEncodable {
                                what: format!("`{}`", String::from_utf8_lossy(piece)),
                                problem,
                            }
                        })?);
                    }
                }
            }
        }
        Ok(tokens)
    }

    /// The pieces of a text as ranges of its bytes, in O(n log n): neighbours wait in a heap.
    fn merge(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        let mut parts: Vec<Part> = text
            .char_indices()
            .enumerate()
            .map(|(index, (start, character))| Part {
                start,
                length: character.len_utf8(),
                previous: index.checked_sub(1),
                next: Some(index + 1),
            })
            .collect();
        if let Some(last) = parts.last_mut() {
            last.next = None;
        }
        let candidate = |parts: &[Part], left: usize, right: usize| {
            let (first, second) = (&parts[left], &parts[right]);
            let length = first.length + second.length;
            let (_, score) = self.numbers.get(&text.as_bytes()[first.start..first.start + length])?;
            Some(Candidate { score: *score, left, right, length })
        };
        let mut heap: BinaryHeap<Candidate> =
            (1..parts.len()).filter_map(|right| candidate(&parts, right - 1, right)).collect();
        while let Some(Candidate { left, right, length, .. }) = heap.pop() {
            // One of the two has merged with another meanwhile.
            if parts[left].length == 0
                || parts[right].length == 0
                || parts[left].length + parts[right].length != length
            {
                continue;
            }
            parts[left].length = length;
            parts[right].length = 0;
            let next = parts[right].next;
            parts[left].next = next;
            if let Some(next) = next {
                parts[next].previous = Some(left);
                heap.extend(candidate(&parts, left, next));
            }
            if let Some(previous) = parts[left].previous {
                heap.extend(candidate(&parts, previous, left));
            }
        }
        let ranges = parts.iter().filter(|part| part.length > 0);
        ranges.map(|part| part.start..part.start + part.length).collect()
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> String {
        let mut bytes = Vec::new();
        for token in tokens {
            match self.pieces.get(*token as usize) {
                None | Some(Piece::Control(_)) => {}
                Some(Piece::Byte(byte)) => bytes.push(*byte),
                Some(Piece::Text { bytes: piece, .. }) => bytes.extend_from_slice(piece),
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match text.strip_prefix(' ') {
            Some(stripped) if self.puts_space => stripped.to_string(),
            _ => text,
        }
    }

    pub(super) fn token(&self, token: u32) -> String {
        match self.pieces.get(token as usize) {
            None => String::new(),
            Some(Piece::Control(name)) => name.clone(),
            Some(Piece::Byte(byte)) => format!("<0x{byte:02X}>"),
            Some(Piece::Text { bytes, .. }) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

/// A stretch of the text; without length once it has merged into the one before.
struct Part {
    start: usize,
    length: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

/// Two neighbours whose union is a token.
struct Candidate {
    score: f32,
    left: usize,
    right: usize,
    length: usize,
}

impl Ord for Candidate {
    /// The best score is the largest; of equal ones the leftmost.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: look at all neighbours, merge the best, start again.
    fn merge_literally(pieces: &ScoredPieces, text: &str) -> Vec<std::ops::Range<usize>> {
        let mut parts: Vec<_> =
            text.char_indices().map(|(start, character)| start..start + character.len_utf8()).collect();
        loop {
            let mut best: Option<(f32, usize)> = None;
            for left in 0..parts.len().saturating_sub(1) {
                let union = &text.as_bytes()[parts[left].start..parts[left + 1].end];
                if let Some((_, score)) = pieces.numbers.get(union)
                    && best.is_none_or(|(highest, _)| *score > highest)
                {
                    best = Some((*score, left));
                }
            }
            let Some((_, left)) = best else { return parts };
            parts[left].end = parts.remove(left + 1).end;
        }
    }

    fn pieces() -> ScoredPieces {
        let texts = ["a", "b", "é", "ab", "aa", "ba", "aba", "abab", "éa", "aé", "bb", "aab", "  "];
        let scores = [0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -1.5, -2.0, -2.0, -1.0, -0.5, -7.0];
        let texts = texts.iter().zip(scores);
        let texts = texts.map(|(text, score)| Piece::Text { bytes: text.as_bytes().to_vec(), score });
        let pieces = (0..=255).map(Piece::Byte).chain(texts).collect();
        ScoredPieces::new("test", pieces, true).unwrap()
    }

    proptest! {
        #[test]
        fn the_heap_merges_as_the_definition_does(text in "[abé ]{0,40}") {
            let pieces = pieces();
            prop_assert_eq!(pieces.merge(&text), merge_literally(&pieces, &text));
        }

        #[test]
        fn any_text_comes_back_from_its_tokens(text in "\\PC{0,40}") {
            let pieces = pieces();
            let tokens: Vec<u32> = pieces.encode(&text, true).unwrap().iter().map(|placed| placed.token).collect();
            prop_assert_eq!(pieces.decode(&tokens), text);
        }
    }
}
