//! The scale of a request: errors are computed on tokens, values and queries of about size one and put back at the end.
//!
//! Squares of tokens, and their squares again in the gradient's error, leave the doubles long before the tokens
//! do. Powers of two in front cost no digit: numbers that neither overflow nor underflow keep every bit.

use crate::accuracy::Estimate;
use crate::error::{Error, Result};
use crate::numerics::{check, linalg};
use crate::quantity::Quantity;

/// The binary exponents by which tokens, values and queries were divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Scale {
    pub(super) token: i32,
    pub(super) value: i32,
    pub(super) query: i32,
}

impl Scale {
    /// The exponent of an output.
    pub(super) fn output(self) -> i32 {
        self.token + self.value
    }

    /// The exponent of the root of an error.
    fn root(self, quantity: Quantity) -> i32 {
        match quantity {
            Quantity::Output => self.output(),
            Quantity::ScoreGradient => self.query + 2 * self.token + self.value,
            Quantity::ValueGradient => self.token,
        }
    }

    /// A mean squared error, put back.
    ///
    /// # Errors
    /// [`Error::Overflow`], and [`Error::Underflow`] where an error that is not zero would lose its digits.
    pub(super) fn restored(self, quantity: Quantity, error: f64) -> Result<f64> {
        let what = match quantity {
            Quantity::Output => "the mean squared error of the output",
            Quantity::ScoreGradient => "the mean squared error of the gradient in U",
            Quantity::ValueGradient => "the mean squared error of the gradient in V",
        };
        let restored = check::finite_number(what, libm::ldexp(error, 2 * self.root(quantity)))?;
        if error != 0.0 && restored.abs() < f64::MIN_POSITIVE {
            return Err(Error::Underflow { what });
        }
        Ok(restored)
    }

    /// The same of an estimate.
    pub(super) fn restored_estimate(self, quantity: Quantity, found: Estimate) -> Result<Estimate> {
        let value = self.restored(quantity, found.value)?;
        let error = libm::ldexp(found.error, 2 * self.root(quantity));
        check::finite_number("the uncertainty of a mean squared error", error)?;
        Ok(Estimate { value, error, ..found })
    }
}

/// |z|² in units of 4ᵉ.
pub(super) fn squared_norm(query: &[f64], exponent: i32) -> f64 {
    linalg::squared_norm(&linalg::times_power_of_two(query, -exponent))
}
