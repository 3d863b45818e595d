//! Cost and error of one exact gradient at d = 20, L = 1000, for `bench/training_against_pytorch`: one thread, CPU time.
//!
//! Prints `risk`, `gradient_error` (root of the summed squares over all entries) and `seconds`.

use esscher_core::prompt::PromptLength;
use esscher_core::regression::{LinearRegression, PointAverage, RegressionHead, Response, RiskAverage};
use esscher_core::{Mat, Result};
use std::time::Instant;

/// The head of the comparison, the same formula as in the script.
fn head(dimension: usize) -> Result<RegressionHead> {
    let size = dimension + 1;
    let score = Mat::from_fn(size, size, |i, j| {
        let wave = 0.005 * ((3 * i + 5 * j) as f64).sin();
        wave + if i == j && i < dimension { 0.3 } else { 0.0 }
    });
    let value: Vec<f64> =
        (0..size).map(|i| if i == dimension { 2.0 } else { 0.05 * (i as f64).cos() }).collect();
    RegressionHead::new(score.as_ref(), &value)
}

fn main() -> Result<()> {
    let task = LinearRegression::isotropic(20)?.with_noise(0.1)?;
    let head = head(20)?;
    let start = Instant::now();
    // Everything a user pays for: the table of the response, the points, the gradient.
    let average = RiskAverage::new(&task, PointAverage::default())?;
    let found = average.evaluate(&head, &Response::softmax(PromptLength::new(1000)?))?;
    let seconds = start.elapsed().as_secs_f64();
    println!("risk {:.6}", found.risk.value);
    println!("gradient_error {:e}", found.gradient_error);
    println!("seconds {seconds:e}");
    Ok(())
}
