//! Checkpoints of every format: what is read, and what is refused.

use esscher_audit::Error;
use esscher_audit::checkpoint::{
    Beginning, Checkpoint, Content, Dump, Format, LlamaWeights, Pairs, Source, Weights,
};
use esscher_audit::head::Order;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestRunner};
use std::cell::Cell;

use crate::any_bytes;
use crate::tiny::{self, Gguf};

fn source(weights: &[u8]) -> Source<'_> {
    Source { name: "tiny", weights, config: None, tokenizer: None }
}

fn llama(bytes: &[u8], config: Option<&str>) -> LlamaWeights {
    let read = Checkpoint::read(&Source { config: config.map(str::as_bytes), ..source(bytes) }).unwrap();
    match read.weights {
        Weights::Llama(weights) => weights,
        Weights::Bert(_) => panic!("not a llama"),
    }
}

fn refusal(bytes: &[u8]) -> Error {
    Content::read(&source(bytes)).expect_err("a bad file was read")
}

/// Every message is one sentence that names the fact.
#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let message = refusal(bytes).to_string();
    assert!(message.contains(expected), "`{message}` does not say `{expected}`");
    assert!(message.len() < 400 && !message.contains('\n'), "`{message}` is no clear sentence");
}

#[test]
fn a_gguf_file_with_every_type_of_tensor_is_read() {
    let mut file = Gguf::tiny();
    let weights = llama(&file.write(), None);
    assert_eq!((weights.heads, weights.key_value_heads, weights.head_dimension), (2, 1, 16));
    assert_eq!(
        (weights.context, weights.rotation.base, weights.rotation.pairs),
        (16, 1e5, Pairs::Neighbours)
    );
    let layer = &weights.layers[0];
    for (name, matrix) in [
        ("token_embd", &weights.embedding),
        ("output", weights.unembedding.as_ref().unwrap()),
        ("blk.0.attn_q", &layer.query),
        ("blk.0.attn_k", &layer.key),
        ("blk.0.attn_v", &layer.value),
        ("blk.0.attn_output", &layer.output),
        ("blk.0.ffn_gate", &layer.gate),
        ("blk.0.ffn_up", &layer.up),
        ("blk.0.ffn_down", &layer.down),
    ] {
        let tensor = file.tensor(name);
        assert_eq!(matrix.bytes(), tensor.data, "{name}");
        assert_eq!(vec![matrix.columns() as u64, matrix.rows() as u64], tensor.sizes, "{name}");
    }
    assert_eq!(tiny::bytes(&weights.final_norm), file.tensor("output_norm").data);
    assert_eq!(tiny::bytes(&layer.attention_norm), file.tensor("blk.0.attn_norm").data);
    let halves = layer.feed_forward_norm.iter().flat_map(|gain| half::f16::from_f32(*gain).to_le_bytes());
    assert_eq!(halves.collect::<Vec<_>>(), file.tensor("blk.0.ffn_norm").data);
    // Version 2 has the same layout.
    file.version = 2;
    llama(&file.write(), None);
}

#[test]
fn contexts_that_no_model_has_are_refused() {
    let mut file = Gguf::tiny();
    file.set("llama.context_length", 10, (1_u64 << 63).to_le_bytes().to_vec());
    refused(
        &file.write(),
        "metadata `llama.context_length` must be at most 16777216, found 9223372036854775808",
    );
    file.set("llama.context_length", 10, (1_u64 << 24).to_le_bytes().to_vec());
    assert_eq!(llama(&file.write(), None).context, 1 << 24);
    let (tensors, config) = tiny::llama_tensors();
    let bytes = tiny::safetensors(&tensors, None);
    let config =
        config.replace("\"max_position_embeddings\": 32", "\"max_position_embeddings\": 9223372036854775808");
    let refusal =
        Checkpoint::read(&Source { config: Some(config.as_bytes()), ..source(&bytes) }).unwrap_err();
    let message = refusal.to_string();
    assert!(message.contains("max_position_embeddings") && message.contains("1 to 16777216"), "{message}");
    let mut bytes = tiny::llama2c(5);
    bytes[24..28].copy_from_slice(&i32::MAX.to_le_bytes());
    refused(&bytes, "unknown format");
}

#[test]
fn a_checkpoint_carries_its_format_and_hash() {
    let checkpoint = Checkpoint::read(&source(&tiny::llama2c(5))).unwrap();
    assert_eq!((checkpoint.format, checkpoint.name.as_str()), (Format::Llama2c, "tiny"));
    assert_eq!(checkpoint.sha256.len(), 64);
    assert!(checkpoint.vocabulary.is_none());
}

