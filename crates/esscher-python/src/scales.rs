//! Numbers that say what to expect of a length: regimes, exponents, and the paper's bounds.

use crate::arrays;
use crate::failure::OrRaise;
use crate::numbers::real;
use esscher_core::concentration::{self, Regime};
use esscher_core::prompt::{self, BoundConstants, PromptLength};
use pyo3::prelude::*;

/// "diluted", "intermediate" or "frozen".
#[pyfunction]
pub(crate) fn regime(
    score_deviation: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
) -> PyResult<&'static str> {
    let (tau, length) = (real("score_deviation", score_deviation)?, arrays::length(length)?);
    Ok(match concentration::regime(tau, length).or_raise()? {
        Regime::Diluted => "diluted",
        Regime::Intermediate => "intermediate",
        Regime::Frozen => "frozen",
    })
}

/// The k of a typical query's error L^{−k}.
#[pyfunction]
pub(crate) fn typical_error_exponent(
    score_deviation: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let (tau, length) = (real("score_deviation", score_deviation)?, arrays::length(length)?);
    concentration::typical_error_exponent(tau, length).or_raise()
}

/// √(2 ln L).
#[pyfunction]
pub(crate) fn critical_score_deviation(length: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(prompt::critical_score_deviation(arrays::length(length)?))
}

/// κ as a function of H.
#[pyfunction]
pub(crate) fn rate_exponent(operator_norm: &Bound<'_, PyAny>) -> PyResult<f64> {
    prompt::rate_exponent(real("operator_norm", operator_norm)?).or_raise()
}

/// The bound on outputs.
#[pyfunction]
pub(crate) fn output_bound(
    length: &Bound<'_, PyAny>,
    sub_gaussian: &Bound<'_, PyAny>,
    factor: &Bound<'_, PyAny>,
    exponent: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    bound(prompt::output_bound, length, sub_gaussian, factor, exponent)
}

/// The bound on gradients in U.
#[pyfunction]
pub(crate) fn score_gradient_bound(
    length: &Bound<'_, PyAny>,
    sub_gaussian: &Bound<'_, PyAny>,
    factor: &Bound<'_, PyAny>,
    exponent: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    bound(prompt::score_gradient_bound, length, sub_gaussian, factor, exponent)
}

/// The bound on gradients in V.
#[pyfunction]
pub(crate) fn value_gradient_bound(
    length: &Bound<'_, PyAny>,
    sub_gaussian: &Bound<'_, PyAny>,
    factor: &Bound<'_, PyAny>,
    exponent: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    bound(prompt::value_gradient_bound, length, sub_gaussian, factor, exponent)
}

fn bound(
    bound: fn(PromptLength, f64, BoundConstants) -> esscher_core::Result<f64>,
    length: &Bound<'_, PyAny>,
    sub_gaussian: &Bound<'_, PyAny>,
    factor: &Bound<'_, PyAny>,
    exponent: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let constants = BoundConstants { factor: real("factor", factor)?, exponent: real("exponent", exponent)? };
    bound(arrays::length(length)?, real("sub_gaussian", sub_gaussian)?, constants).or_raise()
}

/// g t e^{βt}.
#[pyfunction]
pub(crate) fn trajectory_bound(
    gradient_gap: &Bound<'_, PyAny>,
    growth: &Bound<'_, PyAny>,
    time: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    prompt::trajectory_bound(
        real("gradient_gap", gradient_gap)?,
        real("growth", growth)?,
        real("time", time)?,
    )
    .or_raise()
}
