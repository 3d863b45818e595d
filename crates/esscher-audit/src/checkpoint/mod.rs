//! Checkpoints: bytes of a file in one of the field's formats -> the weights of an architecture.

use sha2::{Digest, Sha256};

use crate::Error;
use crate::vocabulary::Vocabulary;
use crate::weights::Matrix;

mod beginning;
pub mod dump;
mod gguf;
pub(crate) mod json;
mod llama2c;
mod safetensors;
mod tensors;

pub use beginning::{Beginning, FIRST_BYTES};
pub use dump::Dump;
pub(crate) use tensors::{shown, without_byte_order_mark};

/// No file may announce a longer context: room is made for what it says, and no model of the field comes near.
const LONGEST_CONTEXT: usize = 1 << 24;

/// The bytes of a checkpoint, as its user has them.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// For messages: the name of the main file.
    pub name: &'a str,
    /// The main file: weights, with or without a vocabulary.
    pub weights: &'a [u8],
    /// The `config.json` beside it, which safetensors need.
    pub config: Option<&'a [u8]>,
    /// The `tokenizer.json` or llama2.c `tokenizer.bin` beside it; it goes before a vocabulary in the main file.
    pub tokenizer: Option<&'a [u8]>,
}

/// A model with its vocabulary.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The name of the main file.
    pub name: String,
    /// The format of the main file.
    pub format: Format,
    /// SHA-256 of the main file, in hexadecimal.
    pub sha256: String,
    /// The weights of its architecture.
    pub weights: Weights,
    /// Text to tokens, if there is a tokeniser.
    pub vocabulary: Option<Vocabulary>,
}

/// What a file is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The format of llama2.c, in single precision.
    Llama2c,
    /// The format of llama.cpp.
    Gguf,
    /// Safetensors: a model, or a dump.
    Safetensors,
    /// NumPy's archive of arrays: a dump.
    Npz,
}

impl Format {
    /// The name by which the field knows it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Llama2c => "llama2.c",
            Format::Gguf => "GGUF",
            Format::Safetensors => "safetensors",
            Format::Npz => "npz",
        }
    }

    /// Recognises a file.
    ///
    /// # Errors
    /// Bytes that are none of the known formats.
    pub fn recognise(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        Self::of_beginning(name, bytes, bytes.len() as u64)
    }

    /// Recognises a file of `length` bytes by its first ones.
    fn of_beginning(name: &str, first: &[u8], length: u64) -> Result<Self, Error> {
        if first.starts_with(gguf::MAGIC) {
            Ok(Format::Gguf)
        } else if safetensors::plausible(first) {
            Ok(Format::Safetensors)
        } else if dump::is_archive(first) {
            Ok(Format::Npz)
        } else if llama2c::plausible(first) {
            Ok(Format::Llama2c)
        } else if length == 0 {
            Err(Error::Damaged { what: name.to_string(), problem: "the file is empty".to_string() })
        } else {
            Err(Error::Unsupported {
                what: format!("{name}: a file of {length} bytes of unknown format"),
                problem:
                    "GGUF, safetensors, llama2.c and dumps in .npz are supported; check that the file is whole and not compressed"
                        .to_string(),
            })
        }
    }
}

impl Checkpoint {
    /// Reads a checkpoint of any known format.
    ///
    /// # Errors
    /// Files that are damaged, unknown, of an unknown architecture or tensor type, or that do not fit each other.
    pub fn read(source: &Source<'_>) -> Result<Self, Error> {
        let Source { name, weights: bytes, config, tokenizer } = *source;
        let format = Format::recognise(name, bytes)?;
        if format == Format::Npz || (format == Format::Safetensors && dump::is_dump(name, bytes)) {
            return Err(Error::NotAModel { file: name.to_string() });
        }
        let (weights, inside) = match format {
            Format::Safetensors | Format::Npz => (safetensors::read(name, bytes, config)?, None),
            Format::Llama2c => {
                let (weights, vocabulary) = llama2c::read(name, bytes)?;
                (Weights::Llama(weights), vocabulary)
            }
            Format::Gguf => {
                let (weights, vocabulary) = gguf::read(name, bytes, tokenizer.is_none())?;
                (Weights::Llama(weights), vocabulary)
            }
        };
        let rows = weights.vocabulary();
        let vocabulary = match tokenizer {
            None => inside,
            // Only llama2.c has a format of its own beside it.
            Some(bytes) if format == Format::Llama2c && !begins_like_json(bytes) => {
                Some(Vocabulary::from_llama2c(&format!("tokenizer.bin of {name}"), bytes, rows)?)
            }
            Some(bytes) => Some(Vocabulary::from_json(&format!("tokenizer.json of {name}"), bytes, rows)?),
        };
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Checkpoint { name: name.to_string(), format, sha256, weights, vocabulary })
    }
}

