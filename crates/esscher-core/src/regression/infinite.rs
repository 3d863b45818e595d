//! The infinite prompt for full matrices: risk and gradient in closed form.
//!
//! With U = [P ·; rᵀ ·] (the last column meets the query's zero) and v = (u, b), the prediction minus the target
//! is ⟨g(w), x_q⟩ for g(w) = c + Mw + b⟨w, Σw⟩r, c = PᵀΣu + bs²r, M = r(Σu)ᵀ + bPᵀΣ − I: a polynomial in w of
//! degree two, whose second moments are known.

use super::{HeadGradient, LinearRegression, RegressionHead};
use crate::accuracy::{Accuracy, Estimate};
use crate::error::Result;
use crate::numerics::{check, linalg};
use faer::Mat;

/// Risk and gradient of a head on infinitely long prompts; the class is exact.
pub fn infinite_risk(head: &RegressionHead, task: &LinearRegression) -> Result<HeadGradient> {
    let d = head.dimension();
    check::size("the head (dimension of the task)", task.dimension(), d)?;
    let (covariance, query, prior, noise) =
        (task.covariance(), task.query_covariance(), task.prior_scale(), task.noise());
    let block = head.score().submatrix(0, 0, d, d);
    let row: Vec<f64> = (0..d).map(|j| head.score()[(d, j)]).collect();
    let (value, gain) = (&head.value()[..d], head.value()[d]);

    let turned = linalg::apply(covariance, value);
    let mut constant = linalg::apply_transpose(block, &turned);
    linalg::add_scaled(&mut constant, gain * noise, &row);
    let scored = block.transpose() * covariance;
    let linear =
        Mat::from_fn(d, d, |i, j| row[i] * turned[j] + gain * scored[(i, j)] - f64::from(u8::from(i == j)));
    let trace = linalg::trace(covariance);
    let fourth = prior * prior * (trace * trace + 2.0 * linalg::squared_frobenius(covariance));

    let query_constant = linalg::apply(query, &constant);
    let query_row = linalg::apply(query, &row);
    let query_linear = query * &linear;
    let row_square = linalg::dot(&row, &query_row);
    let risk = 0.5
        * (linalg::dot(&constant, &query_constant)
            + prior * linalg::trace_of_product(linear.transpose(), query_linear.as_ref())
            + 2.0 * gain * prior * trace * linalg::dot(&row, &query_constant)
            + gain * gain * fourth * row_square);

    // Backwards: by c, by M, then by r and b themselves, then through c and M.
    let mut by_constant = query_constant.clone();
    linalg::add_scaled(&mut by_constant, gain * prior * trace, &query_row);
    let by_linear = &query_linear * faer::Scale(prior);
    let mut by_row = linalg::apply(by_linear.as_ref(), &turned);
    linalg::add_scaled(&mut by_row, gain * prior * trace, &query_constant);
    linalg::add_scaled(&mut by_row, gain * gain * fourth, &query_row);
    linalg::add_scaled(&mut by_row, gain * noise, &by_constant);
    let by_gain = prior * trace * linalg::dot(&row, &query_constant)
        + gain * fourth * row_square
        + noise * linalg::dot(&row, &by_constant)
        + linalg::trace_of_product(by_linear.transpose(), scored.as_ref());
    let mut by_turned = linalg::apply(block, &by_constant);
    linalg::add_scaled(&mut by_turned, 1.0, &linalg::apply_transpose(by_linear.as_ref(), &row));
    let mut by_value = linalg::apply(covariance, &by_turned);
    by_value.push(by_gain);
    let mut by_block = covariance * by_linear.transpose() * faer::Scale(gain);
    linalg::add_outer(&mut by_block, 1.0, &turned, &by_constant);
    let score = Mat::from_fn(d + 1, d + 1, |i, j| match (i < d, j < d) {
        (true, true) => by_block[(i, j)],
        (false, true) => by_row[j],
        _ => 0.0,
    });
    let risk = check::finite_number("the risk", risk + task.noise_floor())?;
    Ok(HeadGradient {
        risk: Estimate { value: risk, accuracy: Accuracy::Exact { tolerance: 1e-12 } },
        score: check::finite_matrix_result("the gradient in U", score)?,
        value: check::finite_result("the gradient in v", by_value)?,
        gradient_error: 0.0,
    })
}
