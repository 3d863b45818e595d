//! Safetensors as the transformers library writes them, with the `config.json` beside: Llama and BERT.

use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use super::json;
use super::tensors::{POSITIVE_SINGLE, Stored, Tensors, positive_single, shown, without_byte_order_mark};
use super::{
    Affine, BertLayer, BertWeights, LONGEST_CONTEXT, LayerNorm, LlamaLayer, LlamaWeights, Pairs, Rotation,
    Weights,
};
use crate::Error;
use crate::weights::Storage;

/// Whether the bytes begin like safetensors: the length of a header, then the header, an object.
pub(super) fn plausible(bytes: &[u8]) -> bool {
    // The format's own limit on headers: 100 MB.
    matches!(bytes, [a, b, c, d, 0, 0, 0, 0, b'{', ..] if u32::from_le_bytes([*a, *b, *c, *d]) <= 100_000_000)
}

/// Whether the first bytes hold the whole header; one that does not fit a file of `length` bytes is refused.
pub(super) fn announces(file: &str, first: &[u8], length: u64) -> Result<bool, Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    let size = match first {
        [a, b, c, d, ..] => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => return Ok(false),
    };
    let begin = 8 + size;
    if begin > length {
        let sentence =
            format!("not sound safetensors: the header announces {size} bytes, the file has {length}");
        return Err(damaged(format!("{sentence}; the file may be truncated")));
    }
    let Some(header) = first.get(8..begin as usize) else { return Ok(false) };
    let header: Metadata = serde_json::from_slice(header).map_err(|error| not_sound(file, &error))?;
    let announced = header.data_len() as u128 + u128::from(begin);
    if announced != u128::from(length) {
        let remedy = match announced > u128::from(length) {
            true => "it may be truncated",
            false => "it is longer than its header announces",
        };
        return Err(damaged(format!(
            "not sound safetensors: its tensors end at byte {announced}, the file has {length} bytes; {remedy}"
        )));
    }
    Ok(true)
}

/// What the library says of a header; it repeats whatever stands there.
fn not_sound(file: &str, error: &dyn std::fmt::Display) -> Error {
    let problem = format!("not sound safetensors: {}; save it again", shown(&error.to_string()));
    Error::Damaged { what: file.to_string(), problem }
}

/// The header of a file, and where its tensors are.
pub(super) fn parse<'a>(file: &str, bytes: &'a [u8]) -> Result<SafeTensors<'a>, Error> {
    let damaged = |problem: String| Error::Damaged { what: file.to_string(), problem };
    let parsed = SafeTensors::deserialize(bytes).map_err(|error| not_sound(file, &error))?;
    // The library takes the last of two tensors of one name.
    let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length) as usize);
    let header = bytes.get(8..8_usize.saturating_add(length)).unwrap_or_default();
    json::parse(header).map_err(|problem| damaged(format!("its header: {problem}")))?;
    Ok(parsed)
}

/// All tensors that are needed.
pub(super) fn tensors<'a>(
    file: &'a str,
    parsed: &'a SafeTensors<'a>,
    needless: impl Fn(&str) -> bool,
) -> Result<Tensors<'a>, Error> {
    let mut tensors = Tensors::new(file);
    for (name, tensor) in parsed.iter().filter(|(name, _)| !needless(name)) {
        let storage = match tensor.dtype() {
            Dtype::F32 => Storage::F32,
            Dtype::F16 => Storage::F16,
            Dtype::BF16 => Storage::Bf16,
            other => {
                return Err(Error::Unsupported {
                    what: format!("{file}: tensor `{}` of type {other}", shown(name)),
                    problem: "only F32, F16 and BF16 are supported; save the model in one of them"
                        .to_string(),
                });
            }
        };
        tensors.insert(name, Stored { storage, shape: tensor.shape().to_vec(), bytes: tensor.data() })?;
    }
    Ok(tensors)
}

/// The weights of a model with its configuration.
pub(super) fn read(file: &str, bytes: &[u8], config: Option<&[u8]>) -> Result<Weights, Error> {
    let parsed = parse(file, bytes)?;
    let config = config.ok_or_else(|| {
        let (part, beside) = ("the sizes of the model", "config.json");
        Error::MissingFile { file: file.to_string(), part, beside }
    })?;
    let config = Configuration::read(file, config)?;
    match config.text("model_type")? {
        Some("llama") => llama(file, &config, &parsed).map(Weights::Llama),
        Some("bert") => bert(file, &config, &parsed).map(Weights::Bert),
        other => Err(config.unsupported(
            &format!("model type `{}`", shown(other.unwrap_or("none"))),
            "only `llama` and `bert` are supported; record queries, keys and values of others as a dump",
        )),
    }
}

