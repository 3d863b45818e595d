//! How a reported number was obtained, and how far it may be from the truth.

/// The class of a number: no number is reported without one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accuracy {
    /// Computed by quadrature or closed form; the relative error is at most `tolerance`.
    Exact {
        /// Bound on the relative error.
        tolerance: f64,
    },
    /// Exact in the tokens, averaged over queries by randomised quasi-Monte-Carlo points.
    QuasiMonteCarlo {
        /// Standard error over independent randomisations of the point set, in the unit of the value.
        randomisation_error: f64,
    },
    /// Averaged over independent draws.
    Sampled {
        /// Standard error of the mean, in the unit of the value.
        standard_error: f64,
    },
}

/// A number together with its class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// How it was obtained.
    pub accuracy: Accuracy,
}

impl Estimate {
    /// The absolute error to plan with: one standard error where the value is random, the tolerance
    /// times the value where it is exact.
    ///
    /// ```
    /// use esscher_core::{Accuracy, Estimate};
    /// let exact = Estimate { value: 2.0, accuracy: Accuracy::Exact { tolerance: 1e-9 } };
    /// assert_eq!(exact.absolute_error(), 2e-9);
    /// ```
    pub fn absolute_error(&self) -> f64 {
        match self.accuracy {
            Accuracy::Exact { tolerance } => tolerance * self.value.abs(),
            Accuracy::QuasiMonteCarlo { randomisation_error } => randomisation_error,
            Accuracy::Sampled { standard_error } => standard_error,
        }
    }
}
