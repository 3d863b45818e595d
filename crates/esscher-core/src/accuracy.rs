//! A reported number: its value, how far it may be from the truth, and how it was obtained.

/// How a number was obtained: no number is reported without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accuracy {
    /// By quadrature, closed form or integration: the error is a bound.
    Exact,
    /// Exact in the tokens, averaged over the rest by randomised quasi-Monte-Carlo points: the error is the standard
    /// error over independent randomisations of the points.
    QuasiMonteCarlo,
    /// Averaged over independent draws: the error is the standard error of the mean.
    Sampled,
}

impl Accuracy {
    /// All classes, from the best to the weakest.
    pub const ALL: [Accuracy; 3] = [Accuracy::Exact, Accuracy::QuasiMonteCarlo, Accuracy::Sampled];

    /// The word under which tables, documents and every door know the class.
    pub fn name(self) -> &'static str {
        match self {
            Accuracy::Exact => "exact",
            Accuracy::QuasiMonteCarlo => "quasi-monte-carlo",
            Accuracy::Sampled => "sampled",
        }
    }

    /// The class of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Accuracy::ALL.into_iter().find(|accuracy| accuracy.name() == name)
    }
}

/// A number with its error and its class.
///
/// ```
/// use esscher_core::{Accuracy, Estimate};
/// let exact = Estimate::exact_to(2.0, 1e-9);
/// assert_eq!(exact, Estimate { value: 2.0, error: 2e-9, accuracy: Accuracy::Exact });
/// assert_eq!(exact.accuracy.name(), "exact");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// How far it may be off, in the unit of the value: a bound, or one standard error, as the class says.
    pub error: f64,
    /// How it was obtained.
    pub accuracy: Accuracy,
}

impl Estimate {
    /// A computed number with a bound on its absolute error.
    pub fn exact(value: f64, error: f64) -> Self {
        Estimate { value, error, accuracy: Accuracy::Exact }
    }

    /// A computed number with a bound on its relative error.
    pub fn exact_to(value: f64, tolerance: f64) -> Self {
        Estimate::exact(value, tolerance * value.abs())
    }

    /// A mean over independent draws with its standard error.
    pub fn sampled(value: f64, error: f64) -> Self {
        Estimate { value, error, accuracy: Accuracy::Sampled }
    }
}
