//! Any bytes: read as a checkpoint or a dump of any format they give a refusal or a model, never a panic, never much memory.
//!
//! The first byte chooses which config.json stands beside, so that safetensors get past theirs.
#![no_main]

use esscher_audit::checkpoint::{Content, Source};
use libfuzzer_sys::fuzz_target;

const LLAMA: &str = r#"{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32, "tie_word_embeddings": true}"#;
const BERT: &str = r#"{"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 12,
    "num_attention_heads": 2, "max_position_embeddings": 6}"#;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, weights)) = bytes.split_first() else { return };
    let config = match choice % 3 {
        0 => None,
        1 => Some(LLAMA.as_bytes()),
        _ => Some(BERT.as_bytes()),
    };
    let source = Source { name: "fuzzed", weights, config, tokenizer: None };
    if let Ok(Content::Checkpoint(checkpoint)) = Content::read(&source) {
        if let Some(vocabulary) = checkpoint.vocabulary {
            for token in vocabulary.encode("It's 12 cafés.").unwrap_or_default() {
                assert!((token as usize) < vocabulary.len(), "token {token} is outside the embedding");
                vocabulary.token(token);
            }
        }
    }
});
