//! Any bytes: read as a checkpoint or a dump of any format they give a refusal or a model that runs, never a panic, never much
//! memory.
//!
//! The first byte says what stands beside the file: its last two bits choose config.json (none, that of a tiny llama or BERT so that
//! safetensors get past it, or the input's own), the third whether there is a tokenizer of the input's own. Parts of the input's
//! own follow, each after its length in two bytes; the rest is the file.
#![no_main]

use esscher_audit::calibration::Observations;
use esscher_audit::checkpoint::{Content, Source};
use esscher_audit::model::{ExactAttention, Model};
use esscher_core::Unwatched;
use libfuzzer_sys::fuzz_target;

const LLAMA: &str = r#"{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32, "tie_word_embeddings": true}"#;
const BERT: &str = r#"{"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
    "num_attention_heads": 2, "max_position_embeddings": 6}"#;

/// A part of the input after its length, as much as there is.
fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (part, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    *bytes = rest;
    Some(part)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, mut weights)) = bytes.split_first() else { return };
    let config = match choice & 3 {
        0 => None,
        1 => Some(LLAMA.as_bytes()),
        2 => Some(BERT.as_bytes()),
        _ => part(&mut weights),
    };
    let tokenizer = if choice & 4 == 0 { None } else { part(&mut weights) };
    let source = Source { name: "fuzzed", weights, config, tokenizer };
    let checkpoint = match Content::read(&source) {
        Ok(Content::Checkpoint(checkpoint)) => checkpoint,
        Ok(Content::Dump(dump)) => {
            let observed = Observations::of_dump(&dump).expect("a dump that is read is sound");
            Observations::calibration(&[observed]).expect("one text calibrates");
            return;
        }
        Err(_) => return,
    };
    let Ok(model) = Model::new(checkpoint.weights) else { return };
    let shape = *model.shape();
    let mut tokens = vec![0, shape.vocabulary as u32 - 1];
    if let Some(vocabulary) = checkpoint.vocabulary {
        for token in vocabulary.encode("It's 12 cafés.").unwrap_or_default() {
            assert!((token as usize) < shape.vocabulary, "token {token} is outside the embedding");
            vocabulary.token(token);
            tokens[1] = token;
        }
    }
    if let Ok(Some(hidden)) = model.forward(&tokens, 0, &mut ExactAttention::new(&shape), &Unwatched) {
        assert_eq!(hidden.len(), 2 * shape.width);
        let _ = model.log_likelihoods(&hidden, &tokens);
    }
});
