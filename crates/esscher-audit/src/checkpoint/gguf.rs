//! GGUF files, versions 2 and 3, little endian, llama architecture.
//!
//! A reader of our own, because a hostile header must neither allocate nor panic: everything is a slice of the file until a
//! tensor is copied, tensors may not overlap, and so the weights take no more room than the file.

use std::collections::BTreeMap;

use super::tensors::{POSITIVE_SINGLE, Stored, Tensors, positive_single, shown};
use super::{LONGEST_CONTEXT, LlamaLayer, LlamaWeights, Pairs, Rotation};
use crate::Error;
use crate::vocabulary::{Vocabulary, gguf::GgufVocabulary};
use crate::weights::Storage;

/// The first four bytes.
pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// The weights, and the vocabulary if it is wanted and the metadata have one.
pub(super) fn read(
    file: &str,
    bytes: &[u8],
    wanted: bool,
) -> Result<(LlamaWeights, Option<Vocabulary>), Error> {
    let (metadata, tensors) = parse(file, bytes)?;
    let weights = llama(&metadata, tensors)?;
    let vocabulary = if wanted { vocabulary(&metadata, weights.embedding.rows())? } else { None };
    Ok((weights, vocabulary))
}

/// Whether the first bytes hold the whole header; one that does not fit a file of `length` bytes is refused.
pub(super) fn announces(file: &str, first: &[u8], length: u64) -> Result<bool, Error> {
    let mut cursor = Cursor { length, ..Cursor::new(file, first) };
    match header(&mut cursor) {
        Ok(_) => Ok(true),
        Err(_) if cursor.ran_out => Ok(false),
        Err(error) => Err(error),
    }
}

/// Headers hold the vocabulary, of some megabytes; a longer one is not read.
const LONGEST_HEADER: usize = 64 << 20;

/// Goes through a file front to back; every read says what it was for.
struct Cursor<'a> {
    file: &'a str,
    /// The first bytes, or all of them.
    bytes: &'a [u8],
    position: usize,
    /// Of the file.
    length: u64,
    /// Whether more was asked for than the first bytes of the file, though the file has more.
    ran_out: bool,
}

impl<'a> Cursor<'a> {
    fn new(file: &'a str, bytes: &'a [u8]) -> Self {
        Cursor { file, bytes, position: 0, length: bytes.len() as u64, ran_out: false }
    }

    /// Bytes of the file from here on.
    fn rest(&self) -> u64 {
        self.length.saturating_sub(self.position as u64)
    }

    fn damaged(&self, problem: String) -> Error {
        Error::Damaged { what: self.file.to_string(), problem }
    }

    fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], Error> {
        if count > self.rest() {
            return Err(self.damaged(format!(
                "{what} at byte {} takes {count} bytes, the file has only {} more; it may be truncated",
                self.position,
                self.rest()
            )));
        }
        let end = usize::try_from(count).ok().and_then(|count| self.position.checked_add(count));
        let Some(end) = end.filter(|end| *end <= LONGEST_HEADER) else {
            return Err(
                self.damaged(format!("its header is longer than {LONGEST_HEADER} bytes: it is damaged"))
            );
        };
        let taken = self.bytes.get(self.position..end).ok_or_else(|| {
            self.ran_out = true;
            self.damaged(format!("{what} is not among the first {} bytes", self.bytes.len()))
        })?;
        self.position = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    fn u32(&mut self, what: &str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    fn u64(&mut self, what: &str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A count of things that take at least so many bytes each.
    fn count(&mut self, smallest: u64, what: &str) -> Result<u64, Error> {
        let count = self.u64(what)?;
        let rest = self.rest();
        if count > rest / smallest {
            return Err(self.damaged(format!(
                "{what} is {count}, more than the remaining {rest} bytes could hold; the header is damaged"
            )));
        }
        Ok(count)
    }

    fn string(&mut self, what: &str) -> Result<&'a str, Error> {
        let length = self.u64(what)?;
        let bytes = self.take(length, what)?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged(format!("{what} is not UTF-8 text")))
    }
}

