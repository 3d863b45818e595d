//! Nanoseconds of one call of a head at one query, for `bench/calling_overhead`, which makes the same calls from Python.

use esscher_core::Mat;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Gaussian, Measure, Prompt};
use esscher_core::numerics::Stream;
use std::hint::black_box;
use std::time::Instant;

const DIMENSION: usize = 16;
const CALLS: u32 = 2000;

fn main() -> esscher_core::Result<()> {
    let identity = Mat::from_fn(DIMENSION, DIMENSION, |i, j| if i == j { 1.0 } else { 0.0 });
    let head = Softmax::new(identity.as_ref(), identity.as_ref())?;
    let query = [0.1; DIMENSION];
    let gaussian = Gaussian::standard(DIMENSION)?;
    print("gaussian", || head.attend(&gaussian, black_box(&query)))?;
    for length in [1, 100, 1000] {
        let mut tokens = vec![0.0; length * DIMENSION];
        gaussian.sample(&mut Stream::new(0, 0, 0), &mut tokens)?;
        print(&format!("prompt-{length}"), || {
            head.attend(&Prompt::new(DIMENSION, black_box(&tokens))?, black_box(&query))
        })?;
    }
    Ok(())
}

/// The least time of many rounds: other work on the machine can only add.
fn print(name: &str, call: impl Fn() -> esscher_core::Result<Vec<f64>>) -> esscher_core::Result<()> {
    let mut least = f64::INFINITY;
    for _ in 0..50 {
        let began = Instant::now();
        for _ in 0..CALLS {
            black_box(call()?);
        }
        least = least.min(began.elapsed().as_secs_f64() / f64::from(CALLS));
    }
    println!("{name} {:.0}", 1e9 * least);
    Ok(())
}
