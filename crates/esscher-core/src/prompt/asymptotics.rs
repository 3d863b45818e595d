//! What finite prompts approach as L grows: the constants of the 1/L law and the exponents beyond it.

use super::PromptLength;
use super::scale::Scale;
use crate::attention::{Attention, Softmax};
use crate::error::{Error, Result};
use crate::measure::{Gaussian, Measure};
use crate::numerics::{check, linalg};
use crate::quantity::Quantity;
use faer::Mat;

/// First-order constants of a finite prompt at a fixed query.
#[derive(Debug, Clone)]
pub struct DeltaMethod {
    /// lim L · (E T_L − T) = −e^{D₂} V d.
    pub bias: Vec<f64>,
    /// lim L · Cov T_L = e^{D₂} V [∇²Λ(2θ) + ddᵀ] Vᵀ.
    pub covariance: Mat<f64>,
    /// lim L · E |T_L − T|², the trace of the covariance.
    pub output_error: f64,
}

/// The delta method at one query, for any measure: d = ∇Λ(2θ) − ∇Λ(θ), D₂ = Λ(2θ) − 2Λ(θ).
///
/// # Errors
/// Where the log-partition is infinite at 2θ: there the error does not fall like 1/L.
///
/// ```
/// use esscher_core::attention::Softmax;
/// use esscher_core::measure::Rademacher;
/// use esscher_core::{mat, prompt::delta_method};
/// let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref())?;
/// let constants = delta_method(&head, &Rademacher::new(1)?, &[0.0])?;
/// assert_eq!(constants.output_error, 1.0); // the variance of a sign
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn delta_method(head: &Softmax, tokens: &dyn Measure, query: &[f64]) -> Result<DeltaMethod> {
    check::size("tokens (dimension)", head.token_dimension(), tokens.dimension())?;
    let tilt = head.tilt(query)?;
    let twice: Vec<f64> = tilt.iter().map(|entry| 2.0 * entry).collect();
    let growth = tokens.renyi_divergence(&tilt)?.exp();
    let shift = linalg::difference(&tokens.tilted_mean(&twice)?, &tokens.tilted_mean(&tilt)?);
    let mut moment = tokens.tilted_covariance(&twice)?;
    linalg::add_outer(&mut moment, 1.0, &shift, &shift);
    // On the scale of the values, so that their squares are doubles as long as the constants are.
    let exponent = linalg::matrix_exponent(head.value());
    let value = linalg::matrix_times_power_of_two(head.value(), -exponent);
    let covariance = faer::Scale(growth) * (&value * moment * value.transpose());
    let scale = Scale { value: exponent, ..Scale::default() };
    let output_error = scale.restored(Quantity::Output, linalg::trace(covariance.as_ref()))?;
    let covariance = linalg::matrix_times_power_of_two(covariance.as_ref(), 2 * exponent);
    let covariance = check::finite_matrix_result("the constant of the delta method", covariance)?;
    let bias = linalg::apply(head.value(), &shift).iter().map(|entry| -growth * entry).collect();
    Ok(DeltaMethod {
        bias: check::finite_result("the constant of the bias", bias)?,
        output_error,
        covariance,
    })
}

/// lim L · E ‖∂T_L/∂U − ∂T/∂U‖²_F for Gaussian tokens.
///
/// |z|² e^{τ²} [ (|Vb|² + tr VGVᵀ)(|b|² + tr G) + tr VG²Vᵀ + 2 bᵀVᵀVGb ] with b = Gθ.
pub fn gaussian_gradient_constant(head: &Softmax, tokens: &Gaussian, query: &[f64]) -> Result<f64> {
    check::size("tokens (dimension)", head.token_dimension(), tokens.dimension())?;
    let tilt = head.tilt(query)?;
    let covariance = tokens.covariance_matrix();
    let shift = linalg::apply(covariance, &tilt);
    let square = linalg::dot(&tilt, &shift);
    let value_shift = linalg::apply(head.value(), &shift);
    let value_covariance = head.value() * covariance;
    let output_variance = linalg::trace((&value_covariance * head.value().transpose()).as_ref());
    let bracket = (linalg::squared_norm(&value_shift) + output_variance)
        * (linalg::squared_norm(&shift) + linalg::trace(covariance))
        + linalg::squared_frobenius(value_covariance.as_ref())
        + 2.0 * linalg::dot(&value_shift, &linalg::apply(value_covariance.as_ref(), &shift));
    let constant = linalg::squared_norm(query) * square.exp() * bracket;
    let is_zero = linalg::largest(query) == 0.0 || check::largest_entry(value_covariance.as_ref()) == 0.0;
    if constant < f64::MIN_POSITIVE && !is_zero {
        return Err(Error::Underflow { what: "the constant of the gradient" });
    }
    check::finite_number("the constant of the gradient", constant)
}

/// √(2 ln L): above this score deviation the softmax freezes on its largest score.
///
/// ```
/// use esscher_core::prompt::{PromptLength, critical_score_deviation};
/// assert!((critical_score_deviation(PromptLength::MAX) - 7.434).abs() < 1e-3);
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn critical_score_deviation(length: PromptLength) -> f64 {
    (2.0 * length.as_f64().ln()).sqrt()
}

/// The exponent κ of the rate L^{−κ} for Gaussian tokens N(0, G) and queries N(0, S), H = ‖G^{1/2}US^{1/2}‖.
///
/// κ = 1 for H² ≤ 1/2, else √(1/H² + 1/4) − 1/2. Heuristic: it agrees with exact values up to H of
/// about 1.5; beyond, logarithms fade slowly.
///
/// # Errors
/// A negative or non-finite H.
pub fn rate_exponent(operator_norm: f64) -> Result<f64> {
    if !(operator_norm >= 0.0 && operator_norm.is_finite()) {
        return Err(Error::OutOfRange {
            what: "the operator norm H",
            value: operator_norm,
            expected: "a finite number from 0 up",
        });
    }
    let square = operator_norm * operator_norm;
    // √(x + ¼) − ½ without its cancellation at small x = 1/H².
    Ok(if square <= 0.5 { 1.0 } else { 1.0 / (square * ((1.0 / square + 0.25).sqrt() + 0.5)) })
}
