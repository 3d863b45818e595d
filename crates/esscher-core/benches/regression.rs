//! Training at finite length against the infinite prompt: one gradient at d = 20, and a whole flow at d = 5.
//!
//! `cargo bench --bench regression` prints criterion's times and then the ratios of this run.

use criterion::{Criterion, criterion_group};
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{
    FlowOptions, LinearRegression, PointAverage, RegressionHead, Response, RiskAverage, SpectralLandscape,
    SpectralTask, flow,
};
use esscher_core::{Mat, Unwatched};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn length(tokens: u64) -> PromptLength {
    PromptLength::new(tokens).expect("a valid length")
}

/// 2¹⁴ points (w, x_q) at d = 20 and a head without symmetry.
fn setting() -> (RiskAverage, RegressionHead) {
    let task = LinearRegression::isotropic(20).and_then(|task| task.with_noise(0.1)).expect("a valid task");
    let score = Mat::from_fn(21, 21, |i, j| {
        0.005 * ((3 * i + 5 * j) as f64).sin() + if i == j && i < 20 { 0.3 } else { 0.0 }
    });
    let value: Vec<f64> = (0..21).map(|i| if i == 20 { 2.0 } else { 0.05 }).collect();
    let head = RegressionHead::new(score.as_ref(), &value).expect("a valid head");
    (RiskAverage::new(&task, PointAverage::default()).expect("valid points"), head)
}

fn toeplitz_flow() -> usize {
    let covariance = LinearRegression::toeplitz(5, 0.5).expect("a valid correlation");
    let task = LinearRegression::new(covariance.as_ref())
        .and_then(|task| task.with_noise(0.1))
        .expect("a valid task");
    let (task, _) = SpectralTask::new(&task).expect("one covariance commutes with itself");
    let start = task.initial(0.5).expect("a valid scale");
    let landscape = SpectralLandscape { task, response: Response::softmax(length(1000)) };
    let options = FlowOptions { end_time: 1e9, ..FlowOptions::default() };
    flow(&landscape, &start, &options, &Unwatched).expect("a valid flow").steps
}

fn gradients(criterion: &mut Criterion) {
    let (average, head) = setting();
    for (name, response) in
        [("infinite", Response::infinite()), ("a million tokens", Response::softmax(length(1_000_000)))]
    {
        // The table of the response is made by the first call and kept.
        average.evaluate_by_points(&head, &response).expect("a valid gradient");
        criterion.bench_function(&format!("gradient at d = 20, {name}"), |bencher| {
            bencher.iter(|| black_box(average.evaluate_by_points(&head, &response)));
        });
    }
}

/// The least of several runs: other work can only add.
fn least(runs: usize, mut work: impl FnMut()) -> Duration {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

criterion_group!(benches, gradients);

fn main() {
    benches();
    let (average, head) = setting();
    let time = |response: Response| {
        average.evaluate_by_points(&head, &response).expect("a valid gradient");
        least(20, || {
            black_box(average.evaluate_by_points(&head, &response).expect("a valid gradient"));
        })
        .as_secs_f64()
    };
    let (infinite, finite) = (time(Response::infinite()), time(Response::softmax(length(1_000_000))));
    println!(
        "gradient at d = 20, everything by the same 2^14 points, L = 1e6 over L = infinity: {:.2}",
        finite / infinite
    );
    println!("(`evaluate` has the infinite prompt in closed form and pays for points only at finite length)");
    let start = Instant::now();
    let steps = toeplitz_flow();
    println!(
        "flow to stationarity, d = 5 Toeplitz, L = 1000: {:.1} s, {steps} steps",
        start.elapsed().as_secs_f64()
    );
}
