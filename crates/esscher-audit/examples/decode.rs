//! Decodes after a long prompt, from an exact cache and from a streaming one, and prints tokens per second and memory.
//!
//! `cargo run --release -p esscher-audit --example decode -- MODEL TEXT.txt exact|CANDIDATE [CONTEXT] [TOKENS]`: one way per process, so
//! that the peak of its memory is its own; bench/streaming_decode runs several in turn.

use esscher_audit::assignment::Assignment;
use esscher_audit::calibration::calibrate;
use esscher_audit::candidate::{Candidate, Frame};
use esscher_audit::checkpoint::{Checkpoint, Source};
use esscher_audit::decoding::MixedCache;
use esscher_audit::model::Model;
use esscher_audit::segment::segments;
use esscher_core::monitor::Unwatched;
use std::error::Error;
use std::time::Instant;

/// Tokens per call while the prompt is read: memory for one piece, not for the prompt.
const PIECE: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, text, candidate, rest @ ..] = arguments.as_slice() else {
        return Err("expected MODEL TEXT exact|CANDIDATE [CONTEXT] [TOKENS]".into());
    };
    let number = |place: usize, default: usize| rest.get(place).map_or(Ok(default), |text| text.parse());
    let (context, decoded) = (number(0, 8192)?, number(1, 64)?);
    let bytes = std::fs::read(model)?;
    let source = Source { name: model, weights: &bytes, config: None, tokenizer: None };
    let checkpoint = Checkpoint::read(&source)?;
    let vocabulary = checkpoint.vocabulary.ok_or("the checkpoint has no vocabulary")?;
    let tokens = vocabulary.encode_bare(&std::fs::read_to_string(text)?)?;
    let model = Model::new(checkpoint.weights)?;
    let shape = *model.shape();
    let candidate: Candidate = candidate.parse()?;
    let frame = Frame::default();
    let template = vocabulary.template();
    let calibration = calibrate(&model, &segments(&tokens, template, 512, 2)?, &Unwatched)?
        .ok_or("calibration was stopped")?;
    let before = peak_memory();
    let mut cache =
        MixedCache::new(&shape, &Assignment::everywhere(&shape, candidate), &frame, &calibration)?;
    // The prompt is filled up by repeating the text: only its length matters here. Room is left for what is decoded.
    let length = context.min(shape.context).checked_sub(decoded).filter(|length| *length > 0);
    let length = length.ok_or("there is no room for a prompt: ask for a longer context or fewer tokens")?;
    let prompt: Vec<u32> =
        template.prefix.iter().chain(tokens.iter().cycle()).take(length).copied().collect();
    let mut last = Vec::new();
    let began = Instant::now();
    for (piece, tokens) in prompt.chunks(PIECE).enumerate() {
        last = model.forward(tokens, piece * PIECE, &mut cache, &Unwatched)?.ok_or("stopped")?;
    }
    let filled = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for position in prompt.len()..prompt.len() + decoded {
        let logits = model.logits(&last[last.len() - shape.width..])?;
        let best = logits.iter().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        let next = best.map_or(0, |(token, _)| token as u32);
        last = model.forward(&[next], position, &mut cache, &Unwatched)?.ok_or("stopped")?;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{candidate}: {:.1} tokens per second after {} tokens ({:.0} per second while reading them); cache {:.1} MB; peak memory {:.0} MB \
         ({:.0} MB before the cache)",
        decoded as f64 / seconds,
        prompt.len(),
        prompt.len() as f64 / filled,
        cache.bytes() as f64 / 1e6,
        peak_memory(),
        before
    );
    Ok(())
}

/// The largest resident memory of this process so far in MB, 0 where the system does not tell.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok())
        .map_or(0.0, |kilobytes| kilobytes / 1e3)
}
