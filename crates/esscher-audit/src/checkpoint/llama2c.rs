//! llama2.c files: seven integers, then single-precision tensors in a fixed order; a tokenizer may follow.

use super::tensors::vector;
use super::{LlamaLayer, LlamaWeights, Pairs, Rotation};
use crate::Error;
use crate::vocabulary::Vocabulary;
use crate::weights::{Matrix, Storage};

const HEADER: usize = 28;

/// No token of a tokenizer takes more bytes.
const LONGEST_TOKEN: u64 = 4096;

/// The sizes that the header states, once they make sense.
struct Header {
    width: usize,
    hidden: usize,
    layers: usize,
    heads: usize,
    key_value_heads: usize,
    vocabulary: usize,
    /// A negative size of the vocabulary says that the last matrix is not the embedding.
    own_unembedding: bool,
    context: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut integers = [0_i32; 7];
        let header = bytes.get(..HEADER).ok_or_else(|| {
            format!("a llama2.c header has {HEADER} bytes, the file has only {}", bytes.len())
        })?;
        for (integer, bytes) in integers.iter_mut().zip(header.chunks_exact(4)) {
            *integer = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let [width, hidden, layers, heads, key_value_heads, vocabulary, context] = integers;
        let size = |name: &str, integer: i32| match usize::try_from(integer) {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(format!("{name} is {integer} in the llama2.c header, expected a positive number")),
        };
        let header = Header {
            width: size("the width", width)?,
            hidden: size("the hidden width", hidden)?,
            layers: size("the number of layers", layers)?,
            heads: size("the number of heads", heads)?,
            key_value_heads: size("the number of key-value heads", key_value_heads)?,
            vocabulary: vocabulary.unsigned_abs() as usize,
            own_unembedding: vocabulary < 0,
            context: size("the context", context)?,
        };
        if header.vocabulary == 0 {
            return Err("the vocabulary of the llama2.c header is empty".to_string());
        }
        let Header { width, heads, key_value_heads, .. } = header;
        if width % heads != 0 || (width / heads) % 2 != 0 {
            return Err(format!("{heads} heads do not divide the width {width} into pairs of numbers"));
        }
        if heads % key_value_heads != 0 {
            return Err(format!("{heads} heads cannot share {key_value_heads} key-value heads evenly"));
        }
        Ok(header)
    }

    /// Bytes of the whole checkpoint; `None` beyond what can be counted.
    fn length(&self) -> Option<usize> {
        let head_dimension = self.width / self.heads;
        let key_value_width = self.key_value_heads * head_dimension;
        let product = |a: usize, b: usize| (a as u128) * (b as u128);
        let layer = 2 * product(self.width, self.width)
            + 2 * product(self.width, key_value_width)
            + 3 * product(self.width, self.hidden)
            + 2 * self.width as u128;
        let unembedding = if self.own_unembedding { product(self.vocabulary, self.width) } else { 0 };
        let numbers = product(self.vocabulary, self.width)
            + layer * self.layers as u128
            + self.width as u128
            + product(self.context, head_dimension)
            + unembedding;
        usize::try_from(4 * numbers + HEADER as u128).ok()
    }
}

impl Header {
    /// The bytes of the checkpoint in a file of so many, which may hold a tokenizer behind it.
    fn weights_in(&self, found: u64) -> Result<usize, String> {
        let Some(length) = self.length().filter(|length| *length as u64 <= found) else {
            let expected = self.length().map_or("more".to_string(), |length| length.to_string());
            return Err(format!(
                "the llama2.c header announces {expected} bytes, the file has {found}; it may be truncated or of another format"
            ));
        };
        let (rest, most) = (found - length as u64, self.vocabulary as u64 * LONGEST_TOKEN);
        if rest > most {
            return Err(format!(
                "the llama2.c header announces {length} bytes, the file has {rest} more, too many for a tokenizer of {} tokens",
                self.vocabulary
            ));
        }
        Ok(length)
    }
}

/// Whether the bytes begin like a llama2.c file: sizes that make sense and of which none exceeds a million (the
/// context neither, so that it is below what other formats may say).
pub(super) fn plausible(bytes: &[u8]) -> bool {
    Header::read(bytes).is_ok_and(|header| {
        let Header { width, hidden, layers, vocabulary, context, .. } = header;
        [width, hidden, layers, vocabulary, context].iter().all(|size| *size <= 1 << 20)
    })
}