/// A metadata value; arrays stay where they are in the file, already checked.
#[derive(Clone, Copy)]
enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Boolean(bool),
    Text(&'a str),
    Array { kind: u32, count: u64, bytes: &'a [u8] },
}

impl Value<'_> {
    /// A number, or 1 for what is true and 0 for what is not.
    fn number(&self) -> Option<f64> {
        match *self {
            Value::Unsigned(number) => Some(number as f64),
            Value::Signed(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            Value::Boolean(truth) => Some(f64::from(u8::from(truth))),
            Value::Text(_) | Value::Array { .. } => None,
        }
    }
}

/// Type numbers of metadata values.
const STRING: u32 = 8;
const ARRAY: u32 = 9;

fn value<'a>(cursor: &mut Cursor<'a>, kind: u32, key: &str) -> Result<Value<'a>, Error> {
    Ok(match kind {
        0 => Value::Unsigned(u64::from(u8::from_le_bytes(cursor.array(key)?))),
        1 => Value::Signed(i64::from(i8::from_le_bytes(cursor.array(key)?))),
        2 => Value::Unsigned(u64::from(u16::from_le_bytes(cursor.array(key)?))),
        3 => Value::Signed(i64::from(i16::from_le_bytes(cursor.array(key)?))),
        4 => Value::Unsigned(u64::from(cursor.u32(key)?)),
        5 => Value::Signed(i64::from(i32::from_le_bytes(cursor.array(key)?))),
        6 => Value::Float(f64::from(f32::from_le_bytes(cursor.array(key)?))),
        7 => Value::Boolean(cursor.array::<1>(key)? != [0]),
        STRING => Value::Text(cursor.string(key)?),
        10 => Value::Unsigned(cursor.u64(key)?),
        11 => Value::Signed(i64::from_le_bytes(cursor.array(key)?)),
        12 => Value::Float(f64::from_le_bytes(cursor.array(key)?)),
        _ => return Err(cursor.damaged(format!("{key} has the unknown value type {kind}"))),
    })
}

fn array<'a>(cursor: &mut Cursor<'a>, key: &str) -> Result<Value<'a>, Error> {
    let kind = cursor.u32(key)?;
    if kind == ARRAY {
        return Err(Error::Unsupported {
            what: format!("{}: {key}", cursor.file),
            problem: "it is an array of arrays; metadata here are numbers, texts and arrays of them"
                .to_string(),
        });
    }
    let smallest = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        _ => 8,
    };
    let count = cursor.count(smallest, &format!("the length of {key}"))?;
    let start = cursor.position;
    for _ in 0..count {
        value(cursor, kind, key)?;
    }
    Ok(Value::Array { kind, count, bytes: cursor.bytes.get(start..cursor.position).unwrap_or_default() })
}

/// The metadata of a file.
struct Metadata<'a> {
    file: &'a str,
    values: BTreeMap<&'a str, Value<'a>>,
}

impl<'a> Metadata<'a> {
    fn wrong(&self, key: &str, expected: &str) -> Error {
        Error::Damaged {
            what: self.file.to_string(),
            problem: format!("metadata `{key}` must be {expected}"),
        }
    }

