//! Arrays in and out: whatever NumPy reads as real numbers, borrowed where it is contiguous double precision.

use crate::failure::OrRaise;
use crate::numbers;
use esscher_core::prompt::PromptLength;
use esscher_core::{Mat, MatRef};
use numpy::{
    Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// Matrices of this many rows and columns are 512 MB; larger tokens are refused at the door.
pub(crate) const LARGEST_DIMENSION: usize = 8192;

/// A C-contiguous array of doubles: the caller's own memory where possible, a converted copy otherwise.
pub(crate) struct Reals<'py> {
    what: &'static str,
    array: PyReadonlyArrayDyn<'py, f64>,
}

impl<'py> Reals<'py> {
    /// Reads anything with NumPy's array protocol: lists, float32, strided views, PyTorch tensors, JAX arrays.
    pub(crate) fn read(what: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if value.is_exact_instance_of::<PyUntypedArray>()
            && let Ok(array) = value.cast::<PyArrayDyn<f64>>()
            && is_plain(array)
        {
            return Ok(Reals { what, array: readonly(what, array)? });
        }
        let array = converted(what, value, Precision::Double)?;
        let array = array.cast::<PyArrayDyn<f64>>()?;
        Ok(Reals { what, array: readonly(what, array)? })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// All entries, the last index running fastest.
    pub(crate) fn entries(&self) -> &[f64] {
        // `read` made sure that the array is contiguous.
        self.array.as_slice().unwrap_or_default()
    }

    /// The entries of an array with one axis.
    pub(crate) fn vector(&self) -> PyResult<&[f64]> {
        match self.shape() {
            [_] => Ok(self.entries()),
            _ => Err(self.shape_error("one axis")),
        }
    }

    /// An array with two axes.
    pub(crate) fn matrix(&self) -> PyResult<MatRef<'_, f64>> {
        match *self.shape() {
            [rows, columns] => Ok(MatRef::from_row_major_slice(self.entries(), rows, columns)),
            _ => Err(self.shape_error("two axes, a matrix")),
        }
    }

    /// Vectors along the last axis: the other axes, the size of a vector, and all vectors one after the other.
    pub(crate) fn vectors(&self) -> PyResult<(&[usize], usize, &[f64])> {
        match self.shape().split_last() {
            Some((&size, others)) => Ok((others, size, self.entries())),
            None => Err(self.shape_error("an array whose last axis is a vector")),
        }
    }

    fn shape_error(&self, expected: &str) -> PyErr {
        let what = self.what;
        PyValueError::new_err(format!(
            "{what}: expected {expected}, found shape {}",
            shape_text(self.shape())
        ))
    }
}

/// A C-contiguous array of single precision: the caller's own memory where possible, a converted copy otherwise.
#[cfg(feature = "audit")]
pub(crate) struct Singles<'py> {
    what: &'static str,
    array: PyReadonlyArrayDyn<'py, f32>,
}

#[cfg(feature = "audit")]
impl<'py> Singles<'py> {
    /// Reads what [`Reals::read`] does; every entry must be finite in single precision.
    pub(crate) fn read(what: &'static str, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let array = if value.is_exact_instance_of::<PyUntypedArray>()
            && let Ok(array) = value.cast::<PyArrayDyn<f32>>()
            && is_plain(array)
        {
            readonly(what, array)?
        } else {
            let array = converted(what, value, Precision::Single)?;
            readonly(what, array.cast::<PyArrayDyn<f32>>()?)?
        };
        let read = Singles { what, array };
        match read.entries().iter().position(|entry| !entry.is_finite()) {
            None => Ok(read),
            Some(index) => Err(PyValueError::new_err(format!(
                "{what}{} is {}: expected a finite number of single precision",
                place(read.shape(), index),
                read.entries()[index]
            ))),
        }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// All entries, the last index running fastest.
    pub(crate) fn entries(&self) -> &[f32] {
        // `read` made sure that the array is contiguous.
        self.array.as_slice().unwrap_or_default()
    }

    /// Refuses an array of another shape.
    pub(crate) fn expect_shape(&self, expected: &[usize]) -> PyResult<()> {
        if self.shape() == expected {
            return Ok(());
        }
        Err(self.shape_error(&format!("shape {}", shape_text(expected))))
    }

    pub(crate) fn shape_error(&self, expected: &str) -> PyErr {
        let found = shape_text(self.shape());
        PyValueError::new_err(format!("{}: expected {expected}, found shape {found}", self.what))
    }
}

/// The place of an entry as Python writes it: `[2, 0]`.
#[cfg(feature = "audit")]
fn place(shape: &[usize], index: usize) -> String {
    let mut rest = index;
    let mut places: Vec<String> = Vec::new();
    for size in shape.iter().rev() {
        places.push((rest % size).to_string());
        rest /= size;
    }
    places.reverse();
    if places.is_empty() { String::new() } else { format!("[{}]", places.join(", ")) }
}

/// A shape as Python prints it.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        sizes => format!("({})", sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn is_plain<T: Element>(array: &Bound<'_, PyArrayDyn<T>>) -> bool {
    array.is_c_contiguous() && array.data().is_aligned()
}

/// What numbers are converted to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precision {
    Double,
    #[cfg(feature = "audit")]
    Single,
    /// Single precision stays what it is.
    #[cfg(feature = "zoo")]
    AsGiven,
}