#[test]
fn damaged_gguf_files_are_refused_by_what_is_wrong() {
    let tiny = Gguf::tiny;
    let text = tiny::gguf_text;
    let changed = |change: &dyn Fn(&mut Gguf)| {
        let mut file = tiny();
        change(&mut file);
        file.write()
    };
    let size = |size: u32| size.to_le_bytes().to_vec();
    refused(&changed(&|file| file.version = 1), "GGUF version 1 is not supported");
    refused(&changed(&|file| file.version = 3_u32.swap_bytes()), "GGUF big endian is not supported");
    refused(&changed(&|file| file.set("general.architecture", 8, text("mamba"))), "architecture `mamba`");
    refused(
        &changed(&|file| file.tensor("blk.0.attn_q").kind = 12),
        "attn_q.weight` of type Q4_K is not supported",
    );
    refused(&changed(&|file| file.tensor("blk.0.attn_q").name = "other".into()), "attn_q.weight` is missing");
    refused(
        &changed(&|file| {
            let copy = file.tensor("blk.0.attn_q").clone();
            file.tensors.push(copy);
        }),
        "attn_q.weight` occurs twice",
    );
    refused(
        &changed(&|file| {
            let mut bias = file.tensor("output_norm").clone();
            bias.name = "blk.0.attn_q.bias".into();
            file.tensors.push(bias);
        }),
        "tensor `blk.0.attn_q.bias` is not supported",
    );
    refused(
        &changed(&|file| file.tensor("blk.0.attn_k").sizes = vec![16, 32]),
        "has shape [32, 16], expected [16, 32]",
    );
    refused(&changed(&|file| file.tensor("blk.0.attn_k").sizes = vec![0, 32]), "a size that is zero or huge");
    refused(
        &changed(&|file| file.tensor("blk.0.attn_k").sizes = vec![1 << 40, 1 << 40]),
        "larger than any file",
    );
    refused(&changed(&|file| file.tensor("blk.0.attn_k").sizes = vec![]), "has 0 dimensions");
    refused(
        &changed(&|file| file.tensor("output").sizes = vec![31, 4]),
        "not a whole number of blocks of 32",
    );
    refused(&changed(&|file| file.tensor("blk.0.attn_v").offset = Some(1 << 40)), "do not fit");
    refused(&changed(&|file| file.tensor("blk.0.attn_v").offset = Some(u64::MAX - 31)), "do not fit");
    refused(&changed(&|file| file.tensor("blk.0.attn_v").offset = Some(0)), "inside another tensor");
    refused(
        &changed(&|file| file.tensor("blk.0.attn_v").offset = Some(7)),
        "not a multiple of the alignment",
    );
    refused(
        &changed(&|file| file.set("llama.block_count", 4, size(u32::MAX))),
        "`blk.1.attn_norm.weight` is missing",
    );
    refused(
        &changed(&|file| file.set("llama.block_count", 4, size(0))),
        "`llama.block_count` must be positive",
    );
    refused(&changed(&|file| file.set("llama.attention.head_count", 8, text("2"))), "must be one number");
    refused(
        &changed(&|file| file.set("llama.attention.head_count_kv", 4, size(3))),
        "a divisor of the number of heads",
    );
    refused(&changed(&|file| file.set("llama.rope.scaling.type", 8, text("yarn"))), "scaled frequencies");
    let unscaled = changed(&|file| {
        file.set("llama.rope.scaling.type", 8, text("none"));
        file.set("llama.rope.scaling.factor", 6, 4_f32.to_le_bytes().to_vec());
    });
    assert!(Checkpoint::read(&source(&unscaled)).is_ok());
    // A factor without a type is linear scaling.
    for key in ["llama.rope.scaling.factor", "llama.rope.scale_linear"] {
        refused(&changed(&|file| file.set(key, 6, 4_f32.to_le_bytes().to_vec())), "scaled frequencies");
        assert!(
            Checkpoint::read(&source(&changed(&|file| file.set(key, 6, 1_f32.to_le_bytes().to_vec()))))
                .is_ok()
        );
    }
    refused(&changed(&|file| file.set("general.alignment", 4, size(0))), "a power of two");
    refused(&changed(&|file| file.set("x", 99, vec![0; 8])), "unknown value type 99");
    refused(&changed(&|file| file.set("x", 8, (1_u64 << 60).to_le_bytes().to_vec())), "the file has only");
    let announced = |kind: u32, count: u64| [kind.to_le_bytes().as_slice(), &count.to_le_bytes()].concat();
    refused(&changed(&|file| file.set("x", 9, announced(8, 1 << 60))), "could hold");
    refused(&changed(&|file| file.set("x", 9, announced(9, 1))), "an array of arrays");
    refused(
        &changed(&|file| {
            let value = file.values[1].clone();
            file.values.push(value);
        }),
        "occurs twice",
    );
    refused(
        &changed(&|file| file.tensor("blk.0.attn_norm").data[4..8].copy_from_slice(&f32::NAN.to_le_bytes())),
        "tensor `blk.0.attn_norm.weight`: row 0, column 1 is NaN",
    );
    refused(
        &changed(&|file| {
            file.tensor("blk.0.attn_output").data[..4].copy_from_slice(&f32::INFINITY.to_le_bytes())
        }),
        "tensor `blk.0.attn_output.weight`: row 0, column 0 is inf",
    );
    let mut many = tiny().write();
    many[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(&many, "the number of tensors is 18446744073709551615");
}

#[test]
fn llama2c_tensors_come_in_the_order_of_their_export() {
    for (vocabulary, separate) in [(5, false), (-5, true)] {
        let bytes = tiny::llama2c(vocabulary);
        let weights = llama(&bytes, None);
        assert_eq!((weights.heads, weights.key_value_heads, weights.head_dimension), (4, 2, 2));
        assert_eq!((weights.context, weights.layers.len(), weights.embedding.rows()), (10, 2, 5));
        assert_eq!(weights.unembedding.is_some(), separate);
        let mut at = 28;
        let mut next = |expected: &[u8], name: &str| {
            assert_eq!(expected, &bytes[at..at + expected.len()], "{name}");
            at += expected.len();
        };
        let (layers, norm) = (&weights.layers, |norm: &[f32]| tiny::bytes(norm));
        next(weights.embedding.bytes(), "embedding");
        layers.iter().for_each(|layer| next(&norm(&layer.attention_norm), "attention norm"));
        layers.iter().for_each(|layer| next(layer.query.bytes(), "query"));
        layers.iter().for_each(|layer| next(layer.key.bytes(), "key"));
        layers.iter().for_each(|layer| next(layer.value.bytes(), "value"));
        layers.iter().for_each(|layer| next(layer.output.bytes(), "output"));
        layers.iter().for_each(|layer| next(&norm(&layer.feed_forward_norm), "feed-forward norm"));
        layers.iter().for_each(|layer| next(layer.gate.bytes(), "gate"));
        layers.iter().for_each(|layer| next(layer.down.bytes(), "down"));
        layers.iter().for_each(|layer| next(layer.up.bytes(), "up"));
        next(&norm(&weights.final_norm), "final norm");
        at += 4 * 10 * 2;
        if let Some(unembedding) = &weights.unembedding {
            assert_eq!(unembedding.bytes(), &bytes[at..]);
        }
    }
}

#[test]
fn files_that_are_cut_short_or_of_no_known_format_say_so() {
    let bytes = tiny::llama2c(5);
    refused(&bytes[..1000], &format!("announces {} bytes, the file has 1000", bytes.len()));
    refused(&[bytes, vec![0; 3]].concat(), "the tokenizer in tiny: the vocabulary has 0 tokens");
    refused(b"", "tiny: the file is empty");
    refused(b"It was the best of times, it was the worst of times", "of unknown format");
}

#[test]
fn settings_of_gguf_that_change_a_layer_are_refused_unless_they_change_nothing() {
    let with = |key: &str, kind: u32, value: Vec<u8>| {
        let mut file = Gguf::tiny();
        file.set(&format!("llama.{key}"), kind, value);
        file.write()
    };
    let single = |number: f32| number.to_le_bytes().to_vec();
    for (key, neutral, other) in [
        ("attn_logit_softcapping", 0.0, 30.0),
        ("final_logit_softcapping", 0.0, 30.0),
        ("attention.scale", 0.0, 5.0),
        ("attention.clamp_kqv", 0.0, 8.0),
        ("attention.temperature_scale", 0.0, 0.1),
        ("attention.max_alibi_bias", 0.0, 8.0),
        ("max_alibi_bias", 0.0, 8.0),
        ("rope.scaling.attn_factor", 1.0, 2.0),
        ("logit_scale", 1.0, 2.0),
        ("residual_scale", 1.0, 2.0),
        ("embedding_scale", 1.0, 2.0),
    ] {
        assert!(Checkpoint::read(&source(&with(key, 6, single(neutral)))).is_ok(), "{key}");
        refused(&with(key, 6, single(other)), &format!("metadata `llama.{key}` = {other}"));
    }
    for (key, neutral) in [("attention.causal", 1), ("use_parallel_residual", 0)] {
        assert!(Checkpoint::read(&source(&with(key, 7, vec![neutral]))).is_ok(), "{key}");
        refused(&with(key, 7, vec![1 - neutral]), &format!("metadata `llama.{key}` = {}", 1 - neutral));
    }
    for key in ["attention.chunk_size", "attention.sliding_window", "attention.new", "rope.new", "new_scale"]
    {
        refused(&with(key, 4, 64_u32.to_le_bytes().to_vec()), &format!("metadata `llama.{key}` = 64"));
    }
    refused(&with("rope.kind", 8, tiny::gguf_text("new")), "metadata `llama.rope.kind` is not supported");
    assert!(Checkpoint::read(&source(&with("vocab_size", 4, 4_u32.to_le_bytes().to_vec()))).is_ok());
}

#[test]
fn safetensors_of_llama_are_read_with_tied_or_separate_embeddings() {
    let (mut tensors, config) = tiny::llama_tensors();
    let weights = llama(&tiny::safetensors(&tensors, None), Some(&format!("\u{feff}{config}")));
    assert_eq!((weights.heads, weights.key_value_heads, weights.head_dimension), (2, 1, 4));
    assert_eq!((weights.rotation.base, weights.rotation.pairs), (5000.0, Pairs::Halves));
    assert!(weights.unembedding.is_none());
    tensors.push(("lm_head.weight".to_string(), vec![5, 8]));
    let weights = llama(&tiny::safetensors(&tensors, None), Some(&config.replace("true", "false")));
    assert!(weights.unembedding.is_some());
}

#[test]
fn safetensors_of_bert_are_read_with_and_without_prefix() {
    for prefix in ["", "bert."] {
        let (tensors, config) = tiny::bert_tensors(prefix);
        let bytes = tiny::safetensors(&tensors, None);
        let read = Checkpoint::read(&Source { config: Some(config.as_bytes()), ..source(&bytes) }).unwrap();
        let Weights::Bert(weights) = read.weights else { panic!("not BERT") };
        assert_eq!((weights.heads, weights.words.rows(), weights.positions.rows()), (2, 5, 6));
        // The first row of the two kinds of sentences.
        assert_eq!(weights.segment, tiny::numbers(16, 2)[..8]);
        assert_eq!(weights.layers[0].up.bias.len(), 12);
    }
}

#[test]
fn a_configuration_that_does_not_fit_is_refused() {
    let (tensors, config) = tiny::llama_tensors();
    let bytes = tiny::safetensors(&tensors, None);
    let refused = |config: Option<&str>| {
        Checkpoint::read(&Source { config: config.map(str::as_bytes), ..source(&bytes) }).unwrap_err()
    };
    assert!(matches!(refused(None), Error::MissingFile { beside: "config.json", .. }));
    for (from, to, expected) in [
        ("\"llama\"", "\"gemma\"", "model type `gemma`"),
        ("\"hidden_size\": 8", "\"hidden_size\": -8", "`hidden_size` is -8"),
        ("\"hidden_size\": 8", "\"hidden_size\": 1e99", "`hidden_size`"),
        ("\"hidden_size\": 8", "\"hidden_size\": 16", "expected [5, 16]"),
        (
            "\"num_hidden_layers\": 1",
            "\"num_hidden_layers\": 2",
            "layers.1.input_layernorm.weight` is missing",
        ),
        ("null", "{\"rope_type\": \"yarn\"}", "one base"),
        ("\"silu\"", "\"relu\"", "`hidden_act` = "),
        ("{", "[", "not JSON"),
        ("{", "{\"vocab_size\": 0,", "`vocab_size` is 0, expected 5, the rows of the embedding"),
        ("{", "{\"vocab_size\": 4611686018427387904,", "`vocab_size` is 4611686018427387904, expected 5"),
        ("5000.0", "1e300", "`rope_theta` is 1e+300, expected a number from 1e-45 to 3.4e38"),
        ("{", "{\"sliding_window\": 16,", "`sliding_window` = 16"),
        ("{", "{\"partial_rotary_factor\": 0.5,", "`partial_rotary_factor` = 0.5"),
        ("{", "{\"attn_logit_softcapping\": 30,", "`attn_logit_softcapping` = 30"),
        ("true", "\"yes\"", "`tie_word_embeddings` is \"yes\", expected true or false"),
        ("true", "1", "`tie_word_embeddings` is 1, expected true or false"),
        ("{", "{\"hidden_size\": 8,", "the key `hidden_size` occurs twice"),
    ] {
        let message = refused(Some(&config.replacen(from, to, 1))).to_string();
        assert!(message.contains(expected), "`{message}` does not say `{expected}`");
    }
}

#[test]
fn settings_of_a_configuration_that_change_a_layer_are_refused_unless_they_change_nothing() {
    let (tensors, config) = tiny::llama_tensors();
    let bytes = tiny::safetensors(&tensors, None);
    let read = |key: &str, value: &str| {
        let config = config.replacen('{', &format!("{{\"{key}\": {value},"), 1);
        // The rotation is said in one way only.
        let config = config.replace("\"rope_scaling\": null", "\"other\": 1");
        Checkpoint::read(&Source { config: Some(config.as_bytes()), ..source(&bytes) })
    };
    for (key, neutral, other) in [
        ("attention_multiplier", "null", "0.5"),
        ("clip_qkv", "null", "8"),
        ("attention_chunk_size", "null", "64"),
        ("alibi", "false", "true"),
        ("use_qk_norm", "false", "true"),
        ("auto_map", "null", "{\"AutoModel\": \"modeling.Own\"}"),
        ("query_pre_attn_scalar", "4", "16"),
        ("no_rope_layers", "[1]", "[0]"),
        ("is_causal", "true", "false"),
        ("use_bidirectional_attention", "false", "true"),
        ("rope_interleaved", "false", "true"),
        ("layer_types", "[\"full_attention\"]", "[\"sliding_attention\"]"),
        ("compression_config", "null", "{\"bits\": 4}"),
        ("logit_scale", "1", "2.0"),
        ("rope_scaling", "{\"type\": \"default\"}", "{\"type\": \"linear\", \"rope_type\": \"default\"}"),
        (
            "rope_scaling",
            "{\"rope_type\": \"default\", \"factor\": 1.0}",
            "{\"rope_type\": \"default\", \"factor\": 8.0}",
        ),
        ("rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": 5000}", "{\"rope_theta\": 500.0}"),
        ("rope_parameters", "{\"partial_rotary_factor\": 1.0}", "{\"partial_rotary_factor\": 0.5}"),
        (
            "rope_parameters",
            "{}",
            "{\"full_attention\": {\"rope_theta\": 5000.0, \"rope_type\": \"default\"}}",
        ),
        ("rope_parameters", "null", "{\"rope_type\": \"yarn\", \"factor\": 4.0}"),
    ] {
        if let Err(error) = read(key, neutral) {
            panic!("{key} = {neutral}: {error}");
        }
        let message = read(key, other).expect_err(key).to_string();
        assert!(message.contains(&format!("`{key}`")), "{message}");
    }
}

#[test]
fn safetensors_that_go_on_after_their_tensors_are_not_called_truncated() {
    let (tensors, _) = tiny::llama_tensors();
    let mut bytes = tiny::safetensors(&tensors, None);
    bytes.extend([0; 10]);
    let message = Beginning::read("long", &bytes, bytes.len() as u64).unwrap_err().to_string();
    assert!(message.ends_with("it is longer than its header announces"), "{message}");
}

fn dump_arrays() -> Vec<(String, String, Vec<u8>)> {
    tiny::dump_tensors()
        .into_iter()
        .enumerate()
        .map(|(seed, (name, shape))| {
            let data = tiny::bytes(&tiny::numbers(shape.iter().product(), seed as u64));
            let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
            (name, format!("({})", sizes.join(", ")), data)
        })
        .collect()
}

fn tiny_npz(extra: &[(&str, &str, String, Vec<u8>)]) -> Vec<u8> {
    let owned = dump_arrays();
    let mut arrays: Vec<_> =
        owned.iter().map(|(name, shape, data)| (name.as_str(), "<f4", shape.clone(), data.clone())).collect();
    arrays.extend(extra.iter().cloned());
    tiny::npz(&arrays)
}

fn whole() -> (&'static str, &'static str, String, Vec<u8>) {
    ("order", "<U5", "()".to_string(), tiny::npz_text("whole"))
}

#[test]
fn dumps_are_the_same_from_safetensors_and_npz() {
    let mut arrays = vec![whole()];
    arrays.push(("scale", "<f8", "()".to_string(), 0.25_f64.to_le_bytes().to_vec()));
    let archive = Dump::read("tiny.npz", &tiny_npz(&arrays)).unwrap();
    let plain = Dump::read("tiny", &tiny::safetensors(&tiny::dump_tensors(), Some("whole"))).unwrap();
    assert_eq!(archive.shape, plain.shape);
    assert_eq!((plain.shape.layers, plain.shape.heads, plain.shape.key_value_heads), (2, 4, 2));
    assert_eq!((plain.shape.head_dimension, plain.shape.width, plain.shape.context), (16, 10, 3));
    assert_eq!(plain.shape.order, Order::Whole);
    for (archive, plain) in archive.layers.iter().zip(&plain.layers) {
        // The stated scale is the usual 1/√16.
        assert_eq!(archive.tilts, plain.tilts);
        assert_eq!((&archive.keys, &archive.values), (&plain.keys, &plain.values));
        assert_eq!((&archive.residual, &archive.output), (&plain.residual, &plain.output));
    }
    let queries: Vec<f32> = tiny::numbers(3 * 4 * 16, 0).iter().map(|query| query * 0.25).collect();
    assert_eq!(plain.layers[0].tilts, queries);
}

#[test]
fn dumps_that_make_no_sense_are_refused() {
    refused(&tiny_npz(&[]), "`order` must be `causal` or `whole`, found nothing");
    refused(&tiny::safetensors(&tiny::dump_tensors(), None), "`order` must be");
    refused(&tiny::safetensors(&tiny::dump_tensors(), Some("sideways")), "found `sideways`");
    let sound = tiny::safetensors(&tiny::dump_tensors(), Some("causal"));
    let length = u64::from_le_bytes(sound[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(sound[8..8 + length].to_vec()).unwrap();
    let twice = header.replace("\"order\":\"causal\"", "\"order\":\"causal\",\"order\":\"whole\"");
    assert_ne!(header, twice);
    let twice = [&(twice.len() as u64).to_le_bytes(), twice.as_bytes(), &sound[8 + length..]].concat();
    refused(&twice, "the key `order` occurs twice");
    let mut tensors = tiny::dump_tensors();
    tensors[6].1 = vec![3, 4, 16];
    refused(
        &tiny::safetensors(&tensors, Some("causal")),
        "`layer.1.keys` has shape [3, 4, 16], expected [3, 2, 16]",
    );
    tensors = tiny::dump_tensors();
    tensors[5].0 = "layer.2.queries".to_string();
    refused(
        &tiny::safetensors(&tensors, Some("causal")),
        "tensor `layer.1.queries` is missing; record the text again",
    );
    let of_others: Vec<_> = tensors.iter().filter(|(name, _)| name != "layer.0.queries").cloned().collect();
    let headless = tiny::safetensors(&of_others, Some("causal"));
    assert!(esscher_audit::checkpoint::dump::begins_like_dump(&headless));
    let refusal = Content::read(&Source { name: "a", weights: &headless, config: None, tokenizer: None });
    assert!(refusal.unwrap_err().to_string().contains("tensor `layer.0.queries` is missing"));
    refused(&tiny_npz(&[whole(), ("x", "<i8", "(1,)".into(), vec![0; 8])]), "its numbers are `<i8`");
    refused(&tiny_npz(&[whole(), ("x", "<f4", "(2,)".into(), vec![0; 4])]), "do not take 4 bytes");
    let nested = format!("{}1{}", "(".repeat(400), ")".repeat(400));
    refused(&tiny_npz(&[whole(), ("x", "<f4", nested, vec![0; 4])]), "its header makes no sense");
    let double = |number: f64| number.to_le_bytes().to_vec();
    for (scale, found) in [(0.0, "0"), (1e-300, "0"), (-1.0, "-1")] {
        let scale = ("scale", "<f8", "()".to_string(), double(scale));
        refused(&tiny_npz(&[whole(), scale]), &format!("of single precision, found {found} in single"));
    }
    refused(
        &tiny_npz(&[whole(), ("scale", "<f4", "(0,)".into(), vec![])]),
        "has shape [0], expected sizes of at least 1",
    );
    refused(
        &tiny_npz(&[("order", "|S5", "()".into(), b"whole".to_vec())]),
        "it is `|S5`, expected `<U6` or `<U5`",
    );
    refused(
        &tiny_npz(&[whole(), ("scale", "<f8", "()".to_string(), double(1e300))]),
        "array `scale`: 1e300 is too large for single precision",
    );
    for (layer, there, missing) in [(0, "residual", "output"), (1, "output", "residual")] {
        let gone = format!("layer.{layer}.{missing}");
        let tensors: Vec<_> = tiny::dump_tensors().into_iter().filter(|(name, _)| *name != gone).collect();
        let expected = format!("tensor `layer.{layer}.{there}` comes without `{gone}`");
        refused(&tiny::safetensors(&tensors, Some("causal")), &expected);
    }
    let huge = "(9999999999, 9999999999)".to_string();
    refused(&tiny_npz(&[whole(), ("x", "<f4", huge, vec![0; 4])]), "do not take 4 bytes");
}

#[test]
fn an_archive_with_two_arrays_of_one_name_is_refused() {
    let one = |name| (name, "<f4", "(1,)".to_string(), vec![0; 4]);
    let mut bytes = tiny_npz(&[whole(), one("same-1"), one("same-2")]);
    for place in 0..bytes.len() - 6 {
        if &bytes[place..place + 6] == b"same-2" {
            bytes[place + 5] = b'1';
        }
    }
    refused(&bytes, "not a sound .npz archive: two of its arrays have the same name");
}

#[test]
fn an_archive_that_unpacks_to_very_much_more_is_refused() {
    let bomb = tiny_npz(&[whole(), ("zeros", "<f4", "(8388608,)".to_string(), vec![0; 1 << 25])]);
    assert!(bomb.len() < 1 << 17);
    refused(&bomb, "unpacks to more than 16 times");
}

#[test]
fn a_dump_is_not_a_model() {
    let bytes = tiny::safetensors(&tiny::dump_tensors(), Some("causal"));
    let message = Checkpoint::read(&source(&bytes)).unwrap_err().to_string();
    assert!(message.contains("is a dump"), "{message}");
}

/// A file of every format, with its configuration.
fn every_format() -> Vec<(Vec<u8>, Option<String>)> {
    let (tensors, config) = tiny::llama_tensors();
    let (bert, bert_config) = tiny::bert_tensors("");
    let with_tokenizer = [tiny::llama2c(261), tiny::llama2c_tokenizer(&[("a", -1.0), ("b", -2.0)])].concat();
    vec![
        (Gguf::tiny().write(), None),
        (crate::vocabularies::byte_pairs().write(), None),
        (crate::vocabularies::scored().write(), None),
        (tiny::llama2c(-5), None),
        (with_tokenizer, None),
        (tiny::safetensors(&tensors, None), Some(config)),
        (tiny::safetensors(&bert, None), Some(bert_config)),
        (tiny::safetensors(&tiny::dump_tensors(), Some("causal")), None),
        (tiny_npz(&[whole()]), None),
    ]
}

#[test]
fn the_beginning_of_a_file_tells_its_format_and_its_length() {
    for (number, (bytes, _)) in every_format().into_iter().enumerate() {
        let length = bytes.len() as u64;
        let format = Format::recognise("tiny", &bytes).unwrap();
        assert_eq!(Beginning::read("tiny", &bytes, length), Ok(Beginning::Of(format)), "file {number}");
        // So much is asked for as is needed, and never more than there is.
        let mut first = 32;
        while let Beginning::Needs(more) = Beginning::read("tiny", &bytes[..first], length).unwrap() {
            assert!(more > first as u64 && more <= length, "file {number}: {more} of {length} after {first}");
            first = more as usize;
        }
        if format == Format::Npz {
            continue;
        }
        // Of a file that is longer than it says no more is looked at.
        for longer in [length + (1 << 30), 20 << 30] {
            let told = Beginning::read("tiny", &bytes[..first], longer).unwrap_err().to_string();
            assert!(told.contains("the file"), "file {number}: {told}");
        }
    }
    let unknown = Beginning::read("z.gguf", &[0; 100], 20 << 30).unwrap_err().to_string();
    assert!(unknown.starts_with("z.gguf: a file of 21474836480 bytes of unknown format"), "{unknown}");
    // The header of a GGUF file ends somewhere, however long the file is.
    let endless = [&b"GGUF\x03\0\0\0"[..], &[0; 8], &(1_u64 << 30).to_le_bytes()].concat();
    assert!(matches!(Beginning::read("z", &endless, 20 << 30), Ok(Beginning::Needs(_))));
    let key = [&(1_u64 << 33).to_le_bytes()[..], &[b'k'; 64]].concat();
    let told = Beginning::read("z", &[endless, key].concat(), 20 << 30).unwrap_err().to_string();
    assert!(told.contains("its header is longer than"), "{told}");
}

#[test]
fn what_is_wrong_with_a_tokenizer_names_its_file() {
    let (tensors, config) = tiny::llama_tensors();
    let bytes = tiny::safetensors(&tensors, None);
    let told = |tokenizer: &[u8], weights: &[u8], config: Option<&str>| {
        let config = config.map(str::as_bytes);
        let source = Source { config, tokenizer: Some(tokenizer), ..source(weights) };
        Checkpoint::read(&source).unwrap_err().to_string()
    };
    for garbage in [&b"garbage"[..], b"{\"model\":", b"[]", b""] {
        let told = told(garbage, &bytes, Some(&config));
        assert!(told.starts_with("tokenizer.json of tiny: "), "{told}");
    }
    let told = told(b"garbage, garbage", &tiny::llama2c(5), None);
    assert!(told.starts_with("tokenizer.bin of tiny: it ends inside the token at byte 4"), "{told}");
}

/// Sound inputs of `any_bytes`, by name: a byte that says what is beside the file, that, then the file.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let part = |bytes: &[u8]| [&(bytes.len() as u16).to_le_bytes(), bytes].concat();
    let pieces = crate::vocabularies::word_pieces(&crate::vocabularies::around());
    let mut seeds = Vec::new();
    for (number, (bytes, config)) in every_format().into_iter().enumerate() {
        let choice = match &config {
            None => 0,
            Some(config) if config.contains("llama") => 1,
            Some(_) => 2,
        };
        seeds.push((format!("tiny-{number}"), [&[choice][..], &bytes].concat()));
        seeds
            .push((format!("tiny-{number}-tokenizer"), [&[4 + choice][..], &part(&pieces), &bytes].concat()));
        if let Some(config) = config {
            seeds.push((
                format!("tiny-{number}-config"),
                [&[3][..], &part(config.as_bytes()), &bytes].concat(),
            ));
        }
    }
    seeds
}

/// Where `fuzz/run` begins.
#[test]
fn seeds_for_fuzzing_are_written_when_asked_for() {
    let Some(folder) = std::env::var_os("ESSCHER_SEEDS") else { return };
    for (name, bytes) in seeds() {
        std::fs::write(std::path::Path::new(&folder).join(name), bytes).unwrap();
    }
}

#[test]
fn every_truncation_of_a_sound_file_is_refused() {
    for (number, (bytes, config)) in every_format().into_iter().enumerate() {
        let read = |bytes: &[u8]| {
            Content::read(&Source { config: config.as_deref().map(str::as_bytes), ..source(bytes) })
        };
        if let Err(error) = read(&bytes) {
            panic!("file {number}: {error}");
        }
        // A llama2.c file may end where its tokenizer would begin.
        let sound = if number == 4 { tiny::llama2c(261).len() } else { bytes.len() };
        // Past the headers every position is alike.
        for length in (0..bytes.len()).filter(|length| *length < 3000 || length % 61 == 0) {
            assert!(length == sound || read(&bytes[..length]).is_err(), "file {number} cut at {length}");
        }
    }
}

/// What may happen to a file: a byte of the header or of the whole becomes another, a run of bytes is repeated or lost, four
/// bytes become a large number.
#[derive(Debug, Clone)]
enum Damage {
    Byte { at: Index, header: bool, byte: u8 },
    Repeat { at: Index, count: usize },
    Loss { at: Index, count: usize },
    Large { at: Index, number: u32 },
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), any::<bool>(), any::<u8>())
            .prop_map(|(at, header, byte)| Damage::Byte { at, header, byte }),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, count)| Damage::Repeat { at, count }),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, count)| Damage::Loss { at, count }),
        1 => (any::<Index>(), prop_oneof![Just(u32::MAX), Just(1 << 31), Just(0), any::<u32>()])
            .prop_map(|(at, number)| Damage::Large { at, number }),
    ]
}

