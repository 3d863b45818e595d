//! The bounds that the paper proves, as functions; their constants are unknown and the caller's.
//!
//! Boursier and Boyer 2025 (key `boursier2025`), for σ-sub-Gaussian tokens with σ ≥ 1 and centred
//! 1-sub-Gaussian queries. The bounds vanish at L = 1, where they do not hold: a length of at least 2 is
//! required.

use super::PromptLength;
use crate::error::{Error, Result};
use crate::numerics::check;

/// The universal constants c₁ and c₂ of a bound c₁ … / L^{c₂/σ²}.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundConstants {
    /// c₁ > 0, the factor in front.
    pub factor: f64,
    /// c₂ > 0, in the exponent of L.
    pub exponent: f64,
}

/// `E ‖T[μ_L] − T[μ]‖²_{L²(ν)} ≤ c₁ σ⁶ ln L / L^{c₂/σ²}`.
///
/// ```
/// use esscher_core::prompt::{BoundConstants, PromptLength, output_bound};
/// let constants = BoundConstants { factor: 1.0, exponent: 1.0 };
/// assert!(output_bound(PromptLength::new(100)?, 1.0, constants)? < 0.05);
/// assert!(output_bound(PromptLength::new(1)?, 1.0, constants).is_err());
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn output_bound(length: PromptLength, sub_gaussian: f64, constants: BoundConstants) -> Result<f64> {
    bound(length, sub_gaussian, constants, 6, 1)
}

/// The bound on the gradient in V, the same as on the output.
pub fn value_gradient_bound(
    length: PromptLength,
    sub_gaussian: f64,
    constants: BoundConstants,
) -> Result<f64> {
    output_bound(length, sub_gaussian, constants)
}

/// `E ‖∂T[μ_L]/∂U − ∂T[μ]/∂U‖²_{L²(ν)} ≤ c₁ σ¹² (ln L)² / L^{c₂/σ²}`.
pub fn score_gradient_bound(
    length: PromptLength,
    sub_gaussian: f64,
    constants: BoundConstants,
) -> Result<f64> {
    bound(length, sub_gaussian, constants, 12, 2)
}

/// |θ_L(t) − θ_∞(t)| ≤ g(L) t e^{βt}: training on finite prompts stays near training on infinite ones.
///
/// `gradient_gap` is g(L), the distance of the gradient fields, and `growth` is β, the rate at which the
/// infinite-prompt flow spreads perturbations.
pub fn trajectory_bound(gradient_gap: f64, growth: f64, time: f64) -> Result<f64> {
    for (what, value) in
        [("the gradient gap g(L)", gradient_gap), ("the growth rate β", growth), ("the time", time)]
    {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(Error::OutOfRange { what, value, expected: "a finite number from 0 up" });
        }
    }
    if gradient_gap == 0.0 || time == 0.0 {
        return Ok(0.0);
    }
    check::finite_number("the trajectory bound", gradient_gap * time * (growth * time).exp())
}

fn bound(
    length: PromptLength,
    sub_gaussian: f64,
    constants: BoundConstants,
    power_of_sigma: i32,
    power_of_log: i32,
) -> Result<f64> {
    if length < PromptLength::new(2)? {
        return Err(Error::PromptLength { minimum: 2, found: length.as_f64() });
    }
    if !(sub_gaussian >= 1.0 && sub_gaussian.is_finite()) {
        return Err(Error::OutOfRange {
            what: "the sub-Gaussian parameter σ",
            value: sub_gaussian,
            expected: "a finite number from 1 up, as the propositions assume",
        });
    }
    check::positive("the constant c₁ of the bound", constants.factor)?;
    check::positive("the constant c₂ of the bound", constants.exponent)?;
    let log_length = length.as_f64().ln();
    let decay = (-constants.exponent / (sub_gaussian * sub_gaussian) * log_length).exp();
    let value = constants.factor * sub_gaussian.powi(power_of_sigma) * log_length.powi(power_of_log) * decay;
    check::finite_number("the bound", value)
}
