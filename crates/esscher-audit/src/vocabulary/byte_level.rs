//! Byte pairs over the 256 letters of GPT-2, with the ways of cutting text into words that GGUF files name.

use std::collections::HashMap;

use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use crate::Error;
use crate::checkpoint::shown;

/// What files name `default`: punctuation apart, then GPT-2's words, then runs of digits in threes.
const DEFAULT: [&str; 4] = [
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
];

/// The tokeniser of `tokens` and `merges`; `special` are never cut and may stand in a text as they are.
pub(super) fn tokenizer(
    file: &str,
    split: &str,
    tokens: &[&str],
    merges: &[&str],
    special: &[&str],
) -> Result<Tokenizer, Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    let words = words(file, split)?;
    let mut numbers = HashMap::with_capacity(tokens.len());
    for (number, token) in (0_u32..).zip(tokens) {
        // Only fillers without a text are equal.
        numbers.entry(token.to_string()).or_insert(number);
    }
    let mut pairs = Vec::with_capacity(merges.len());
    for merge in merges {
        let pair = merge.split_once(' ');
        let (left, right) =
            pair.ok_or_else(|| damaged(format!("merge `{}` is not two tokens and a blank", shown(merge))))?;
        let merged = format!("{left}{right}");
        for token in [left, right, merged.as_str()] {
            if !numbers.contains_key(token) {
                return Err(damaged(format!(
                    "merge `{}` needs `{}`, which is not a token",
                    shown(merge),
                    shown(token)
                )));
            }
        }
        pairs.push((left.to_string(), right.to_string()));
    }
    let model = BPE::builder()
        .vocab_and_merges(numbers.into_iter().collect::<tokenizers::models::bpe::Vocab>(), pairs)
        .build()
        .map_err(|error| damaged(format!("its merges make no vocabulary: {error}")))?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(words));
    tokenizer.with_decoder(Some(ByteLevel::new(false, false, false)));
    let special = special.iter().filter(|token| !token.is_empty());
    tokenizer
        .add_special_tokens(special.map(|token| AddedToken::from(token.to_string(), true)))
        .map_err(|error| damaged(format!("its special tokens: {error}")))?;
    Ok(tokenizer)
}

fn words(file: &str, split: &str) -> Result<PreTokenizerWrapper, Error> {
    let byte_level = |words: bool| ByteLevel::new(false, false, words);
    let unsupported = |problem: &str| Error::Unsupported {
        what: format!("{file}: cutting text into words as `{}`", shown(split)),
        problem: problem.to_string(),
    };
    Ok(match split {
        "gpt-2" | "gpt2" => byte_level(true).into(),
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" => {
            Sequence::new(vec![Digits::new(true).into(), byte_level(true).into()]).into()
        }
        "default" => {
            let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
            for pattern in DEFAULT {
                let pattern = SplitPattern::Regex(pattern.to_string());
                let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
                steps.push(split.map_err(|error| unsupported(&error.to_string()))?.into());
            }
            steps.push(byte_level(false).into());
            Sequence::new(steps).into()
        }
        _ => {
            return Err(unsupported(
                "only `gpt-2`, `smollm` and `default` are supported; record queries, keys and values as a dump",
            ));
        }
    })
}
