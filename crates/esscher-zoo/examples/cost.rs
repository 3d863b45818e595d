//! What the mechanisms cost on one thread in f32: time against length, a decoding step, state, and where softmax is overtaken.
//!
//! `cargo run --release -p esscher-zoo --features bench --example cost [NAME ...]`: all mechanisms, or those named; widths are 64.

use esscher_zoo::agreement::{Drawn, Gates};
use esscher_zoo::catalogue::{Cost, Entry, Sizes, catalogue, find};
use esscher_zoo::mechanism::{Given, Gradient, Mechanism, Pass, State};
use std::time::Instant;

const WIDTH: usize = 64;
const LENGTHS: [usize; 7] = [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16];
/// Longest sequence for mechanisms of quadratic cost.
const LONGEST_QUADRATIC: usize = 1 << 14;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let entries: Vec<&Entry> = match names.is_empty() {
        true => catalogue().iter().collect(),
        false => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    let sizes = Sizes::new(WIDTH, WIDTH)?;
    println!(
        "milliseconds of forward + backward at L = 1024 … 65536; exponent of L between the last two; microseconds of"
    );
    println!("a decoding step after 1024 and 16384 tokens; bytes of the state after them");
    let mut curves = Vec::new();
    for entry in entries {
        let mechanism = (entry.build)(sizes);
        let lengths: Vec<usize> = LENGTHS
            .into_iter()
            .filter(|&length| entry.claims.cost == Cost::Linear || length <= LONGEST_QUADRATIC)
            .collect();
        let times: Vec<f64> =
            lengths.iter().map(|&length| forward_and_backward(&*mechanism, length)).collect();
        let exponent = (times[times.len() - 1] / times[times.len() - 2]).log2();
        let printed: Vec<String> = times.iter().map(|time| format!("{:.1}", 1e3 * time)).collect();
        let steps: Vec<(f64, usize)> =
            [1 << 10, 1 << 14].iter().map(|&seen| decoding(&*mechanism, seen)).collect();
        println!(
            "{:<22} {:<60} L^{exponent:.2}  {:.1} {:.1} us  {} {} B",
            entry.name,
            printed.join(" "),
            1e6 * steps[0].0,
            1e6 * steps[1].0,
            steps[0].1,
            steps[1].1
        );
        curves.push((entry.name, lengths, times));
    }
    let Some(softmax) = curves.iter().find(|curve| curve.0 == "softmax") else { return Ok(()) };
    println!("\nforward + backward beats causal softmax from about L =");
    for (name, lengths, times) in curves.iter().filter(|curve| curve.0 != "softmax") {
        println!("{name:<22} {}", crossover(lengths, times, &softmax.2));
    }
    Ok(())
}

/// Where two curves cross, between lengths by a power law.
fn crossover(lengths: &[usize], times: &[f64], softmax: &[f64]) -> String {
    let faster: Vec<f64> = times.iter().zip(softmax).map(|(own, other)| (own / other).ln()).collect();
    match faster.iter().position(|ratio| *ratio < 0.0) {
        Some(0) => format!("less than {}", lengths[0]),
        Some(index) => {
            let share = faster[index - 1] / (faster[index - 1] - faster[index]);
            format!("{:.0}", lengths[index - 1] as f64 * 2f64.powf(share))
        }
        None => format!("more than {}", lengths[faster.len() - 1]),
    }
}

fn forward_and_backward(mechanism: &dyn Mechanism, length: usize) -> f64 {
    let drawn = Drawn::new(mechanism, length, Gates::Moderate, 0);
    let width = mechanism.signature().output;
    let slopes = vec![1.0_f32; length * width];
    drawn.with::<f32, _>(0, length, |given| {
        let once = || {
            let initial: State<f32> = mechanism.init();
            let mut state = initial.clone();
            let mut outputs = vec![0.0_f32; length * width];
            let start = Instant::now();
            let saved = mechanism.forward(given, &mut state, &mut outputs);
            let mut gradient = Gradient::zeros(given);
            let zeros = State { seen: state.seen, numbers: vec![0.0; state.numbers.len()] };
            let pass = Pass {
                given,
                initial: &initial,
                outputs: &outputs,
                saved: &saved.0,
                output_slopes: &slopes,
                state_slopes: &zeros,
            };
            mechanism.backward(&pass, &mut gradient);
            start.elapsed().as_secs_f64()
        };
        (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
    })
}

/// Seconds of one step after `seen` tokens, and the bytes of the state.
fn decoding(mechanism: &dyn Mechanism, seen: usize) -> (f64, usize) {
    const STEPS: usize = 64;
    let drawn = Drawn::new(mechanism, seen + STEPS, Gates::Moderate, 0);
    let mut state: State<f32> = mechanism.init();
    let width = mechanism.signature().output;
    drawn.with::<f32, _>(0, seen, |given| mechanism.forward(given, &mut state, &mut vec![0.0; seen * width]));
    let bytes = state.bytes();
    let mut output = vec![0.0_f32; width];
    let best = drawn.with::<f32, _>(seen, seen + STEPS, |given| {
        let mut best = f64::INFINITY;
        for token in 0..STEPS {
            let rows: Vec<&[f32]> = (0..given.tokens.len()).map(|port| given.row(port, token)).collect();
            let one = Given { length: 1, tokens: &rows, parameters: given.parameters };
            let start = Instant::now();
            mechanism.absorb(&one, &mut state);
            mechanism.read(&one, state.view(), &mut output);
            best = best.min(start.elapsed().as_secs_f64());
        }
        best
    });
    (best, bytes)
}
