//! The catalogue, and arrays in the precision that they come in.

use crate::prelude::*;
use esscher_zoo::catalogue::{Entry, catalogue};
use esscher_zoo::mechanism::Order;

export!(fn zoo_catalogue, zoo_array);

/// The catalogue, an entry per row.
#[pyfunction]
fn zoo_catalogue(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |entry: &Entry| -> PyResult<_> {
        let claims = &entry.claims;
        Ok(dictionary!(py, causal: claims.order == Order::Causal, state: claims.state.formula,
            cost: claims.cost.name(), fate: claims.fate.name(), normalised: claims.normalised,
            dynamical_system: claims.dynamical_system, recalls: claims.recalls;
            entry => name, summary, year, paper))
    };
    catalogue().iter().map(row).collect()
}

/// Any array of real numbers as a C-contiguous one of float32 or float64: itself where it is one.
#[pyfunction]
fn zoo_array<'py>(what: &str, value: &Any<'py>) -> PyResult<Any<'py>> {
    arrays::in_its_precision(what, value)
}