/// A C-contiguous array of float32 where that is what was given, of float64 otherwise: the caller's own where possible.
#[cfg(feature = "zoo")]
pub(crate) fn in_its_precision<'py>(what: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_exact_instance_of::<PyUntypedArray>()
        && (value.cast::<PyArrayDyn<f64>>().is_ok_and(is_plain)
            || value.cast::<PyArrayDyn<f32>>().is_ok_and(is_plain))
    {
        return Ok(value.clone());
    }
    converted(what, value, Precision::AsGiven)
}

fn readonly<'py, T: Element>(
    what: &'static str,
    array: &Bound<'py, PyArrayDyn<T>>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    array.try_readonly().map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

/// A new array made by NumPy, or a TypeError that names what was found.
fn converted<'py>(
    what: &str,
    value: &Bound<'py, PyAny>,
    precision: Precision,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (value,)).map_err(|error| {
        let message = format!("{what}: expected an array of real numbers: {}", error.value(py));
        if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(message)
        } else if error.is_instance_of::<PyMemoryError>(py) {
            PyMemoryError::new_err(format!("{what}: more numbers than there is memory for"))
        } else if error.is_instance_of::<pyo3::exceptions::PyException>(py) {
            PyTypeError::new_err(message)
        } else {
            error
        }
    })?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !"fiub".contains(&kind) {
        let found = if kind == "O" {
            format!("an object of type {}", value.get_type().name()?)
        } else {
            format!("dtype {}", array.getattr("dtype")?)
        };
        return Err(PyTypeError::new_err(format!(
            "{what}: expected an array of real numbers, found {found}"
        )));
    }
    if value.hasattr("mask")? && numpy.getattr("ma")?.call_method1("is_masked", (value,))?.is_truthy()? {
        let message = format!("{what}: some entries are masked: fill them or leave them out");
        return Err(PyValueError::new_err(message));
    }
    let single = match precision {
        Precision::Double => false,
        #[cfg(feature = "audit")]
        Precision::Single => true,
        #[cfg(feature = "zoo")]
        Precision::AsGiven => {
            kind == "f" && array.getattr("dtype")?.getattr("itemsize")?.extract::<usize>()? == 4
        }
    };
    let kind = if single { "float32" } else { "float64" };
    numpy.call_method1("require", (array, kind, ["C_CONTIGUOUS", "ALIGNED"])).map_err(|error| {
        if error.is_instance_of::<PyMemoryError>(py) {
            PyMemoryError::new_err(format!("{what}: more numbers than there is memory for a copy of"))
        } else {
            error
        }
    })
}

/// Whole numbers of tokens: a number, or a list or array of them; `1e6` is one.
pub(crate) fn lengths(value: &Bound<'_, PyAny>) -> PyResult<Vec<PromptLength>> {
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(vec![length(value)?]);
    }
    let array = value
        .py()
        .import("numpy")?
        .call_method1("asarray", (value,))
        .map_err(|_| numbers::wrong_type("lengths", "a whole number or an array of them", value))?;
    let axes: usize = array.getattr("ndim")?.extract()?;
    match axes {
        0 => Ok(vec![length(&array.call_method0("item")?)?]),
        1 => array.call_method0("tolist")?.try_iter()?.map(|item| length(&item?)).collect(),
        _ => Err(PyValueError::new_err(format!("lengths: expected one axis, found {axes}"))),
    }
}

/// One prompt length.
pub(crate) fn length(value: &Bound<'_, PyAny>) -> PyResult<PromptLength> {
    if numbers::is_truth(value) {
        return Err(numbers::wrong_type("prompt length", "a whole number", value));
    }
    let number = match value.extract::<f64>() {
        Ok(number) => number,
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(value.py()) => f64::INFINITY,
        Err(_) => {
            let found = value.get_type().name()?;
            let message = format!("prompt length: expected a whole number, found an object of type {found}");
            return Err(PyTypeError::new_err(message));
        }
    };
    PromptLength::try_from(number).or_raise()
}

/// The dimension of a law that is not given by arrays.
pub(crate) fn dimension(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    numbers::whole("the dimension", value, 1..=LARGEST_DIMENSION as u64).map(|dimension| dimension as usize)
}

/// Checks the dimension of tokens that came as an array.
pub(crate) fn check_dimension(what: &str, found: usize) -> PyResult<()> {
    if found <= LARGEST_DIMENSION {
        return Ok(());
    }
    let message = format!("{what}: {found} coordinates per token, at most {LARGEST_DIMENSION} are supported");
    Err(PyValueError::new_err(message))
}

/// Numbers as an array of this shape.
pub(crate) fn array<'py>(
    py: Python<'py>,
    entries: Vec<f64>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    PyArray1::from_vec(py, entries).reshape(shape)
}

/// A vector as an array.
pub(crate) fn vector(py: Python<'_>, entries: Vec<f64>) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, entries)
}

/// A matrix as an array.
pub(crate) fn matrix<'py>(py: Python<'py>, matrix: MatRef<'_, f64>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let mut entries = Vec::with_capacity(matrix.nrows() * matrix.ncols());
    append_rows(matrix, &mut entries);
    array(py, entries, &[matrix.nrows(), matrix.ncols()])
}

/// Appends a matrix row by row.
pub(crate) fn append_rows(matrix: MatRef<'_, f64>, entries: &mut Vec<f64>) {
    for row in 0..matrix.nrows() {
        entries.extend((0..matrix.ncols()).map(|column| matrix[(row, column)]));
    }
}

/// An owned matrix from an argument.
pub(crate) fn owned_matrix(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Mat<f64>> {
    Ok(Reals::read(what, value)?.matrix()?.to_owned())
}

/// An owned vector from an argument.
pub(crate) fn owned_vector(what: &'static str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    Ok(Reals::read(what, value)?.vector()?.to_vec())
}