    fn missing(&self, key: &str) -> Error {
        Error::Damaged { what: self.file.to_string(), problem: format!("metadata `{key}` is missing") }
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, Error> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(key, "a text")),
        }
    }

    fn size(&self, key: &str) -> Result<Option<usize>, Error> {
        let size = match self.values.get(key) {
            None => return Ok(None),
            Some(Value::Unsigned(size)) => usize::try_from(*size).ok(),
            Some(Value::Signed(size)) => usize::try_from(*size).ok(),
            Some(_) => None,
        };
        size.map(Some).ok_or_else(|| self.wrong(key, "one number that is not negative"))
    }

    fn positive(&self, key: &str) -> Result<usize, Error> {
        match self.size(key)? {
            None => Err(self.missing(key)),
            Some(0) => Err(self.wrong(key, "positive")),
            Some(size) => Ok(size),
        }
    }

    fn positive_float(&self, key: &str) -> Result<Option<f32>, Error> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Float(float)) if positive_single(*float).is_some() => Ok(positive_single(*float)),
            Some(Value::Float(float)) => Err(self.wrong(key, &format!("{POSITIVE_SINGLE}, found {float:e}"))),
            Some(_) => Err(self.wrong(key, POSITIVE_SINGLE)),
        }
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>, Error> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Boolean(boolean)) => Ok(Some(*boolean)),
            Some(_) => Err(self.wrong(key, "true or false")),
        }
    }

    /// The entries of an array.
    fn entries(&self, key: &'a str) -> Result<Option<impl Iterator<Item = Result<Value<'a>, Error>>>, Error> {
        match self.values.get(key) {
            None => Ok(None),
            Some(Value::Array { kind, count, bytes }) => {
                let (kind, mut cursor) = (*kind, Cursor::new(self.file, bytes));
                Ok(Some((0..*count).map(move |_| value(&mut cursor, kind, key))))
            }
            Some(_) => Err(self.wrong(key, "an array")),
        }
    }

    fn texts(&self, key: &'a str) -> Result<Option<Vec<&'a str>>, Error> {
        let text = |entry: Result<Value<'a>, Error>| match entry? {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(key, "an array of texts")),
        };
        self.entries(key)?.map(|entries| entries.map(text).collect()).transpose()
    }

    /// Numbers of four bytes: read as f32 they take no more room than in the file.
    fn numbers(&self, key: &'a str) -> Result<Option<Vec<f32>>, Error> {
        if matches!(self.values.get(key), Some(Value::Array { kind, .. }) if !(4..=6).contains(kind)) {
            return Err(self.wrong(key, "an array of four-byte numbers"));
        }
        let number = |entry: Result<Value<'a>, Error>| match entry? {
            Value::Float(number) => Ok(number as f32),
            Value::Signed(number) => Ok(number as f32),
            Value::Unsigned(number) => Ok(number as f32),
            _ => Err(self.wrong(key, "an array of numbers")),
        };
        self.entries(key)?.map(|entries| entries.map(number).collect()).transpose()
    }
}

/// What a tensor's entry in the header says.
struct Announced<'a> {
    name: &'a str,
    storage: Storage,
    shape: Vec<usize>,
    /// From the start of the data.
    offset: u64,
    bytes: u64,
}

fn parse<'a>(file: &'a str, bytes: &'a [u8]) -> Result<(Metadata<'a>, Tensors<'a>), Error> {
    let Header { metadata, announced, data } = header(&mut Cursor::new(file, bytes))?;
    let data = usize::try_from(data).ok().and_then(|data| bytes.get(data..)).unwrap_or_default();
    let mut tensors = Tensors::new(file);
    for Announced { name, storage, shape, offset, bytes } in announced {
        let taken = data.get(offset as usize..).and_then(|rest| rest.get(..bytes as usize));
        tensors.insert(name, Stored { storage, shape, bytes: taken.unwrap_or_default() })?;
    }
    Ok((metadata, tensors))
}

/// What stands before the data.
struct Header<'a> {
    metadata: Metadata<'a>,
    /// By their offsets; they fit the file and do not overlap.
    announced: Vec<Announced<'a>>,
    /// Where the data begin.
    data: u64,
}

fn header<'a>(cursor: &mut Cursor<'a>) -> Result<Header<'a>, Error> {
    let file = cursor.file;
    if cursor.take(4, "the magic")? != MAGIC {
        return Err(cursor.damaged("the file does not begin with `GGUF`".to_string()));
    }
    let version = cursor.u32("the version")?;
    if !(2..=3).contains(&version) {
        let swapped = (2..=3).contains(&version.swap_bytes());
        let version = if swapped { "big endian".to_string() } else { format!("version {version}") };
        return Err(Error::Unsupported {
            what: format!("{file}: GGUF {version}"),
            problem:
                "only versions 2 and 3, little endian, are supported; convert it with a current llama.cpp"
                    .to_string(),
        });
    }
    // A tensor takes at least its name's length, sizes' count, type and offset; a value its key's length, type and a byte.
    let tensor_count = cursor.count(24, "the number of tensors")?;
    let value_count = cursor.count(13, "the number of metadata values")?;
    let mut values = BTreeMap::new();
    for _ in 0..value_count {
        let key = cursor.string("a metadata key")?;
        let kind = cursor.u32("a metadata type")?;
        let named = format!("metadata `{}`", shown(key));
        let value = if kind == ARRAY { array(cursor, &named)? } else { value(cursor, kind, &named)? };
        if values.insert(key, value).is_some() {
            return Err(cursor.damaged(format!("{named} occurs twice")));
        }
    }
    let metadata = Metadata { file, values };
    let mut announced = Vec::new();
    for _ in 0..tensor_count {
        announced.push(announcement(cursor)?);
    }
    let alignment = metadata.size("general.alignment")?.unwrap_or(32);
    if !alignment.is_power_of_two() {
        return Err(metadata.wrong("general.alignment", "a power of two"));
    }
    announced.sort_by_key(|tensor| tensor.offset);
    let data = (cursor.position as u64).checked_next_multiple_of(alignment as u64);
    let data = match data.filter(|data| *data <= cursor.length) {
        Some(data) => data,
        None if announced.is_empty() => cursor.length,
        None => return Err(cursor.damaged("the file ends before the data of its tensors".to_string())),
    };
    check_places(cursor, &announced, alignment as u64, data)?;
    Ok(Header { metadata, announced, data })
}