/// The key of the longest text.
const CONTEXT: &str = "max_position_embeddings";

/// The values of a `config.json`, and the file for messages.
struct Configuration {
    file: String,
    values: Value,
}

impl Configuration {
    fn read(file: &str, bytes: &[u8]) -> Result<Self, Error> {
        let file = format!("config.json of {file}");
        match json::parse(without_byte_order_mark(bytes)) {
            Ok(values @ Value::Object(_)) => Ok(Configuration { file, values }),
            Ok(_) => Err(Error::Damaged { what: file, problem: "expected an object".to_string() }),
            Err(problem) => Err(Error::Damaged { what: file, problem }),
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str) -> Error {
        let problem = match self.get(key) {
            None => format!("`{key}` is missing; expected {expected}"),
            Some(value) => format!("`{key}` is {}, expected {expected}", shown(&value.to_string())),
        };
        Error::Damaged { what: self.file.clone(), problem }
    }

    fn unsupported(&self, what: &str, problem: &str) -> Error {
        Error::Unsupported { what: format!("{}: {what}", self.file), problem: problem.to_string() }
    }

    fn text(&self, key: &str) -> Result<Option<&str>, Error> {
        let text = |value: &'_ Value| value.is_string();
        match self.get(key) {
            Some(value) if !text(value) => Err(self.wrong(key, "a text")),
            value => Ok(value.and_then(Value::as_str)),
        }
    }

    /// A size that keeps every product of three of them countable.
    fn size(&self, key: &str) -> Result<Option<usize>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let largest = if key == CONTEXT { LONGEST_CONTEXT } else { 1 << 20 };
        match value.as_u64().and_then(|size| usize::try_from(size).ok()) {
            Some(size) if (1..=largest).contains(&size) => Ok(Some(size)),
            _ => Err(self.wrong(key, &format!("a number from 1 to {largest}"))),
        }
    }

    fn positive(&self, key: &str) -> Result<usize, Error> {
        self.size(key)?.ok_or_else(|| self.wrong(key, "a positive number"))
    }

