//! A checkpoint of random numbers, made on the spot: for examples and tests, which must not depend on downloads.
//!
//! It is the bytes of a llama2.c file with its tokenizer, so that everything after it is as for a real one.

use super::{ModelBytes, Parts};
use esscher_core::numerics::Stream;
use std::sync::OnceLock;

/// As specifications name it.
pub const NAME: &str = "tiny-random";

/// In one line.
pub const SUMMARY: &str = "random weights made on the spot, for examples and tests: 2 layers of 4 query and 2 key-value heads, context 256";

const LAYERS: usize = 2;
const HEADS: usize = 4;
const KEY_VALUE_HEADS: usize = 2;
const HEAD_DIMENSION: usize = 16;
const HIDDEN: usize = 96;
const CONTEXT: usize = 256;
/// Unknown, begin and end, then every byte.
const VOCABULARY: usize = 3 + 256;
const SEED: u64 = 15;

/// The checkpoint's bytes; always the same.
pub fn bytes() -> ModelBytes {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    Parts::alone(MADE.get_or_init(made).clone())
}

/// The SHA-256 of the checkpoint.
pub fn sha256() -> String {
    static KNOWN: OnceLock<String> = OnceLock::new();
    KNOWN.get_or_init(|| esscher_lab::sha256(&bytes().checkpoint)).clone()
}

fn made() -> Vec<u8> {
    let width = HEADS * HEAD_DIMENSION;
    let key_value_width = KEY_VALUE_HEADS * HEAD_DIMENSION;
    let mut bytes = Vec::new();
    for size in [width, HIDDEN, LAYERS, HEADS, KEY_VALUE_HEADS, VOCABULARY, CONTEXT] {
        bytes.extend((size as i32).to_le_bytes());
    }
    let mut stream = Stream::new(SEED, 0, 0);
    // Sums of as many terms as a row has numbers keep their size.
    let mut random = |bytes: &mut Vec<u8>, rows: usize, columns: usize| {
        let size = 1.0 / (columns as f64).sqrt();
        for _ in 0..rows * columns {
            bytes.extend(((stream.normal() * size) as f32).to_le_bytes());
        }
    };
    let same = |bytes: &mut Vec<u8>, count: usize, number: f32| {
        bytes.extend(std::iter::repeat_n(number.to_le_bytes(), count).flatten());
    };
    random(&mut bytes, VOCABULARY, width);
    same(&mut bytes, LAYERS * width, 1.0);
    random(&mut bytes, LAYERS * width, width);
    random(&mut bytes, LAYERS * key_value_width, width);
    random(&mut bytes, LAYERS * key_value_width, width);
    random(&mut bytes, LAYERS * width, width);
    same(&mut bytes, LAYERS * width, 1.0);
    random(&mut bytes, LAYERS * HIDDEN, width);
    random(&mut bytes, LAYERS * width, HIDDEN);
    random(&mut bytes, LAYERS * HIDDEN, width);
    same(&mut bytes, width, 1.0);
    same(&mut bytes, CONTEXT * HEAD_DIMENSION, 0.0);
    // The tokenizer follows: the longest length, then score, length and text of every token.
    bytes.extend(6_i32.to_le_bytes());
    let controls = ["<unk>", "<s>", "</s>"].map(String::from).into_iter();
    for text in controls.chain((0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>"))) {
        bytes.extend(0_f32.to_le_bytes());
        bytes.extend((text.len() as i32).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}