fn announcement<'a>(cursor: &mut Cursor<'a>) -> Result<Announced<'a>, Error> {
    let name = cursor.string("a tensor's name")?;
    let named = format!("tensor `{}`", shown(name));
    let dimensions = cursor.u32(&named)?;
    if !(1..=4).contains(&dimensions) {
        return Err(cursor.damaged(format!("{named} has {dimensions} dimensions, expected 1 to 4")));
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let size = cursor.u64(&named)?;
        let size = usize::try_from(size).ok().filter(|size| *size > 0);
        shape.push(size.ok_or_else(|| cursor.damaged(format!("{named} has a size that is zero or huge")))?);
    }
    let kind = cursor.u32(&named)?;
    let storage = storage(kind).ok_or_else(|| Error::Unsupported {
        what: format!("{}: {named} of type {}", cursor.file, type_name(kind)),
        problem:
            "only F32, F16, BF16, Q8_0 and Q4_1 are supported; requantise the original with llama-quantize to one of them"
                .to_string(),
    })?;
    let offset = cursor.u64(&named)?;
    let (numbers, size) = storage.block();
    // The first size is that of a row.
    if shape.first().is_some_and(|row| row % numbers != 0) {
        return Err(cursor
            .damaged(format!("{named}: rows of {shape:?} are not a whole number of blocks of {numbers}")));
    }
    let total = shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size as u64));
    let bytes = total.and_then(|total| (total / numbers as u64).checked_mul(size as u64));
    let bytes =
        bytes.ok_or_else(|| cursor.damaged(format!("{named} of sizes {shape:?} is larger than any file")))?;
    shape.reverse();
    Ok(Announced { name, storage, shape, offset, bytes })
}

