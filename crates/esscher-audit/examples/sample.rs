//! Samples texts from a causal checkpoint: how `texts/stories.txt` was made.
//!
//! `cargo run --release -p esscher-audit --example sample -- MODEL TEXTS [TEMPERATURE] [SEED]` prints them, a blank line between.

use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::model::{ExactCache, Model};
use esscher_core::monitor::Unwatched;
use esscher_core::numerics::{Stream, softmax};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, texts, rest @ ..] = arguments.as_slice() else {
        return Err("expected MODEL TEXTS [TEMPERATURE] [SEED]".into());
    };
    let temperature: f64 = rest.first().map_or(Ok(1.0), |text| text.parse())?;
    let seed: u64 = rest.get(1).map_or(Ok(0), |text| text.parse())?;
    let bytes = std::fs::read(file)?;
    let checkpoint =
        Checkpoint::read(&Source { name: file, weights: &bytes, config: None, tokenizer: None })?;
    let vocabulary = checkpoint.vocabulary.ok_or("the checkpoint has no vocabulary")?;
    let begin = vocabulary.begin().ok_or("the vocabulary has no token to begin with")?;
    let model = Model::new(checkpoint.weights)?;
    for text in 0..texts.parse()? {
        let mut stream = Stream::new(seed, text, 0);
        let mut cache = ExactCache::new(model.shape())?;
        let mut tokens = vec![begin];
        while tokens.len() < model.shape().context {
            let last = tokens.len() - 1;
            let hidden = model.forward(&tokens[last..], last, &mut cache, &Unwatched)?.ok_or("stopped")?;
            let scores: Vec<f64> =
                model.logits(&hidden)?.iter().map(|score| f64::from(*score) / temperature).collect();
            let next = stream.index(&softmax(&scores).0) as u32;
            // A text is over when the next would begin.
            if next == begin || next == begin + 1 {
                break;
            }
            tokens.push(next);
        }
        println!("{}\n", vocabulary.decode(&tokens).trim());
    }
    Ok(())
}
