//! Any bytes: read as a checkpoint or a dump of any format they give a refusal or a model that runs, never a panic, never much
//! memory. The tests feed damaged files to it, `fuzz/run` whatever libFuzzer finds.
//!
//! The first byte says what stands beside the file: its last two bits choose config.json (none, that of a tiny llama or BERT so that
//! safetensors get past it, or the input's own), the third whether there is a tokenizer of the input's own. Parts of the input's
//! own follow, each after its length in two bytes; the rest is the file.

use esscher_audit::Error;
use esscher_audit::calibration::Observations;
use esscher_audit::checkpoint::{Beginning, Checkpoint, Content, Source};
use esscher_audit::model::{ExactAttention, Model};
use esscher_core::Unwatched;

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

/// Reads the bytes and runs what they hold; whether they held anything.
pub(crate) fn feed(bytes: &[u8]) -> bool {
    let Some((choice, mut weights)) = bytes.split_first() else { return false };
    let config = match choice & 3 {
        0 => None,
        1 => Some(LLAMA.as_bytes()),
        2 => Some(BERT.as_bytes()),
        _ => part(&mut weights),
    };
    let tokenizer = if choice & 4 == 0 { None } else { part(&mut weights) };
    let length = weights.len() as u64;
    let whole = Beginning::read("fuzzed", weights, length);
    assert!(!matches!(whole, Ok(Beginning::Needs(_))), "the whole file is not enough");
    // More than the file is never asked for.
    if let Ok(Beginning::Needs(more)) = Beginning::read("fuzzed", &weights[..weights.len().min(64)], length) {
        assert!(more <= length && more > 64, "{more} bytes of {length} are asked for");
    }
    let content = Content::read(&Source { name: "fuzzed", weights, config, tokenizer });
    assert!(content.is_err() || whole.is_ok(), "a file that can be read is refused: {whole:?}");
    match content {
        Ok(Content::Checkpoint(checkpoint)) => run(*checkpoint),
        Ok(Content::Dump(dump)) => match Observations::of_dump(&dump, &Unwatched) {
            Ok(observed) => {
                Observations::calibration(&[observed.unwrap()]).expect("one text calibrates");
            }
            // Of numbers that are sound one by one, products may be too large, and values may be none that a model computes.
            Err(error) => {
                let is_too_large =
                    matches!(error, Error::ScoresOverflow { .. } | Error::ValuesTooLarge { .. });
                assert!(is_too_large, "{error}");
            }
        },
        Err(_) => return false,
    }
    true
}

fn run(checkpoint: Checkpoint) {
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
}
