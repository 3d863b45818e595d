//! Moments of softmax weights: the scalars of the exact engine, by name.

use crate::numbers::real;
use crate::prelude::*;
use crate::watch::by_size;
use esscher_core::prompt::PromptLength;
use esscher_core::softmax_weights::{OppositePair, Shrinkage, WeightMoments};

export!(fn prompt_lengths, weight_moments, shrinkage, opposite_pair);

/// A dictionary with a column per number of the items: methods first, then fields.
macro_rules! columns {
    ($py:expr, $items:expr, $type:ty: $($method:ident()),*; $($field:ident),+) => {{
        let items: Vec<$type> = $items;
        dictionary!($py $(, $method: items.iter().map(<$type>::$method).collect::<Array>())*
                    $(, $field: items.iter().map(|item| item.$field).collect::<Array>())+)
    }};
}

fn moments(
    py: Python<'_>,
    score_deviation: &Any<'_>,
    lengths: Vec<PromptLength>,
) -> PyResult<Vec<WeightMoments>> {
    let tau = real("score_deviation", score_deviation)?;
    drop(room_for("the moments", &[32, lengths.len()])?);
    let numbers = lengths.len().saturating_mul(32);
    by_size(py, numbers, move || WeightMoments::at(tau, &lengths))?.or_raise()
}

/// Lengths as whole numbers.
#[pyfunction]
fn prompt_lengths(lengths: &Any<'_>) -> PyResult<Vec<u64>> {
    Ok(arrays::lengths(lengths)?.iter().map(|length| length.get()).collect())
}

/// Every moment at one score deviation, a column each over the lengths.
#[pyfunction]
fn weight_moments<'py>(
    py: Python<'py>,
    score_deviation: &Any<'_>,
    lengths: &Any<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = moments(py, score_deviation, arrays::lengths(lengths)?)?;
    Ok(
        columns!(py, found, WeightMoments: ; sum_of_squares, sum_of_cubes, sum_of_fourths, squared_sum_of_squares,
        squares_times_cubes, cubed_sum_of_squares, mean_bias, mean_squared_error, mean_variance, variance,
        squared_variance, variance_squared_error, variance_times_squares, cross, frobenius, closure),
    )
}

/// c₁ and c₂ with deficits and slopes at one score deviation, a column each over the lengths.
#[pyfunction]
fn shrinkage<'py>(
    py: Python<'py>,
    score_deviation: &Any<'_>,
    lengths: &Any<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = moments(py, score_deviation, arrays::lengths(lengths)?)?;
    Ok(columns!(py, found.iter().map(WeightMoments::shrinkage).collect(), Shrinkage: first(), second();
        first_deficit, second_deficit, first_slope, second_slope))
}

/// C₁, C₂ and D of a pair of opposite heads at one score deviation and length.
#[pyfunction]
fn opposite_pair<'py>(
    py: Python<'py>,
    score_deviation: &Any<'_>,
    length: &Any<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let (tau, length) = (real("score_deviation", score_deviation)?, arrays::length(length)?);
    let found = threads::detached(py, || OppositePair::at(tau, length)).or_raise()?;
    Ok(columns!(py, vec![found], OppositePair: first(), second();
        spread, first_deficit, second_deficit, first_slope, second_slope, spread_slope, closure))
}
