//! Whole numbers from Python, refused by name: counts, which may be written 1e4, and seeds.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;

/// A whole number of things, from `least` on.
pub(crate) fn count(what: &str, value: &Bound<'_, PyAny>, least: u32) -> PyResult<u32> {
    let number = if value.is_instance_of::<PyBool>() { None } else { real(value)? };
    let Some(number) = number else {
        let found = value.get_type().name()?;
        let message = format!("{what}: expected a whole number, found an object of type {found}");
        return Err(PyTypeError::new_err(message));
    };
    if number.fract() == 0.0 && (f64::from(least)..=f64::from(u32::MAX)).contains(&number) {
        return Ok(number as u32);
    }
    let message = format!("{what} is {number}: expected a whole number from {least} to {}", u32::MAX);
    Err(PyValueError::new_err(message))
}

/// A seed, from 0 to 2⁶⁴ − 1.
pub(crate) fn seed(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = value.py();
    if value.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err("seed: expected a whole number, found a bool"));
    }
    value.extract::<u64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(py) {
            PyValueError::new_err(format!("seed is {value}: expected a whole number from 0 to 2⁶⁴ − 1"))
        } else {
            PyTypeError::new_err(format!("seed: expected a whole number, found {value}"))
        }
    })
}

/// The value as a real number, infinite where it is an integer beyond all of them; none if it is no number.
fn real(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    match value.extract::<f64>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(Some(f64::INFINITY)),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Ok(None),
        Err(error) => Err(error),
    }
}
