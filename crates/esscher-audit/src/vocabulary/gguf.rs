//! The vocabulary in the metadata of a GGUF file: byte pairs (`gpt2`) or scored pieces (`llama`).

use std::collections::HashMap;

use super::scored::{Piece, ScoredPieces};
use super::{Kind, Template, Vocabulary, byte_level, check_length, token_below};
use crate::Error;
use crate::checkpoint::shown;

/// What the metadata say, under the names of this crate.
pub(crate) struct GgufVocabulary<'a> {
    pub(crate) file: &'a str,
    pub(crate) model: &'a str,
    /// How text is cut into words.
    pub(crate) split: Option<&'a str>,
    pub(crate) tokens: Vec<&'a str>,
    /// 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    pub(crate) kinds: Option<Vec<f32>>,
    pub(crate) scores: Option<Vec<f32>>,
    pub(crate) merges: Option<Vec<&'a str>>,
    pub(crate) begin: Option<usize>,
    pub(crate) puts_begin: Option<bool>,
    pub(crate) puts_space: Option<bool>,
}

const UNKNOWN: f32 = 2.0;
const CONTROL: f32 = 3.0;
const USER_DEFINED: f32 = 4.0;
const UNUSED: f32 = 5.0;
const BYTE: f32 = 6.0;

impl Vocabulary {
    /// The vocabulary that fits an embedding of `rows` rows.
    pub(crate) fn from_gguf(parts: GgufVocabulary<'_>, rows: usize) -> Result<Self, Error> {
        let GgufVocabulary {
            file,
            model,
            split,
            tokens,
            kinds,
            scores,
            merges,
            begin,
            puts_begin,
            puts_space,
        } = parts;
        let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
        let length = tokens.len();
        check_length(file, length, rows)?;
        for (name, numbers) in [("token types", &kinds), ("token scores", &scores)] {
            if let Some(count) = numbers.as_ref().map(Vec::len).filter(|count| *count != length) {
                return Err(damaged(format!("it has {count} {name} for {length} tokens")));
            }
        }
        // The first of two equal ones would be meant; a file with many is not one that a model was trained with.
        let mut numbers = HashMap::with_capacity(length);
        for (number, token) in tokens.iter().enumerate().filter(|(_, token)| !token.is_empty()) {
            if let Some(first) = numbers.insert(*token, number) {
                let token = shown(token);
                return Err(damaged(format!("its tokens {first} and {number} are both `{token}`")));
            }
        }
        let begin = match begin {
            None => None,
            Some(number) => Some(token_below(length, number).ok_or_else(|| {
                damaged(format!("the token that begins a text is {number}, but there are {length} tokens"))
            })?),
        };
        let of_kind = |number: usize| kinds.as_ref().and_then(|kinds| kinds.get(number)).copied();
        let (kind, begins) = match model {
            "gpt2" => {
                let merges = merges
                    .ok_or_else(|| damaged("metadata `tokenizer.ggml.merges` is missing".to_string()))?;
                let special = |number: usize| matches!(of_kind(number), Some(CONTROL | USER_DEFINED));
                let special: Vec<_> = tokens
                    .iter()
                    .enumerate()
                    .filter(|(number, _)| special(*number))
                    .map(|(_, token)| *token)
                    .collect();
                let split = split.unwrap_or("default");
                let tokenizer = byte_level::tokenizer(file, split, &tokens, &merges, &special)?;
                (Kind::Library(Box::new(tokenizer)), false)
            }
            "llama" => {
                let scores = scores
                    .ok_or_else(|| damaged("metadata `tokenizer.ggml.scores` is missing".to_string()))?;
                let piece = |(number, (token, score)): (usize, (&&str, &f32))| {
                    let kind = of_kind(number);
                    match byte(token) {
                        Some(byte) if kind.is_none() || kind == Some(BYTE) => Piece::Byte(byte),
                        _ if matches!(kind, Some(UNKNOWN | CONTROL | UNUSED)) => {
                            Piece::Control(token.to_string())
                        }
                        _ => Piece::Text { bytes: token.replace('▁', " ").into_bytes(), score: *score },
                    }
                };
                let pieces = tokens.iter().zip(&scores).enumerate().map(piece).collect();
                let pieces = ScoredPieces::new(file, pieces, puts_space.unwrap_or(true))?;
                (Kind::Scored(Box::new(pieces)), true)
            }
            _ => {
                return Err(Error::Unsupported {
                    what: format!("{file}: tokeniser `{}`", shown(model)),
                    problem:
                        "only `gpt2` and `llama` are supported; record queries, keys and values as a dump"
                            .to_string(),
                });
            }
        };
        let prefix = begin.filter(|_| puts_begin.unwrap_or(begins)).into_iter().collect();
        let template = Template { prefix, suffix: Vec::new() };
        Ok(Vocabulary { kind, length, rows, begin, template })
    }
}

/// `<0x41>` -> 0x41.
pub(super) fn byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let hexadecimal = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if hexadecimal { u8::from_str_radix(digits, 16).ok() } else { None }
}
