//! Exact finite prompts: a sweep over lengths, the cost against L, and a naive implementation beside it.
//!
//! `cargo bench --bench finite_prompt` prints criterion's times and then the ratios of this run.

use criterion::{Criterion, criterion_group};
use esscher_core::attention::Softmax;
use esscher_core::measure::Gaussian;
use esscher_core::numerics::{Stream, normal};
use esscher_core::prompt::{FinitePrompt, PromptLength};
use esscher_core::softmax_weights::WeightMoments;
use esscher_core::{Mat, Unwatched};
use std::hint::black_box;
use std::time::{Duration, Instant};

const DIMENSION: usize = 16;
const QUERIES: usize = 256;

/// Tokens N(0, I) and queries with τ = |z|/4·H, H = 2: score deviations around 2, up to about 3.
fn setting() -> (FinitePrompt, Mat<f64>) {
    let score = Mat::from_fn(DIMENSION, DIMENSION, |i, j| if i == j { 0.5 } else { 0.0 });
    let value = Mat::identity(DIMENSION, DIMENSION);
    let head = Softmax::new(score.as_ref(), value.as_ref()).expect("a valid head");
    let tokens = Gaussian::standard(DIMENSION).expect("a valid law");
    let mut stream = Stream::new(1, 0, 0);
    let queries = Mat::from_fn(QUERIES, DIMENSION, |_, _| stream.normal());
    (FinitePrompt::exact(&head, &tokens).expect("Gaussian tokens"), queries)
}

fn length(tokens: u64) -> PromptLength {
    PromptLength::new(tokens).expect("a valid length")
}

fn forty_lengths() -> Vec<PromptLength> {
    PromptLength::logarithmic(length(2), PromptLength::MAX, 40)
}

fn sweep(prompt: &FinitePrompt, queries: &Mat<f64>, lengths: &[PromptLength]) {
    let swept = prompt.at_queries(queries.as_ref(), lengths, &Unwatched).expect("a valid sweep");
    black_box(swept);
}

/// What one would write first: for each length, the double integral of E(G−τ)² and E S₂ with an exponential
/// per node, nothing shared.
fn naive(tau: f64, length: f64) -> (f64, f64) {
    let (mut error, mut squares) = (0.0, 0.0);
    let log_length = length.ln();
    for i in 0..400 {
        let s = -log_length - 0.5 * tau * tau - 20.0 - 10.0 * tau + 0.25 * f64::from(i) * (1.0 + 0.2 * tau);
        let (mut survival, mut first, mut second, mut pair) = (0.0, 0.0, 0.0, 0.0);
        let step = 1.0 / 16.0;
        for j in 0..((20.0 + 4.0 * tau) / step) as usize {
            let g = -10.0 + step * j as f64;
            let u = (s + tau * g).exp();
            let weight = step * normal::density(g);
            survival += weight * (-u).exp_m1();
            first += weight * u * (g - tau) * (-u).exp_m1();
            second += weight * u * u * (g - tau) * (g - tau) * (-u).exp();
            pair += weight * u * u * (-u).exp();
        }
        let log_survival = survival.ln_1p();
        let one = length * ((length - 1.0) * log_survival).exp();
        let two = one * (length - 1.0) * (-log_survival).exp();
        let step = 0.25 * (1.0 + 0.2 * tau);
        error += step * (one * second + two * first * first);
        squares += step * one * pair;
    }
    (error, squares)
}

fn benches(criterion: &mut Criterion) {
    let (prompt, queries) = setting();
    let mut group = criterion.benchmark_group("256 queries, outputs and both gradients");
    group.sample_size(10);
    group.bench_function("40 lengths up to 1e12", |b| b.iter(|| sweep(&prompt, &queries, &forty_lengths())));
    group.bench_function("one length, 10", |b| b.iter(|| sweep(&prompt, &queries, &[length(10)])));
    group.bench_function("one length, 1e12", |b| b.iter(|| sweep(&prompt, &queries, &[PromptLength::MAX])));
    group.finish();
    let mut group = criterion.benchmark_group("scalars of one query, τ = 2, 40 lengths");
    group.sample_size(10);
    group.bench_function("exact, 14 moments", |b| {
        b.iter(|| WeightMoments::at(black_box(2.0), &forty_lengths()).expect("valid"));
    });
    group.bench_function("naive, 2 moments", |b| {
        b.iter(|| forty_lengths().iter().map(|l| naive(black_box(2.0), l.as_f64()).0).sum::<f64>());
    });
    group.finish();
}

/// Median time of a few runs.
fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The ratios that the project claims, measured in one run.
#[allow(clippy::print_stdout, reason = "a bench reports on the terminal")]
fn print_ratios() {
    let (prompt, queries) = setting();
    let forty = median(|| sweep(&prompt, &queries, &forty_lengths()));
    let short = median(|| sweep(&prompt, &queries, &[length(10)]));
    let long = median(|| sweep(&prompt, &queries, &[PromptLength::MAX]));
    let exact = median(|| drop(black_box(WeightMoments::at(2.0, &forty_lengths()))));
    let slow = median(|| {
        black_box(forty_lengths().iter().map(|l| naive(2.0, l.as_f64()).0).sum::<f64>());
    });
    println!("\n256 queries x 40 lengths up to 1e12, outputs and both gradients: {forty:.2?}");
    println!("cost at L = 1e12 over cost at L = 10: {:.2}", long.as_secs_f64() / short.as_secs_f64());
    println!("40 lengths over one length: {:.2}", forty.as_secs_f64() / long.as_secs_f64());
    println!(
        "naive (2 moments) over exact (14 moments), one query: {:.1}",
        slow.as_secs_f64() / exact.as_secs_f64()
    );
}

criterion_group!(all, benches);

fn main() {
    all();
    print_ratios();
}
