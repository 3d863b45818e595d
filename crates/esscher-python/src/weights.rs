//! Moments of softmax weights: the scalars of the exact engine, by name.

use crate::arrays;
use crate::failure::{OrRaise, room_for};
use crate::numbers::real;
use crate::threads;
use esscher_core::prompt::PromptLength;
use esscher_core::softmax_weights::{OppositePair, Shrinkage, WeightMoments};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A number of an item and its name.
type Named<'a, T> = (&'a str, fn(&T) -> f64);

/// One column per number of the items.
fn columns<'py, T>(py: Python<'py>, items: &[T], numbers: &[Named<'_, T>]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, number) in numbers {
        columns.set_item(*name, arrays::vector(py, items.iter().map(number).collect()))?;
    }
    Ok(columns)
}

/// The names of fields, each with the field.
macro_rules! fields {
    ($type:ty: $($field:ident),+) => {
        [$((stringify!($field), |item: &$type| item.$field)),+]
    };
}

fn moments(
    py: Python<'_>,
    score_deviation: &Bound<'_, PyAny>,
    lengths: &[PromptLength],
) -> PyResult<Vec<WeightMoments>> {
    let tau = real("score_deviation", score_deviation)?;
    drop(room_for("the moments", &[32, lengths.len()])?);
    threads::detached(py, || WeightMoments::at(tau, lengths)).or_raise()
}

/// Lengths as whole numbers.
#[pyfunction]
pub(crate) fn prompt_lengths(lengths: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    Ok(arrays::lengths(lengths)?.iter().map(|length| length.get()).collect())
}

/// Every moment at one score deviation, a column each over the lengths.
#[pyfunction]
pub(crate) fn weight_moments<'py>(
    py: Python<'py>,
    score_deviation: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = moments(py, score_deviation, &arrays::lengths(lengths)?)?;
    columns(
        py,
        &found,
        &fields!(WeightMoments: sum_of_squares, sum_of_cubes, sum_of_fourths, squared_sum_of_squares,
                 squares_times_cubes, cubed_sum_of_squares, mean_bias, mean_squared_error, mean_variance, variance,
                 squared_variance, variance_squared_error, variance_times_squares, cross, frobenius, closure),
    )
}

/// c₁ and c₂ with deficits and slopes at one score deviation, a column each over the lengths.
#[pyfunction]
pub(crate) fn shrinkage<'py>(
    py: Python<'py>,
    score_deviation: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let found: Vec<Shrinkage> = moments(py, score_deviation, &arrays::lengths(lengths)?)?
        .iter()
        .map(WeightMoments::shrinkage)
        .collect();
    let found_columns = columns(py, &found, &[("first", Shrinkage::first), ("second", Shrinkage::second)])?;
    let rest =
        columns(py, &found, &fields!(Shrinkage: first_deficit, second_deficit, first_slope, second_slope))?;
    found_columns.update(rest.as_mapping())?;
    Ok(found_columns)
}

/// C₁, C₂ and D of a pair of opposite heads at one score deviation and length.
#[pyfunction]
pub(crate) fn opposite_pair<'py>(
    py: Python<'py>,
    score_deviation: &Bound<'_, PyAny>,
    length: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let (tau, length) = (real("score_deviation", score_deviation)?, arrays::length(length)?);
    let found = [threads::detached(py, || OppositePair::at(tau, length)).or_raise()?];
    let found_columns =
        columns(py, &found, &[("first", OppositePair::first), ("second", OppositePair::second)])?;
    let rest = columns(
        py,
        &found,
        &fields!(OppositePair: spread, first_deficit, second_deficit, first_slope, second_slope, spread_slope,
                 closure),
    )?;
    found_columns.update(rest.as_mapping())?;
    Ok(found_columns)
}
