//! Single or double precision: what is held in either, and states on their way in and out.

use crate::arrays::{Numbers, Precision};
use crate::prelude::*;
use esscher_zoo::Real;
use esscher_zoo::mechanism::State;

/// f32 or f64, in Rust and in NumPy.
pub(super) trait Precise: Real + Precision {}

impl<T: Real + Precision> Precise for T {}

/// Something of single or of double precision.
#[derive(Clone)]
pub(super) enum Either<S, D> {
    Single(S),
    Double(D),
}

/// Makes something in single or in double precision, which the expression knows as `$number`.
macro_rules! in_precision {
    ($is_single:expr, $number:ident => $value:expr) => {
        if $is_single {
            type $number = f32;
            Either::Single($value)
        } else {
            type $number = f64;
            Either::Double($value)
        }
    };
}

/// The same expression for either precision.
macro_rules! either {
    ($either:expr, $inner:pat => $value:expr) => {
        match $either {
            Either::Single($inner) => $value,
            Either::Double($inner) => $value,
        }
    };
}

/// A state as Python has it: the tokens seen, and the numbers of every head.
pub(super) type PyState<'py> = (usize, Any<'py>);

/// The states of one sequence, one per head, of so many numbers each.
pub(super) fn states_from<T: Precise>(
    what: &'static str,
    heads: usize,
    width: usize,
    seen: usize,
    numbers: &Any<'_>,
) -> PyResult<Vec<State<T>>> {
    let numbers = Numbers::<T>::read(what, numbers)?;
    if numbers.shape() != [heads, width] {
        return Err(numbers.shape_error(&format!("shape ({heads}, {width}) after {seen} tokens")));
    }
    let numbers = numbers.entries();
    if let Some(index) = numbers.iter().position(|number| number.value().is_nan()) {
        return Err(PyValueError::new_err(format!("{what}: entry {index} is NaN")));
    }
    let of_head = |head| State { seen, numbers: numbers[head * width..(head + 1) * width].to_vec() };
    Ok((0..heads).map(of_head).collect())
}

/// The states of all sequences as Python has them.
pub(super) fn python_states<'py, T: Precise>(
    py: Python<'py>,
    states: &[State<T>],
    heads: usize,
) -> PyResult<Vec<PyState<'py>>> {
    let of_sequence = |states: &[State<T>]| {
        let numbers: Vec<T> = states.iter().flat_map(|state| state.numbers.iter().copied()).collect();
        let shape = [heads, numbers.len() / heads];
        Ok((states[0].seen, Array::new(numbers, shape).into_pyobject(py)?.into_any()))
    };
    states.chunks(heads).map(of_sequence).collect()
}

/// Numbers in a row as Python has them.
pub(super) fn python_array<T: Precise>(py: Python<'_>, numbers: Vec<T>) -> PyResult<Any<'_>> {
    Ok(Array::from(numbers).into_pyobject(py)?.into_any())
}