fn begins_like_json(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// What a file holds.
#[derive(Debug, Clone)]
pub enum Content {
    /// A model that can be run on any text.
    Checkpoint(Box<Checkpoint>),
    /// What a model's heads saw of one text.
    Dump(Dump),
}

impl Content {
    /// Reads a checkpoint or a dump, whichever the bytes are.
    ///
    /// # Errors
    /// As [`Checkpoint::read`] and [`Dump::read`].
    pub fn read(source: &Source<'_>) -> Result<Self, Error> {
        let Source { name, weights: bytes, .. } = *source;
        let is_dump = match Format::recognise(name, bytes)? {
            Format::Npz => true,
            Format::Safetensors => dump::is_dump(name, bytes),
            Format::Llama2c | Format::Gguf => false,
        };
        if is_dump {
            Dump::read(name, bytes).map(Content::Dump)
        } else {
            Checkpoint::read(source).map(|checkpoint| Content::Checkpoint(Box::new(checkpoint)))
        }
    }
}

impl Weights {
    /// Rows of the embedding.
    fn vocabulary(&self) -> usize {
        match self {
            Weights::Llama(weights) => weights.embedding.rows(),
            Weights::Bert(weights) => weights.words.rows(),
        }
    }
}

/// The weights of a model, by architecture.
#[derive(Debug, Clone)]
pub enum Weights {
    /// Decoders like Llama: llama2.c, GGUF, safetensors.
    Llama(LlamaWeights),
    /// Encoders like BERT: safetensors.
    Bert(BertWeights),
}

/// How positions turn keys and queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation {
    /// Angle of pair j at position t: t · base^{−2j/d}.
    pub base: f32,
    /// Which numbers form a pair.
    pub pairs: Pairs,
}

/// Which numbers of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// (0, 1), (2, 3), …: llama2.c and GGUF.
    Neighbours,
    /// (0, d/2), (1, d/2 + 1), …: safetensors of transformers.
    Halves,
}

/// A decoder: RMS norms before attention and before the gated feed-forward layer.
#[derive(Debug, Clone)]
pub struct LlamaWeights {
    /// Number of query heads of a layer.
    pub heads: usize,
    /// Number of key-value heads of a layer.
    pub key_value_heads: usize,
    /// Numbers of a query, a key or a value of one head.
    pub head_dimension: usize,
    /// The longest prompt that the model takes, in tokens.
    pub context: usize,
    /// How positions turn queries and keys.
    pub rotation: Rotation,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// A row for every token: vocabulary × width.
    pub embedding: Matrix,
    /// The layers, the first one first.
    pub layers: Vec<LlamaLayer>,
    /// The gain of the norm after the last layer: width.
    pub final_norm: Vec<f32>,
    /// From states to logits: vocabulary × width; the embedding if there is none.
    pub unembedding: Option<Matrix>,
}

/// A layer of a decoder.
#[derive(Debug, Clone)]
pub struct LlamaLayer {
    /// The gain of the norm before attention: width.
    pub attention_norm: Vec<f32>,
    /// Queries of all heads: heads · head dimension × width.
    pub query: Matrix,
    /// Keys of all heads: key-value heads · head dimension × width.
    pub key: Matrix,
    /// Values of all heads: key-value heads · head dimension × width.
    pub value: Matrix,
    /// From the heads' outputs to the stream: width × heads · head dimension.
    pub output: Matrix,
    /// The gain of the norm before the feed-forward layer: width.
    pub feed_forward_norm: Vec<f32>,
    /// To the gates of the hidden numbers: hidden × width.
    pub gate: Matrix,
    /// To the hidden numbers: hidden × width.
    pub up: Matrix,
    /// Back to the stream: width × hidden.
    pub down: Matrix,
}

/// An encoder: layer norms after attention and after the feed-forward layer, learned positions.
#[derive(Debug, Clone)]
pub struct BertWeights {
    /// Number of heads of a layer.
    pub heads: usize,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// A row for every token: vocabulary × width.
    pub words: Matrix,
    /// A row for every position: longest text × width.
    pub positions: Matrix,
    /// What is added to every word of a first sentence: width.
    pub segment: Vec<f32>,
    /// The norm of the sum of the three.
    pub embedding_norm: LayerNorm,
    /// The layers, the first one first.
    pub layers: Vec<BertLayer>,
}

/// A layer of an encoder.
#[derive(Debug, Clone)]
pub struct BertLayer {
    /// Queries of all heads.
    pub query: Affine,
    /// Keys of all heads.
    pub key: Affine,
    /// Values of all heads.
    pub value: Affine,
    /// From the heads' outputs to the stream.
    pub output: Affine,
    /// The norm after attention.
    pub attention_norm: LayerNorm,
    /// To the hidden numbers, then the exact GELU.
    pub up: Affine,
    /// From the hidden numbers back to the stream.
    pub down: Affine,
    /// The norm after the feed-forward layer.
    pub feed_forward_norm: LayerNorm,
}

/// x -> W x + b.
#[derive(Debug, Clone)]
pub struct Affine {
    /// The matrix W.
    pub matrix: Matrix,
    /// The bias b.
    pub bias: Vec<f32>,
}

/// x -> gain · (x − mean) / sd + bias.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    /// The factor of each number of a row.
    pub gain: Vec<f32>,
    /// What is added to each number of a row.
    pub bias: Vec<f32>,
}