/// Whether the header, which is in the first bytes, fits a file of `length` bytes: always, or it is refused.
pub(super) fn announces(file: &str, first: &[u8], length: u64) -> Result<bool, Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    Header::read(first).and_then(|header| header.weights_in(length)).map_err(damaged)?;
    Ok(true)
}

/// Reads the weights, and the tokenizer if one follows.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<(LlamaWeights, Option<Vocabulary>), Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    let header = Header::read(bytes).map_err(damaged)?;
    let length = header.weights_in(bytes.len() as u64).map_err(damaged)?;
    let (weights, rest) = bytes.split_at(length.min(bytes.len()));
    let weights = read_weights(&header, weights.get(HEADER..).unwrap_or_default())?;
    let vocabulary = match rest {
        [] => None,
        rest => Some(Vocabulary::from_llama2c(&format!("the tokenizer in {file}"), rest, header.vocabulary)?),
    };
    Ok((weights, vocabulary))
}

/// The next numbers of the file. The length of the file has been checked against the sum of all requests.
struct Numbers<'a> {
    rest: &'a [u8],
}

impl<'a> Numbers<'a> {
    fn take(&mut self, numbers: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at((4 * numbers).min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Matrix, Error> {
        let bytes = self.take(rows * columns).to_vec();
        Matrix::from_bytes(name, Storage::F32, rows, columns, bytes)
    }

    fn matrices(
        &mut self,
        name: &str,
        layers: usize,
        rows: usize,
        columns: usize,
    ) -> Result<std::vec::IntoIter<Matrix>, Error> {
        let matrices: Result<Vec<_>, _> =
            (0..layers).map(|layer| self.matrix(&format!("{name}.{layer}"), rows, columns)).collect();
        Ok(matrices?.into_iter())
    }

    fn vectors(
        &mut self,
        name: &str,
        layers: usize,
        width: usize,
    ) -> Result<std::vec::IntoIter<Vec<f32>>, Error> {
        let vectors: Result<Vec<_>, _> = (0..layers)
            .map(|layer| vector(&format!("{name}.{layer}"), Storage::F32, self.take(width)))
            .collect();
        Ok(vectors?.into_iter())
    }
}

fn read_weights(header: &Header, bytes: &[u8]) -> Result<LlamaWeights, Error> {
    let Header { width, hidden, layers, heads, key_value_heads, vocabulary, own_unembedding, context } =
        *header;
    let head_dimension = width / heads;
    let key_value_width = key_value_heads * head_dimension;
    let mut numbers = Numbers { rest: bytes };
    // The names and the order of run.c: each tensor holds all layers.
    let embedding = numbers.matrix("token_embedding_table", vocabulary, width)?;
    let mut attention_norm = numbers.vectors("rms_att_weight", layers, width)?;
    let mut query = numbers.matrices("wq", layers, width, width)?;
    let mut key = numbers.matrices("wk", layers, key_value_width, width)?;
    let mut value = numbers.matrices("wv", layers, key_value_width, width)?;
    let mut output = numbers.matrices("wo", layers, width, width)?;
    let mut feed_forward_norm = numbers.vectors("rms_ffn_weight", layers, width)?;
    let mut gate = numbers.matrices("w1", layers, hidden, width)?;
    let mut down = numbers.matrices("w2", layers, width, hidden)?;
    let mut up = numbers.matrices("w3", layers, hidden, width)?;
    let final_norm = vector("rms_final_weight", Storage::F32, numbers.take(width))?;
    // Cosines and sines of the positions, which everybody computes anew.
    numbers.take(context * head_dimension);
    let unembedding = if own_unembedding { Some(numbers.matrix("wcls", vocabulary, width)?) } else { None };
    let mut layer = || {
        Some(LlamaLayer {
            attention_norm: attention_norm.next()?,
            query: query.next()?,
            key: key.next()?,
            value: value.next()?,
            output: output.next()?,
            feed_forward_norm: feed_forward_norm.next()?,
            gate: gate.next()?,
            up: up.next()?,
            down: down.next()?,
        })
    };
    Ok(LlamaWeights {
        heads,
        key_value_heads,
        head_dimension,
        context,
        rotation: Rotation { base: 10_000.0, pairs: Pairs::Neighbours },
        norm_epsilon: 1e-5,
        embedding,
        layers: std::iter::from_fn(&mut layer).collect(),
        final_norm,
        unembedding,
    })
}
