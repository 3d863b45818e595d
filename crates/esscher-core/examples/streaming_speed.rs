//! Speed, linearity and memory of the streaming kernel, for the scripts in `bench/`; one thread, CPU time.
//!
//! `streaming_speed speed` prints lines `name nanoseconds-per-token`; `linear` prints how time grows with L and with
//! queries; `memory TOKENS` runs one prompt of that length and prints the peak resident memory.

use esscher_core::attention::Softmax;
use esscher_core::measure::{Affine, Cube, Gaussian, Law};
use esscher_core::prompt::{Precision, PromptLength, SampleOptions, SampledPrompts};
use esscher_core::{Error, Mat, Result, Unwatched};
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["speed"] => speed(),
        ["linear"] => linear(),
        ["memory", tokens] => {
            memory(tokens.parse().map_err(|_| Error::Empty { what: "the number of tokens" })?)
        }
        _ => {
            println!("usage: streaming_speed speed | linear | memory TOKENS");
            Ok(())
        }
    }
}

/// Seconds of processor time of this process; wall time where the system does not say.
fn cpu_seconds() -> f64 {
    let nanoseconds = std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|statistics| statistics.split_whitespace().next()?.parse::<f64>().ok());
    thread_local!(static START: Instant = Instant::now());
    nanoseconds
        .map_or_else(|| START.with(|start| start.elapsed().as_secs_f64()), |nanoseconds| nanoseconds / 1e9)
}

/// One prompt of N(0, I) tokens in Rᵈ, read by queries with score deviation about one.
fn prompts(dimension: usize, queries: u32, tokens: u64, options: SampleOptions) -> Result<SampledPrompts> {
    let identity = Mat::<f64>::identity(dimension, dimension);
    let head = Softmax::new(identity.as_ref(), identity.as_ref())?;
    // A scaled cube has no radial form: exactly `queries` independent queries.
    let scale = (3.0 / dimension as f64).sqrt();
    let query_law: Law = Arc::new(Affine::scaled(scale, Arc::new(Cube::new(dimension)?))?);
    let token_law: Law = Arc::new(Gaussian::standard(dimension)?);
    let options = SampleOptions { trials: 1, queries, ..options };
    SampledPrompts::new(&head, token_law, query_law, &[PromptLength::new(tokens)?], options)
}

/// CPU nanoseconds per token of one prompt; the best of five, since other work can only slow it down.
fn nanoseconds(dimension: usize, queries: u32, tokens: u64, options: SampleOptions) -> Result<f64> {
    let prompts = prompts(dimension, queries, tokens, options)?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = cpu_seconds();
        prompts.run_unit(0, &Unwatched)?;
        best = best.min(cpu_seconds() - start);
    }
    Ok(best / tokens as f64 * 1e9)
}

fn speed() -> Result<()> {
    let outputs = SampleOptions { score_gradient: false, ..SampleOptions::default() };
    let single = SampleOptions { precision: Precision::Single, ..outputs };
    let gradients = SampleOptions { score_gradient: true, ..outputs };
    println!("# instruction set {}", outputs.instruction_set);
    println!("float64 {:.1}", nanoseconds(16, 256, 1_000_000, outputs)?);
    println!("float32 {:.1}", nanoseconds(16, 256, 1_000_000, single)?);
    println!("float64-gradients {:.1}", nanoseconds(16, 256, 200_000, gradients)?);
    Ok(())
}

fn linear() -> Result<()> {
    let options = SampleOptions { score_gradient: false, ..SampleOptions::default() };
    let base = nanoseconds(16, 256, 500_000, options)?;
    let longer = nanoseconds(16, 256, 4_000_000, options)?;
    println!("time per token, L = 4,000,000 over L = 500,000: {:.2} (1 is linear)", longer / base);
    let more = nanoseconds(16, 1024, 250_000, options)?;
    println!("time per token, 1024 queries over 256: {:.2} (4 is linear)", more / base);
    Ok(())
}

fn memory(tokens: u64) -> Result<()> {
    let options = SampleOptions { score_gradient: false, ..SampleOptions::default() };
    prompts(2, 8, tokens, options)?.run_unit(0, &Unwatched)?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    println!("{tokens} {}", peak.split_whitespace().nth(1).unwrap_or("unknown"));
    Ok(())
}
