//! How a labelled number stands in a table: its value, its absolute error and its class.

use esscher_core::{Accuracy, Estimate};
use esscher_lab::Value;

/// Computed by quadrature or closed form.
pub(crate) const EXACT: &str = "exact";
/// Exact in the tokens, averaged over queries by randomised quasi-Monte-Carlo points.
pub(crate) const QUASI_MONTE_CARLO: &str = "quasi-monte-carlo";
/// Averaged over draws, or itself a draw.
pub(crate) const SAMPLED: &str = "sampled";

/// The class of a number as tables name it.
pub(crate) fn class(accuracy: Accuracy) -> &'static str {
    match accuracy {
        Accuracy::Exact { .. } => EXACT,
        Accuracy::QuasiMonteCarlo { .. } => QUASI_MONTE_CARLO,
        Accuracy::Sampled { .. } => SAMPLED,
    }
}

/// The cells of the columns `value`, `error`, `accuracy`.
pub(crate) fn cells(estimate: &Estimate) -> [Value; 3] {
    [estimate.value.into(), estimate.absolute_error().into(), class(estimate.accuracy).into()]
}