fn suffer(bytes: &mut Vec<u8>, damage: &Damage) {
    let run = |at: &Index, count: usize| {
        let start = at.index(bytes.len());
        start..(start + count).min(bytes.len())
    };
    match damage {
        Damage::Byte { at, header, byte } => {
            let place = at.index(if *header { bytes.len().min(600) } else { bytes.len() });
            bytes[place] = *byte;
        }
        Damage::Repeat { at, count } => {
            let run = run(at, *count);
            bytes.splice(run.start..run.start, bytes[run].to_vec());
        }
        Damage::Loss { at, count } => drop(bytes.drain(run(at, *count))),
        Damage::Large { at, number } => {
            let run = run(at, 4);
            let number = number.to_le_bytes();
            bytes[run.clone()].copy_from_slice(&number[..run.len()]);
        }
    }
}

#[test]
fn sound_files_are_read_and_run() {
    // The tokenizer is that of none of the files: where it does not fit, that is the refusal.
    for (name, bytes) in seeds().iter().filter(|(name, _)| !name.ends_with("tokenizer")) {
        assert!(any_bytes::feed(bytes), "{name}");
    }
}

/// `fuzz/run` searches further with the same seeds and the same function.
#[test]
fn damaged_files_are_refused_or_run() {
    let seeds = seeds();
    let config = ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(5),
        ..ProptestConfig::default()
    };
    let read = Cell::new(0);
    let cases = (any::<Index>(), prop::collection::vec(damage(), 1..6));
    let outcome = TestRunner::new(config).run(&cases, |(file, damages)| {
        let mut bytes = seeds[file.index(seeds.len())].1.clone();
        damages.iter().for_each(|damage| suffer(&mut bytes, damage));
        read.set(read.get() + usize::from(any_bytes::feed(&bytes)));
        Ok(())
    });
    outcome.unwrap();
    println!("{} of 1500 damaged files are still read", read.get());
    assert!((100..1400).contains(&read.get()), "{} of 1500 damaged files are read", read.get());
}