/// Refuses tensors that overlap or do not fit the file, and a file that goes on long after them.
fn check_places(
    cursor: &Cursor<'_>,
    announced: &[Announced<'_>],
    alignment: u64,
    data: u64,
) -> Result<(), Error> {
    let length = cursor.length - data;
    let mut free = 0;
    for Announced { name, offset, bytes, .. } in announced {
        let what = format!("{}: tensor `{}`", cursor.file, shown(name));
        let damaged = |problem: String| Error::Damaged { what, problem };
        if offset % alignment != 0 {
            return Err(damaged(format!(
                "its offset {offset} is not a multiple of the alignment {alignment}"
            )));
        }
        if *offset < free {
            return Err(damaged(format!("it begins at {offset}, inside another tensor that ends at {free}")));
        }
        let Some(end) = offset.checked_add(*bytes).filter(|end| *end <= length) else {
            return Err(damaged(format!(
                "its {bytes} bytes from {offset} do not fit the {length} bytes of data; the file may be truncated"
            )));
        };
        free = end;
    }
    // Writers pad the last tensor.
    if length - free > alignment.max(LARGEST_PADDING) {
        return Err(cursor.damaged(format!(
            "its last tensor ends at byte {}, the file goes on to byte {}; it is damaged",
            data + free,
            cursor.length
        )));
    }
    Ok(())
}

/// As much may follow the last tensor whatever the alignment.
const LARGEST_PADDING: u64 = 1 << 16;

fn storage(kind: u32) -> Option<Storage> {
    match kind {
        0 => Some(Storage::F32),
        1 => Some(Storage::F16),
        3 => Some(Storage::Q4_1),
        8 => Some(Storage::Q8_0),
        30 => Some(Storage::Bf16),
        _ => None,
    }
}

fn type_name(kind: u32) -> String {
    let name = match kind {
        2 => "Q4_0",
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        12 => "Q4_K",
        13 => "Q5_K",
        14 => "Q6_K",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => return format!("number {kind}"),
    };
    name.to_string()
}

/// What is read, and what changes nothing without that; the rest of a key after `llama.`.
const KNOWN: &[&str] = &[
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
];

/// What relatives of this architecture do besides, and the values at which it changes nothing.
const NEUTRAL: &[(&str, &[f64])] = &[
    ("attention.causal", &[1.0]),
    ("attention.chunk_size", &[0.0]),
    ("attention.clamp_kqv", &[0.0]),
    ("attention.max_alibi_bias", &[0.0]),
    ("attention.scale", &[0.0]),
    ("attention.sliding_window", &[0.0]),
    ("attention.temperature_scale", &[0.0]),
    ("attn_logit_softcapping", &[0.0]),
    ("embedding_scale", &[0.0, 1.0]),
    ("final_logit_softcapping", &[0.0]),
    ("logit_scale", &[0.0, 1.0]),
    ("max_alibi_bias", &[0.0]),
    ("residual_scale", &[0.0, 1.0]),
    ("rope.scaling.attn_factor", &[1.0]),
    ("use_parallel_residual", &[0.0]),
];

/// Whether a setting may change what a layer computes: all about attention, rotation and scales does that is not known here.
fn changes_layers(key: &str, value: &Value<'_>) -> bool {
    let Some(setting) = key.strip_prefix("llama.").filter(|setting| !KNOWN.contains(setting)) else {
        return false;
    };
    match NEUTRAL.iter().find(|(known, _)| *known == setting) {
        Some((_, neutral)) => !value.number().is_some_and(|number| neutral.contains(&number)),
        None => {
            let parts = ["scale", "softcap"];
            setting.starts_with("attention.")
                || setting.starts_with("rope.")
                || parts.iter().any(|part| setting.contains(part))
        }
    }
}

fn llama(metadata: &Metadata<'_>, mut tensors: Tensors<'_>) -> Result<LlamaWeights, Error> {
    let file = metadata.file;
    let unsupported = |what: String, problem: &str| Error::Unsupported {
        what: format!("{file}: {what}"),
        problem: problem.to_string(),
    };
    let architecture =
        metadata.text("general.architecture")?.ok_or_else(|| metadata.missing("general.architecture"))?;
    if architecture != "llama" {
        return Err(unsupported(
            format!("architecture `{}`", shown(architecture)),
            "only GGUF files of architecture `llama` are supported; record queries, keys and values of others as a dump",
        ));
    }
    if metadata.size("llama.expert_count")?.is_some_and(|experts| experts > 0) {
        return Err(unsupported(
            "a mixture of experts".to_string(),
            "record queries, keys and values as a dump",
        ));
    }
    // Without a type, a factor means linear scaling; 0 and 1 scale nothing.
    let scales = |key: &str| match metadata.values.get(key) {
        None => false,
        Some(Value::Float(factor)) => *factor != 0.0 && *factor != 1.0,
        Some(_) => true,
    };
    let scaled = match metadata.text("llama.rope.scaling.type")? {
        Some(scaling) => scaling != "none",
        None => scales("llama.rope.scaling.factor") || scales("llama.rope.scale_linear"),
    };
    if scaled || tensors.contains("rope_freqs.weight") {
        return Err(unsupported(
            "rotation with scaled frequencies".to_string(),
            "only one base for all frequencies is supported; record queries, keys and values as a dump",
        ));
    }
    if let Some((key, value)) = metadata.values.iter().find(|(key, value)| changes_layers(key, value)) {
        let found = value.number().map_or(String::new(), |number| format!(" = {number}"));
        return Err(unsupported(
            format!("metadata `{}`{found}", shown(key)),
            "it may change what a layer computes; record queries, keys and values as a dump",
        ));
    }
    let layers = metadata.positive("llama.block_count")?;
    let context = metadata.positive("llama.context_length")?;
    if context > LONGEST_CONTEXT {
        return Err(
            metadata.wrong("llama.context_length", &format!("at most {LONGEST_CONTEXT}, found {context}"))
        );
    }
    let width = metadata.positive("llama.embedding_length")?;
    let hidden = metadata.positive("llama.feed_forward_length")?;
    let heads = metadata.positive("llama.attention.head_count")?;
    let key_value_heads = match metadata.size("llama.attention.head_count_kv")? {
        None => heads,
        Some(_) => metadata.positive("llama.attention.head_count_kv")?,
    };
    let head_dimension = match metadata.size("llama.attention.key_length")? {
        Some(length) => length,
        None if width % heads == 0 => width / heads,
        None => return Err(metadata.wrong("llama.attention.head_count", "a divisor of the embedding length")),
    };
    if head_dimension == 0 || head_dimension % 2 != 0 {
        return Err(unsupported(
            format!("heads of {head_dimension} numbers"),
            "expected an even positive number, because numbers turn in pairs",
        ));
    }
    if metadata.size("llama.attention.value_length")?.is_some_and(|length| length != head_dimension) {
        return Err(unsupported(
            "values of another dimension than keys".to_string(),
            "only equal dimensions are supported",
        ));
    }
    if metadata.size("llama.rope.dimension_count")?.is_some_and(|count| count != head_dimension) {
        return Err(unsupported(
            "rotation of a part of each head".to_string(),
            "only the rotation of whole heads is supported",
        ));
    }
    if heads % key_value_heads != 0 {
        return Err(metadata.wrong("llama.attention.head_count_kv", "a divisor of the number of heads"));
    }
    let (Some(query_width), Some(key_value_width)) =
        (heads.checked_mul(head_dimension), key_value_heads.checked_mul(head_dimension))
    else {
        return Err(metadata.wrong("llama.attention.key_length", "smaller: the heads do not fit any file"));
    };
    let norm_epsilon = metadata
        .positive_float("llama.attention.layer_norm_rms_epsilon")?
        .ok_or_else(|| metadata.missing("llama.attention.layer_norm_rms_epsilon"))?;
    let base = metadata.positive_float("llama.rope.freq_base")?.unwrap_or(10_000.0);

    let vocabulary = tensors.shape("token_embd.weight")?.first().copied().unwrap_or(0);
    let embedding = tensors.matrix("token_embd.weight", vocabulary, width)?;
    // No room is reserved for the announced number of layers: a file without them ends here.
    let mut read = Vec::new();
    for layer in 0..layers {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        read.push(LlamaLayer {
            attention_norm: tensors.vector(&name("attn_norm"), width)?,
            query: tensors.matrix(&name("attn_q"), query_width, width)?,
            key: tensors.matrix(&name("attn_k"), key_value_width, width)?,
            value: tensors.matrix(&name("attn_v"), key_value_width, width)?,
            output: tensors.matrix(&name("attn_output"), width, query_width)?,
            feed_forward_norm: tensors.vector(&name("ffn_norm"), width)?,
            gate: tensors.matrix(&name("ffn_gate"), hidden, width)?,
            up: tensors.matrix(&name("ffn_up"), hidden, width)?,
            down: tensors.matrix(&name("ffn_down"), width, hidden)?,
        });
    }
    let final_norm = tensors.vector("output_norm.weight", width)?;
    let unembedding = match tensors.contains("output.weight") {
        true => Some(tensors.matrix("output.weight", vocabulary, width)?),
        false => None,
    };
    tensors.finish("a llama model")?;
    Ok(LlamaWeights {
        heads,
        key_value_heads,
        head_dimension,
        context,
        rotation: Rotation { base, pairs: Pairs::Neighbours },
        norm_epsilon,
        embedding,
        layers: read,
        final_norm,
        unembedding,
    })
}

fn vocabulary(metadata: &Metadata<'_>, rows: usize) -> Result<Option<Vocabulary>, Error> {
    let Some(model) = metadata.text("tokenizer.ggml.model")?.filter(|model| *model != "none") else {
        return Ok(None);
    };
    let key = "tokenizer.ggml.tokens";
    let tokens = metadata.texts(key)?.ok_or_else(|| metadata.missing(key))?;
    let begin = metadata.size("tokenizer.ggml.bos_token_id")?;
    let parts = GgufVocabulary {
        file: metadata.file,
        model,
        split: metadata.text("tokenizer.ggml.pre")?,
        tokens,
        kinds: metadata.numbers("tokenizer.ggml.token_type")?,
        scores: metadata.numbers("tokenizer.ggml.scores")?,
        merges: metadata.texts("tokenizer.ggml.merges")?,
        begin,
        puts_begin: metadata.boolean("tokenizer.ggml.add_bos_token")?,
        puts_space: metadata.boolean("tokenizer.ggml.add_space_prefix")?,
    };
    Vocabulary::from_gguf(parts, rows).map(Some)
}
