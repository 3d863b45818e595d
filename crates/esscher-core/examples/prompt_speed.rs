//! How long softmax attention over a given prompt takes, and how much longer its definition, written down, does.
//!
//! `cargo run --release --example prompt_speed`; RAYON_NUM_THREADS=1 for one thread.

use esscher_core::Mat;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::Prompt;
use esscher_core::numerics::{Stream, linalg, softmax};
use rayon::prelude::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Scores, softmax, weighted mean; queries on all threads.
fn by_definition(dimension: usize, tokens: &[f64], queries: &Mat<f64>) -> Vec<Vec<f64>> {
    (0..queries.nrows())
        .into_par_iter()
        .map(|row| {
            let query: Vec<f64> = queries.row(row).iter().copied().collect();
            let points = tokens.chunks_exact(dimension);
            let scores: Vec<f64> = points.clone().map(|token| linalg::dot(&query, token)).collect();
            let mut mean = vec![0.0; dimension];
            for (token, weight) in points.zip(softmax(&scores).0) {
                linalg::add_scaled(&mut mean, weight, token);
            }
            mean
        })
        .collect()
}

/// The least of several runs, in microseconds: other work on the machine can only add.
fn least_time(mut run: impl FnMut()) -> f64 {
    let end = Instant::now() + Duration::from_secs(1);
    let mut least = f64::INFINITY;
    for round in 0.. {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_secs_f64() * 1e6);
        if round >= 2 && Instant::now() > end {
            break;
        }
    }
    least
}

fn main() -> Result<(), esscher_core::Error> {
    println!(
        "{:>9}{:>5}{:>9}{:>16}{:>17}{:>21}{:>8}",
        "tokens", "d", "queries", "checking, µs", "attention, µs", "by definition, µs", "ratio"
    );
    let cases = [
        (100, 16, 1),
        (100, 16, 256),
        (10_000, 16, 1),
        (1_000_000, 16, 1),
        (100_000, 16, 256),
        (100_000, 3, 1),
    ];
    for (count, dimension, queries) in cases {
        let mut stream = Stream::new(1, 0, 0);
        let mut tokens = vec![0.0; count * dimension];
        stream.fill_normals(&mut tokens);
        let queries = Mat::from_fn(queries, dimension, |_, _| 0.25 * stream.normal());
        let identity = linalg::identity(dimension);
        let head = Softmax::new(identity.as_ref(), identity.as_ref())?;
        let prompt = Prompt::new(dimension, &tokens)?;
        let checking = least_time(|| drop(black_box(Prompt::new(dimension, black_box(&tokens)))));
        let ours = least_time(|| drop(black_box(head.attend_all(&prompt, queries.as_ref()))));
        let definition = least_time(|| drop(black_box(by_definition(dimension, &tokens, &queries))));
        println!(
            "{count:>9}{dimension:>5}{:>9}{checking:>16.2}{ours:>17.2}{definition:>21.2}{:>8.1}",
            queries.nrows(),
            definition / ours
        );
    }
    Ok(())
}
