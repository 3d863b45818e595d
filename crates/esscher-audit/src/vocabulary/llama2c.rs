//! The tokenizer.bin of llama2.c: the longest length, then a score, a length and the text of every token.

use super::scored::{Piece, ScoredPieces};
use super::{Kind, Template, Vocabulary, gguf, misfit};
use crate::Error;

/// Tokens 0, 1 and 2 are unknown, begin and end.
const CONTROLS: usize = 3;
const BEGIN: u32 = 1;

impl Vocabulary {
    /// The vocabulary in the bytes of a tokenizer.bin, for an embedding of `rows` rows; `file` is for messages.
    ///
    /// # Errors
    /// Bytes that are no such file, another number of tokens than rows.
    pub fn from_llama2c(file: &str, bytes: &[u8], rows: usize) -> Result<Self, Error> {
        let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
        let truncated = |position: usize| damaged(format!("it ends inside the token at byte {position}"));
        let mut tokens = Vec::new();
        let mut position = 4;
        while position < bytes.len() {
            let entry = bytes.get(position..position + 8).ok_or_else(|| truncated(position))?;
            let (score, length) = entry.split_at(4);
            let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let (score, length) = (f32::from_bits(number(score)), number(length) as usize);
            let text = bytes.get(position + 8..).and_then(|rest| rest.get(..length));
            tokens.push((text.ok_or_else(|| truncated(position))?, score));
            position += 8 + length;
        }
        // The format has no count: as many tokens as rows are read, and fewer are a truncated file, not a padded embedding.
        if tokens.len() != rows {
            return Err(misfit(file, tokens.len(), rows));
        }
        // Tokens of single bytes stand for characters without a token of their own. Older files hold them as text: byte 0xE9
        // as the two bytes of `é`, which must not shadow the token of that character.
        let old = tokens.get(CONTROLS).is_some_and(|(text, _)| *text == b"\0");
        let piece = |(number, (text, score)): (usize, (&[u8], f32))| {
            let named = || String::from_utf8_lossy(text).trim().to_string();
            let byte = number.checked_sub(CONTROLS).and_then(|byte| u8::try_from(byte).ok());
            match byte {
                None if number < CONTROLS => Piece::Control(named()),
                Some(byte) if old || gguf::byte(&named()) == Some(byte) => Piece::Byte(byte),
                _ => Piece::Text { bytes: text.to_vec(), score },
            }
        };
        let length = tokens.len();
        let pieces = tokens.into_iter().enumerate().map(piece).collect();
        let pieces = ScoredPieces::new(file, pieces, true)?;
        let begin = super::token_below(length, BEGIN as usize);
        let template = Template { prefix: begin.into_iter().collect(), suffix: Vec::new() };
        Ok(Vocabulary { kind: Kind::Scored(Box::new(pieces)), length, rows, begin, template })
    }
}
