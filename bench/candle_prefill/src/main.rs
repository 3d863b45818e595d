//! Prefill of one GGUF checkpoint by esscher-audit and by candle, alternating, and decoding after a long context.
//!
//! `cargo run --release -- FILE.gguf [TOKENS] [REPETITIONS]`; exits with 1 if the logits disagree or candle is faster.

use candle_core::{Device, Tensor, quantized::gguf_file};
use candle_transformers::models::quantized_llama::ModelWeights;
use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::model::{ExactAttention, ExactCache, Model};
use esscher_core::Unwatched;
use std::time::Instant;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or_else(|| anyhow::anyhow!("give the path of a GGUF file"))?;
    let count: usize = arguments.next().map_or(Ok(1024), |number| number.parse())?;
    let repetitions: usize = arguments.next().map_or(Ok(5), |number| number.parse())?;

    let bytes = std::fs::read(&file)?;
    let source = Source { name: &file, weights: &bytes, config: None, tokenizer: None };
    let model = Model::new(Checkpoint::read(&source)?.weights)?;
    let content = gguf_file::Content::read(&mut std::io::Cursor::new(&bytes))?;
    let mut candle = ModelWeights::from_gguf(content, &mut std::io::Cursor::new(&bytes), &Device::Cpu)?;

    let vocabulary = model.shape().vocabulary;
    let tokens: Vec<u32> = (0..count).map(|place| (place * 7919 % vocabulary) as u32).collect();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..repetitions {
        let start = Instant::now();
        let mut attention = ExactAttention::new(model.shape());
        let hidden = model.forward(&tokens, 0, &mut attention, &Unwatched)?.unwrap_or_default();
        let logits = model.logits(&hidden[hidden.len() - model.shape().width..])?;
        ours.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let input = Tensor::new(&tokens[..], &Device::Cpu)?.unsqueeze(0)?;
        let expected: Vec<f32> = candle.forward(&input, 0)?.squeeze(0)?.to_vec1()?;
        theirs.push(start.elapsed().as_secs_f64());

        let largest = expected.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        let difference = logits.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!(
            "esscher {:.3} s, candle {:.3} s, largest difference of logits {difference:.4} of {largest:.2}",
            ours[ours.len() - 1],
            theirs[theirs.len() - 1]
        );
        // candle rounds activations to 8 bits in products with quantised weights.
        anyhow::ensure!(difference < 0.05 * largest, "the logits disagree");
    }
    for times in [&mut ours, &mut theirs] {
        times.sort_by(f64::total_cmp);
    }
    let middle = repetitions / 2;
    println!(
        "{count} tokens on {} threads: esscher {:.3} s (median {:.3}), candle {:.3} s (median {:.3}), candle / esscher {:.2}",
        rayon::current_num_threads(),
        ours[0],
        ours[middle],
        theirs[0],
        theirs[middle],
        theirs[0] / ours[0]
    );
    decode(&model, 8192.min(model.shape().context - 1) - 64)?;
    anyhow::ensure!(ours[0] <= theirs[0], "candle is faster");
    Ok(())
}

/// Tokens per second with a cache of `cached` synthetic tokens.
fn decode(model: &Model, cached: usize) -> anyhow::Result<()> {
    let shape = model.shape();
    let width = shape.key_value_heads * shape.head_dimension;
    let keys: Vec<f32> =
        (0..cached * width).map(|place| (place * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
    let mut cache = ExactCache::new(shape)?;
    for layer in 0..shape.layers {
        cache.extend(layer, &keys, &keys)?;
    }
    let steps = 30;
    let mut times = Vec::new();
    for step in 0..steps {
        let start = Instant::now();
        let hidden = model.forward(&[step as u32], cached + step, &mut cache, &Unwatched)?.unwrap_or_default();
        model.logits(&hidden)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    println!(
        "decoding after {cached} tokens: {:.1} tokens per second (median {:.1}), cache of {:.0} MB",
        1.0 / times[0],
        1.0 / times[steps / 2],
        cache.bytes() as f64 / 1e6
    );
    Ok(())
}
