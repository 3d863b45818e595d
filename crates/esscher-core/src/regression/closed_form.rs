//! Full matrices where everything is a polynomial: infinite prompts and linear attention, risk and gradient in closed form.
//!
//! With U = [P ·; rᵀ ·] (the last column meets the query's zero) and v = (u, b), the prediction minus the target
//! is ⟨g(w), x_q⟩ for g(w) = c + Mw + b⟨w, Σw⟩r, c = PᵀΣu + bs²r, M = r(Σu)ᵀ + bPᵀΣ − I: a polynomial in w of
//! degree two, whose second moments are known.

use super::{HeadGradient, LinearRegression, RegressionHead};
use crate::accuracy::Estimate;
use crate::error::Result;
use crate::numerics::{check, linalg};
use crate::prompt::PromptLength;
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
        risk: Estimate::exact_to(risk, 1e-12),
        score: check::finite_matrix_result("the gradient in U", score)?,
        value: check::finite_result("the gradient in v", by_value)?,
        gradient_error: 0.0,
    })
}

/// Risk and gradient of a head with linear attention over L tokens; the class is exact.
///
/// R = R_∞ + (E a² + E σq)/(2L), with a, σ and q as in [`Response`](super::Response): both are polynomials in (w, x_q).
pub fn linear_risk(
    head: &RegressionHead,
    task: &LinearRegression,
    length: PromptLength,
) -> Result<HeadGradient> {
    let mut total = infinite_risk(head, task)?;
    let d = head.dimension();
    let (covariance, query, prior, noise) =
        (task.covariance(), task.query_covariance(), task.prior_scale(), task.noise());
    let block = head.score().submatrix(0, 0, d, d).to_owned();
    let row: Vec<f64> = (0..d).map(|j| head.score()[(d, j)]).collect();
    let (value, gain) = (&head.value()[..d], head.value()[d]);
    let trace = linalg::trace(covariance);
    let fourth = prior * prior * (trace * trace + 2.0 * linalg::squared_frobenius(covariance));

    // E a²: the infinite risk without the target, M + I in place of M.
    let turned = linalg::apply(covariance, value);
    let scored = block.transpose() * covariance;
    let mut constant = linalg::apply_transpose(block.as_ref(), &turned);
    linalg::add_scaled(&mut constant, gain * noise, &row);
    let linear = Mat::from_fn(d, d, |i, j| row[i] * turned[j] + gain * scored[(i, j)]);
    let query_constant = linalg::apply(query, &constant);
    let query_row = linalg::apply(query, &row);
    let query_linear = query * &linear;
    let row_square = linalg::dot(&row, &query_row);
    let squared = linalg::dot(&constant, &query_constant)
        + prior * linalg::trace_of_product(linear.transpose(), query_linear.as_ref())
        + 2.0 * gain * prior * trace * linalg::dot(&row, &query_constant)
        + gain * gain * fourth * row_square;
    // E σq for σ = c + 2⟨α, w⟩ + ρ⟨w, Σw⟩ and q = q₀ + 2⟨β, w⟩ + b²⟨w, Σw⟩, averaged over x_q first.
    let tilted = covariance * &block;
    let free = linalg::trace_of_product((block.transpose() * &tilted).as_ref(), query) + noise * row_square;
    let alpha = linalg::apply(tilted.as_ref(), &query_row);
    let beta: Vec<f64> = turned.iter().map(|entry| gain * entry).collect();
    let fixed = linalg::dot(value, &turned) + gain * gain * noise;
    let spread = free * (fixed + gain * gain * prior * trace)
        + 4.0 * prior * linalg::dot(&alpha, &beta)
        + row_square * (fixed * prior * trace + gain * gain * fourth);

    // Backwards, half of each over L.
    let scale = 0.5 / length.as_f64();
    let mut by_constant: Vec<f64> = query_constant.iter().map(|entry| 2.0 * entry).collect();
    linalg::add_scaled(&mut by_constant, 2.0 * gain * prior * trace, &query_row);
    let by_linear = &query_linear * faer::Scale(2.0 * prior);
    let by_free = fixed + gain * gain * prior * trace;
    let by_fixed = free + row_square * prior * trace;
    // ρ = ⟨r, Σ_q r⟩ stands in E a², in E σq and in c.
    let by_square = gain * gain * fourth + noise * by_free + fixed * prior * trace + gain * gain * fourth;
    let mut by_row = linalg::apply(by_linear.as_ref(), &turned);
    linalg::add_scaled(&mut by_row, 2.0 * gain * prior * trace, &query_constant);
    linalg::add_scaled(&mut by_row, 2.0 * by_square, &query_row);
    linalg::add_scaled(&mut by_row, gain * noise, &by_constant);
    // α = ΣPΣ_q r.
    let by_alpha: Vec<f64> = beta.iter().map(|entry| 4.0 * prior * entry).collect();
    linalg::add_scaled(
        &mut by_row,
        1.0,
        &linalg::apply(query, &linalg::apply_transpose(tilted.as_ref(), &by_alpha)),
    );
    let by_gain = 2.0 * prior * trace * linalg::dot(&row, &query_constant)
        + 2.0 * gain * fourth * row_square
        + noise * linalg::dot(&row, &by_constant)
        + linalg::trace_of_product(by_linear.transpose(), scored.as_ref())
        + 2.0 * gain * (free * prior * trace + row_square * fourth)
        + 2.0 * gain * noise * by_fixed
        + 4.0 * prior * linalg::dot(&alpha, &turned);
    let mut by_turned = linalg::apply(block.as_ref(), &by_constant);
    linalg::add_scaled(&mut by_turned, 1.0, &linalg::apply_transpose(by_linear.as_ref(), &row));
    linalg::add_scaled(&mut by_turned, 4.0 * prior * gain, &alpha);
    linalg::add_scaled(&mut by_turned, 2.0 * by_fixed, value);
    let mut by_value = linalg::apply(covariance, &by_turned);
    by_value.push(by_gain);
    let mut by_block = covariance * by_linear.transpose() * faer::Scale(gain);
    linalg::add_outer(&mut by_block, 1.0, &turned, &by_constant);
    by_block += &tilted * query * faer::Scale(2.0 * by_free);
    linalg::add_outer(&mut by_block, 1.0, &linalg::apply(covariance, &by_alpha), &query_row);

    for j in 0..d {
        for i in 0..d {
            total.score[(i, j)] += scale * by_block[(i, j)];
        }
        total.score[(d, j)] += scale * by_row[j];
    }
    linalg::add_scaled(&mut total.value, scale, &by_value);
    total.risk.value = check::finite_number("the risk", total.risk.value + scale * (squared + spread))?;
    check::finite_matrix("the gradient in U", total.score.as_ref())?;
    check::finite_vector("the gradient in v", &total.value)?;
    Ok(total)
}