    fn float(&self, key: &str) -> Result<Option<f32>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let float = value.as_f64().and_then(positive_single);
        float.map(Some).ok_or_else(|| self.wrong(key, POSITIVE_SINGLE))
    }

    fn truth(&self, key: &str) -> Result<Option<bool>, Error> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, "true or false"))
    }

    /// Refuses a size of the vocabulary that the embedding does not have.
    fn check_vocabulary(&self, rows: usize) -> Result<(), Error> {
        match self.get("vocab_size") {
            Some(size) if size.as_u64() != Some(rows as u64) => {
                Err(self.wrong("vocab_size", &format!("{rows}, the rows of the embedding")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what relatives of our architectures do besides; where it changes nothing, it may be said.
    fn only_usual(&self) -> Result<(), Error> {
        let factors = [
            "partial_rotary_factor",
            "rotary_pct",
            "scale_emb",
            "logit_scale",
            "logits_scaling",
            "embedding_multiplier",
            "residual_multiplier",
        ];
        for key in factors.into_iter().filter(|key| !self.get(key).is_some_and(is_one)) {
            self.only(key, &[])?;
        }
        for key in [
            "alibi",
            "attention_chunk_size",
            "attention_multiplier",
            "attn_logit_softcapping",
            "attn_temperature_tuning",
            "clip_qkv",
            "compression_config",
            "final_logit_softcapping",
            "no_rope_layer_interval",
            "num_local_experts",
            "quantization_config",
            "rope_interleave",
            "rope_local_base_freq",
            "scale_depth",
            "use_parallel_residual",
            "use_qk_norm",
        ] {
            self.only(key, &[Value::Bool(false)])?;
        }
        // Code that comes with a checkpoint may do anything.
        self.only("auto_map", &[])?;
        self.only("scale_attn_weights", &[Value::Bool(true)])?;
        self.only_list_of("layer_types", &Value::from("full_attention"))
    }

    /// Refuses a list that would change the model in one of its entries.
    fn only_list_of(&self, key: &str, entry: &Value) -> Result<(), Error> {
        let is_usual = |values: &Vec<Value>| !values.is_empty() && values.iter().all(|value| value == entry);
        match self.get(key).and_then(Value::as_array).is_some_and(is_usual) {
            true => Ok(()),
            false => self.only(key, &[]),
        }
    }

    /// Refuses a setting that would change the model.
    fn only(&self, key: &str, known: &[Value]) -> Result<(), Error> {
        match self.get(key) {
            Some(value) if !known.contains(value) => Err(self.unsupported(
                &format!("`{key}` = {}", shown(&value.to_string())),
                "record queries, keys and values as a dump",
            )),
            _ => Ok(()),
        }
    }
}

fn llama(file: &str, config: &Configuration, parsed: &SafeTensors<'_>) -> Result<LlamaWeights, Error> {
    config.only_usual()?;
    for key in ["attention_bias", "mlp_bias", "use_bidirectional_attention", "rope_interleaved"] {
        config.only(key, &[Value::Bool(false)])?;
    }
    config.only("is_causal", &[Value::Bool(true)])?;
    config.only("hidden_act", &[Value::from("silu")])?;
    // A layer without a 1 here does not turn queries and keys.
    config.only_list_of("no_rope_layers", &Value::from(1))?;
    if config.get("use_sliding_window") != Some(&Value::Bool(false)) {
        config.only("sliding_window", &[])?;
    }
    let layers = config.positive("num_hidden_layers")?;
    let width = config.positive("hidden_size")?;
    let hidden = config.positive("intermediate_size")?;
    let heads = config.positive("num_attention_heads")?;
    let key_value_heads = config.size("num_key_value_heads")?.unwrap_or(heads);
    if heads % key_value_heads != 0 {
        return Err(config.wrong("num_key_value_heads", "a divisor of the number of heads"));
    }
    let head_dimension = config.size("head_dim")?.unwrap_or(width / heads);
    config.only("query_pre_attn_scalar", &[Value::from(head_dimension)])?;
    if head_dimension == 0 || head_dimension % 2 != 0 {
        let key = if config.get("head_dim").is_some() { "head_dim" } else { "hidden_size" };
        let expected =
            format!("an even positive number for each of {heads} heads, because numbers turn in pairs");
        return Err(config.wrong(key, &expected));
    }
    let context = config.positive(CONTEXT)?;
    let norm_epsilon = config.float("rms_norm_eps")?.unwrap_or(1e-6);
    let base = rotation_base(config)?;

    let tied = config.truth("tie_word_embeddings")?.unwrap_or(false);
    let needless = |name: &str| name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight");
    let mut tensors = tensors(file, parsed, needless)?;
    let prefix = if tensors.contains("model.embed_tokens.weight") { "model." } else { "" };
    let embedding = format!("{prefix}embed_tokens.weight");
    let vocabulary = tensors.shape(&embedding)?.first().copied().unwrap_or(0);
    config.check_vocabulary(vocabulary)?;
    let embedding = tensors.matrix(&embedding, vocabulary, width)?;
    let (query_width, key_value_width) = (heads * head_dimension, key_value_heads * head_dimension);
    let mut read = Vec::new();
    for layer in 0..layers {
        let name = |part: &str| format!("{prefix}layers.{layer}.{part}.weight");
        read.push(LlamaLayer {
            attention_norm: tensors.vector(&name("input_layernorm"), width)?,
            query: tensors.matrix(&name("self_attn.q_proj"), query_width, width)?,
            key: tensors.matrix(&name("self_attn.k_proj"), key_value_width, width)?,
            value: tensors.matrix(&name("self_attn.v_proj"), key_value_width, width)?,
            output: tensors.matrix(&name("self_attn.o_proj"), width, query_width)?,
            feed_forward_norm: tensors.vector(&name("post_attention_layernorm"), width)?,
            gate: tensors.matrix(&name("mlp.gate_proj"), hidden, width)?,
            up: tensors.matrix(&name("mlp.up_proj"), hidden, width)?,
            down: tensors.matrix(&name("mlp.down_proj"), width, hidden)?,
        });
    }
    let final_norm = tensors.vector(&format!("{prefix}norm.weight"), width)?;
    let unembedding = match tied {
        true => None,
        false => Some(tensors.matrix("lm_head.weight", vocabulary, width)?),
    };
    tensors.finish("a llama model")?;
    Ok(LlamaWeights {
        heads,
        key_value_heads,
        head_dimension,
        context,
        rotation: Rotation { base, pairs: Pairs::Halves },
        norm_epsilon,
        embedding,
        layers: read,
        final_norm,
        unembedding,
    })
}

/// Older files say `rope_theta` and `rope_scaling`, newer ones have both in `rope_parameters`. What is inside must be known: there are
/// many ways to turn otherwise, and tables for every kind of layer.
fn rotation_base(config: &Configuration) -> Result<f32, Error> {
    let mut base = config.float("rope_theta")?;
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(values) = config.get(key) else { continue };
        let usual = |(name, value): (&String, &Value)| match name.as_str() {
            _ if value.is_null() => true,
            "rope_type" | "type" => value == "default",
            "factor" | "partial_rotary_factor" => is_one(value),
            "rope_theta" => true,
            _ => false,
        };
        let says_kind = ["rope_type", "type"].iter().any(|name| values.get(name) == Some(&"default".into()));
        let known = values.as_object().is_some_and(|values| values.iter().all(usual))
            && (key == "rope_parameters" || says_kind);
        if !known {
            return Err(config.unsupported(
                &format!("`{key}` = {}", shown(&values.to_string())),
                "only one base for all frequencies is supported; record queries, keys and values as a dump",
            ));
        }
        let inner = Configuration { file: format!("`{key}` in {}", config.file), values: values.clone() };
        let inside = inner.float("rope_theta")?;
        match (base, inside) {
            (Some(base), Some(inside)) if base != inside => {
                return Err(inner.wrong("rope_theta", &format!("{base}, as is said elsewhere in the file")));
            }
            _ => base = base.or(inside),
        }
    }
    Ok(base.unwrap_or(10_000.0))
}

/// As an integer or not.
fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

fn bert(file: &str, config: &Configuration, parsed: &SafeTensors<'_>) -> Result<BertWeights, Error> {
    config.only_usual()?;
    config.only("hidden_act", &[Value::from("gelu")])?;
    config.only("position_embedding_type", &[Value::from("absolute")])?;
    config.only("is_decoder", &[Value::Bool(false)])?;
    config.only("is_causal", &[Value::Bool(false)])?;
    let layers = config.positive("num_hidden_layers")?;
    let width = config.positive("hidden_size")?;
    let hidden = config.positive("intermediate_size")?;
    let heads = config.positive("num_attention_heads")?;
    if width % heads != 0 {
        return Err(config.wrong("num_attention_heads", "a divisor of `hidden_size`"));
    }
    let positions = config.positive(CONTEXT)?;
    let norm_epsilon = config.float("layer_norm_eps")?.unwrap_or(1e-12);

    // Poolers and heads for training come after the last layer.
    let needless = |name: &str| {
        let name = name.strip_prefix("bert.").unwrap_or(name);
        name.starts_with("pooler.") || name.starts_with("cls.") || name == "embeddings.position_ids"
    };
    let mut tensors = tensors(file, parsed, needless)?;
    let prefix = if tensors.contains("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
    let words = format!("{prefix}embeddings.word_embeddings.weight");
    let vocabulary = tensors.shape(&words)?.first().copied().unwrap_or(0);
    config.check_vocabulary(vocabulary)?;
    let words = tensors.matrix(&words, vocabulary, width)?;
    let places =
        tensors.matrix(&format!("{prefix}embeddings.position_embeddings.weight"), positions, width)?;
    let segments = format!("{prefix}embeddings.token_type_embeddings.weight");
    let kinds = tensors.shape(&segments)?.first().copied().unwrap_or(0);
    let mut segment = vec![0.0; width];
    tensors.matrix(&segments, kinds, width)?.write_row(0, &mut segment);
    let embedding_norm = layer_norm(&mut tensors, &format!("{prefix}embeddings.LayerNorm"), width)?;
    let mut read = Vec::new();
    for layer in 0..layers {
        let name = |part: &str| format!("{prefix}encoder.layer.{layer}.{part}");
        read.push(BertLayer {
            query: affine(&mut tensors, &name("attention.self.query"), width, width)?,
            key: affine(&mut tensors, &name("attention.self.key"), width, width)?,
            value: affine(&mut tensors, &name("attention.self.value"), width, width)?,
            output: affine(&mut tensors, &name("attention.output.dense"), width, width)?,
            attention_norm: layer_norm(&mut tensors, &name("attention.output.LayerNorm"), width)?,
            up: affine(&mut tensors, &name("intermediate.dense"), hidden, width)?,
            down: affine(&mut tensors, &name("output.dense"), width, hidden)?,
            feed_forward_norm: layer_norm(&mut tensors, &name("output.LayerNorm"), width)?,
        });
    }
    tensors.finish("a BERT model")?;
    Ok(BertWeights { heads, norm_epsilon, words, positions: places, segment, embedding_norm, layers: read })
}

fn affine(tensors: &mut Tensors<'_>, name: &str, rows: usize, columns: usize) -> Result<Affine, Error> {
    Ok(Affine {
        matrix: tensors.matrix(&format!("{name}.weight"), rows, columns)?,
        bias: tensors.vector(&format!("{name}.bias"), rows)?,
    })
}

/// Files converted from TensorFlow say gamma and beta.
fn layer_norm(tensors: &mut Tensors<'_>, name: &str, width: usize) -> Result<LayerNorm, Error> {
    let old = tensors.contains(&format!("{name}.gamma"));
    let (gain, bias) = if old { ("gamma", "beta") } else { ("weight", "bias") };
    Ok(LayerNorm {
        gain: tensors.vector(&format!("{name}.{gain}"), width)?,
        bias: tensors.vector(&format!("{name}.{bias}"), width)?,
    })
}
