//! Single numbers, truths and texts in, refused with a sentence that names the argument.

use crate::arrays::{self, Any};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyFrozenSet, PyInt, PyMapping, PySet, PyString};
use std::ops::RangeInclusive;

export!(fn read_real, read_truth, read_whole, shown);

/// A real number, for arguments that Python computes with.
#[pyfunction]
fn read_real(what: &str, value: &Any<'_>) -> PyResult<f64> {
    real(what, value)
}

/// True or False.
#[pyfunction]
fn read_truth(what: &str, value: &Any<'_>) -> PyResult<bool> {
    truth(what, value)
}

/// A whole number in a range.
#[pyfunction]
fn read_whole(what: &str, value: &Any<'_>, least: u64, most: u64) -> PyResult<u64> {
    whole(what, value, least..=most)
}

/// A text. Python's may hold half a character, a lone surrogate: no file can hold it, nor can a message.
pub(crate) fn text(what: &str, value: &Any<'_>) -> PyResult<String> {
    let text = value.cast::<PyString>().map_err(|_| wrong_type(what, "a text", value))?;
    text.to_str().map(str::to_string).map_err(|_| {
        let shown = value.repr().map_or_else(|_| "a text".to_string(), |shown| shown.to_string());
        PyValueError::new_err(format!(
            "{what} is {shown}: expected whole characters, without lone surrogates"
        ))
    })
}

/// A number as a message shows it: Python refuses to write down very long ones.
#[pyfunction]
pub(crate) fn shown(value: &Any<'_>) -> String {
    const LONGEST: usize = 60;
    match value.str().map(|text| text.to_string()) {
        Ok(text) if text.chars().count() <= LONGEST => text,
        Ok(text) => {
            let digits = text.chars().filter(char::is_ascii_digit).count();
            format!("{}… ({digits} digits)", text.chars().take(12).collect::<String>())
        }
        Err(_) => "a number of thousands of digits".to_string(),
    }
}

/// Whether an exception says that a value is of the wrong kind; another one, such as KeyboardInterrupt, came from its own code.
fn says_wrong_kind(py: Python<'_>, raised: &PyErr) -> bool {
    raised.is_instance_of::<PyTypeError>(py)
        || raised.is_instance_of::<PyValueError>(py)
        || raised.is_instance_of::<PyOverflowError>(py)
}

/// What is raised for a value of the wrong kind; another exception passes.
pub(crate) fn refused(py: Python<'_>, raised: PyErr, refusal: impl FnOnce() -> PyErr) -> PyErr {
    if says_wrong_kind(py, &raised) { refusal() } else { raised }
}

/// A real number; whether it makes sense is for the library to say.
pub(crate) fn real(what: &str, value: &Any<'_>) -> PyResult<f64> {
    if is_complex(value) {
        return Err(wrong_type(what, "a real number", value));
    }
    arrays::check_meant(what, value)?;
    value.extract().map_err(|raised: PyErr| {
        if raised.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!("{what}: the number is too large for double precision"));
        }
        refused(value.py(), raised, || wrong_type(what, "a real number", value))
    })
}

/// True or False, Python's or NumPy's: a word such as "no" would count as true.
pub(crate) fn truth(what: &str, value: &Any<'_>) -> PyResult<bool> {
    value.extract().map_err(|raised| refused(value.py(), raised, || wrong_type(what, "True or False", value)))
}

/// Readers of arguments that are real numbers, for `from_py_with`, which tells a reader no name: each has its argument's.
pub(crate) mod argument {
    use super::{Any, PyResult, real};

    macro_rules! arguments {
        ($($name:ident),+) => {$(
            pub(crate) fn $name(value: &Any<'_>) -> PyResult<f64> {
                real(stringify!($name), value)
            }
        )+};
    }

    arguments! {
        conserved, context_ratio, correlation, derivative, diversity, gain, identity, noise, prior, sample_ratio, scale,
        step_size, strength, time
    }
}

/// Whether a value is a complex number, whose imaginary part NumPy would drop.
fn is_complex(value: &Any<'_>) -> bool {
    let kind = || value.getattr("dtype")?.getattr("kind")?.extract::<String>();
    value.is_instance_of::<PyComplex>()
        || !(value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>())
            && kind().is_ok_and(|kind| kind == "c")
}

/// Whether a value is a truth, Python's or NumPy's.
pub(crate) fn is_truth(value: &Any<'_>) -> bool {
    value.is_instance_of::<PyBool>()
        || value.get_type().name().is_ok_and(|name| matches!(name.to_str(), Ok("bool" | "bool_")))
}

/// Elements of a list: their number is looked at before there is room for them.
pub(crate) const LONGEST_LIST: usize = 1_000_000;

/// The elements of a list or tuple. A dictionary would lose its values, and a set has no order.
pub(crate) fn list<'py, T>(
    what: &str,
    value: &Any<'py>,
    read: impl Fn(&Any<'py>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let none = || wrong_type(what, "a list", value);
    if value.is_instance_of::<PyString>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
        || value.cast::<PyMapping>().is_ok()
    {
        return Err(none());
    }
    let length = value.len().map_err(|raised| refused(value.py(), raised, none))?;
    if length > LONGEST_LIST {
        let message = format!("{what}: a list of {length}, at most {LONGEST_LIST} are supported");
        return Err(PyValueError::new_err(message));
    }
    let items = value.try_iter().map_err(|raised| refused(value.py(), raised, none))?;
    items.map(|item| read(&item?)).collect()
}

/// A whole number in a range; `1e6` is one.
pub(crate) fn whole(what: &str, value: &Any<'_>, range: RangeInclusive<u64>) -> PyResult<u64> {
    let none = || wrong_type(what, "a whole number", value);
    if is_truth(value) || is_complex(value) {
        return Err(none());
    }
    arrays::check_meant(what, value)?;
    let py = value.py();
    let found = match value.extract::<u64>() {
        Ok(number) => Some(number),
        Err(raised) if !says_wrong_kind(py, &raised) => return Err(raised),
        Err(_) => match value.extract::<f64>() {
            // Numbers of this size and above are not whole to the digit.
            Ok(number) if number.fract() == 0.0 && (0.0..9e15).contains(&number) => Some(number as u64),
            Ok(_) => None,
            Err(raised) if raised.is_instance_of::<PyOverflowError>(py) => None,
            Err(raised) => return Err(refused(py, raised, none)),
        },
    };
    found.filter(|number| range.contains(number)).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        let most = if *most == u64::MAX { "2⁶⁴ − 1".to_string() } else { most.to_string() };
        let found = shown(value);
        PyValueError::new_err(format!("{what} is {found}: expected a whole number from {least} to {most}"))
    })
}

/// A whole number of things, from `least` on.
pub(crate) fn count(what: &str, value: &Any<'_>, least: u32) -> PyResult<u32> {
    whole(what, value, u64::from(least)..=u64::from(u32::MAX)).map(|count| count as u32)
}

/// The seed of all randomness of a call.
pub(crate) fn seed(value: &Any<'_>) -> PyResult<u64> {
    whole("seed", value, 0..=u64::MAX)
}

/// A TypeError that names what was found.
pub(crate) fn wrong_type(what: &str, expected: &str, value: &Any<'_>) -> PyErr {
    let found = value.get_type().name().map_or_else(|_| "unknown".to_string(), |name| name.to_string());
    PyTypeError::new_err(format!("{what}: expected {expected}, found an object of type {found}"))
}
