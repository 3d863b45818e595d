//! Arrays in and out: whatever NumPy reads as real numbers, borrowed where it is contiguous double precision.

use crate::failure::{OrRaise, room_for};
use crate::numbers;
use esscher_core::prompt::PromptLength;
use esscher_core::{Mat, MatRef};
use numpy::{
    Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};

export!(fn own_numbers);

/// Any object of Python.
pub(crate) type Any<'py> = Bound<'py, PyAny>;

/// Matrices of this many rows and columns are 512 MB; larger tokens are refused at the door.
pub(crate) const LARGEST_DIMENSION: usize = 8192;

/// A precision that Python's numbers are read in.
pub(crate) trait Precision: Element {
    const NAME: &'static str;
}

impl Precision for f64 {
    const NAME: &'static str = "float64";
}

impl Precision for f32 {
    const NAME: &'static str = "float32";
}

/// A C-contiguous array of one precision: the caller's own memory where possible, a converted copy otherwise.
pub(crate) struct Numbers<'py, T: Element> {
    what: &'static str,
    array: PyReadonlyArrayDyn<'py, T>,
}

/// An array of double precision.
pub(crate) type Reals<'py> = Numbers<'py, f64>;

/// An array of single precision.
#[cfg(feature = "audit")]
pub(crate) type Singles<'py> = Numbers<'py, f32>;

impl<'py, T: Precision> Numbers<'py, T> {
    /// Reads anything with NumPy's array protocol: lists, float32, strided views, PyTorch tensors, JAX arrays.
    pub(crate) fn read(what: &'static str, value: &Any<'py>) -> PyResult<Self> {
        let own = value.is_exact_instance_of::<PyUntypedArray>()
            && value.cast::<PyArrayDyn<T>>().is_ok_and(is_plain);
        let array = if own { value.clone() } else { converted(what, value, Some(T::NAME))? };
        let array = array.cast::<PyArrayDyn<T>>()?.try_readonly();
        Ok(Numbers { what, array: array.map_err(|error| PyValueError::new_err(format!("{what}: {error}")))? })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// All entries, the last index running fastest.
    pub(crate) fn entries(&self) -> &[T] {
        // `read` made sure that the array is contiguous.
        self.array.as_slice().unwrap_or_default()
    }

    /// Refuses an array of another shape.
    #[cfg(any(feature = "audit", feature = "zoo"))]
    pub(crate) fn expect_shape(&self, expected: &[usize]) -> PyResult<()> {
        if self.shape() == expected {
            return Ok(());
        }
        Err(self.shape_error(&format!("shape {}", shape_text(expected))))
    }

    pub(crate) fn shape_error(&self, expected: &str) -> PyErr {
        let (what, found) = (self.what, shape_text(self.shape()));
        PyValueError::new_err(format!("{what}: expected {expected}, found shape {found}"))
    }
}

impl Reals<'_> {
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
}

#[cfg(feature = "audit")]
impl<'py> Singles<'py> {
    /// Reads an array whose entries are all finite in single precision.
    pub(crate) fn finite(what: &'static str, value: &Any<'py>) -> PyResult<Self> {
        let read = Self::read(what, value)?;
        let Some(index) = read.entries().iter().position(|entry| !entry.is_finite()) else { return Ok(read) };
        let (place, found) = (place(read.shape(), index), read.entries()[index]);
        let message = format!("{what}{place} is {found}: expected a finite number of single precision");
        Err(PyValueError::new_err(message))
    }
}

/// The place of an entry as Python writes it: `[2, 0]`.
pub(crate) fn place(shape: &[usize], index: usize) -> String {
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

/// A C-contiguous array of float32 where that is what was given, of float64 otherwise: the caller's own where possible.
#[cfg(feature = "zoo")]
pub(crate) fn in_its_precision<'py>(what: &str, value: &Any<'py>) -> PyResult<Any<'py>> {
    if value.is_exact_instance_of::<PyUntypedArray>()
        && (value.cast::<PyArrayDyn<f64>>().is_ok_and(is_plain)
            || value.cast::<PyArrayDyn<f32>>().is_ok_and(is_plain))
    {
        return Ok(value.clone());
    }
    converted(what, value, None)
}

/// Lists inside each other that are looked into: NumPy has no more axes.
const MOST_AXES: usize = 64;

/// Refuses numbers that were not meant as such: behind a mask NumPy has some too, and times are counts of nanoseconds to it.
pub(crate) fn check_meant(what: &str, value: &Any<'_>) -> PyResult<()> {
    if value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() {
        return Ok(());
    }
    if is_masked(value, 0)? {
        let message = format!("{what}: some entries are masked: fill them or leave them out");
        return Err(PyValueError::new_err(message));
    }
    let Ok(found) = value.getattr("dtype") else { return Ok(()) };
    let kind = found.getattr("kind").and_then(|kind| kind.extract::<String>());
    if kind.is_ok_and(|kind| kind == "M" || kind == "m") {
        return Err(PyTypeError::new_err(format!("{what}: expected real numbers, found dtype {found}")));
    }
    Ok(())
}

/// Whether an array, or one in a list, has a masked entry.
fn is_masked(value: &Any<'_>, depth: usize) -> PyResult<bool> {
    if depth < MOST_AXES && (value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()) {
        for item in value.try_iter()? {
            if is_masked(&item?, depth + 1)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    // Masked arrays are arrays of a class of their own.
    if value.is_exact_instance_of::<PyUntypedArray>() || !value.is_instance_of::<PyUntypedArray>() {
        return Ok(false);
    }
    value.py().import("numpy.ma")?.call_method1("is_masked", (value,))?.is_truthy()
}

/// A MemoryError that says what there is no room for; another exception passes.
fn without_room(py: Python<'_>, what: &str, raised: PyErr) -> PyErr {
    if raised.is_instance_of::<PyMemoryError>(py) {
        return PyMemoryError::new_err(format!("{what}: more numbers than there is memory for"));
    }
    raised
}

/// What NumPy makes of a value, whatever is in it: the one door for arrays and lists of numbers.
fn array_of<'py>(what: &str, value: &Any<'py>) -> PyResult<Any<'py>> {
    let py = value.py();
    check_meant(what, value)?;
    let array = py.import("numpy")?.call_method1("asarray", (value,)).map_err(|error| {
        let message = format!("{what}: expected an array of real numbers: {}", error.value(py));
        if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(message)
        } else if error.is_instance_of::<PyMemoryError>(py) {
            without_room(py, what, error)
        } else if error.is_instance_of::<pyo3::exceptions::PyException>(py) {
            PyTypeError::new_err(message)
        } else {
            error
        }
    })?;
    check_meant(what, &array)?;
    Ok(array)
}

/// How many entries an array of any library has, a sequence otherwise.
pub(crate) fn entries_of(value: &Any<'_>) -> usize {
    let size = value.getattr("size").and_then(|size| size.extract());
    // PyTorch's `size` is a method.
    size.or_else(|_| value.call_method0("numel")?.extract()).or_else(|_| value.len()).unwrap_or(0)
}

/// Numbers that become Python's own at most: each takes forty bytes then.
const MOST_OWN_NUMBERS: usize = 10_000_000;

/// Refuses an array of more entries than this.
fn check_entries(what: &str, array: &Any<'_>, most: usize) -> PyResult<()> {
    let found = entries_of(array);
    if found <= most {
        return Ok(());
    }
    let message =
        format!("{what}: more numbers than are read one by one: expected at most {most}, found {found}");
    Err(PyMemoryError::new_err(message))
}

/// An array of what was written, as Python's own numbers: each is then read as a single one is.
#[pyfunction]
fn own_numbers<'py>(what: &str, value: &Any<'py>) -> PyResult<Any<'py>> {
    let array = array_of(what, value)?;
    check_entries(what, &array, MOST_OWN_NUMBERS)?;
    let own = array.call_method1("astype", ("object",));
    own.map_err(|raised| without_room(value.py(), what, raised))
}

/// A new array made by NumPy, or a TypeError that names what was found; without a precision, single stays what it is.
fn converted<'py>(what: &str, value: &Any<'py>, precision: Option<&'static str>) -> PyResult<Any<'py>> {
    let py = value.py();
    let mut array = array_of(what, value)?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind == "O" {
        array = from_objects(what, value, &array)?;
    } else if !"fiub".contains(&kind) {
        let found = array.getattr("dtype")?;
        let message = format!("{what}: expected an array of real numbers, found dtype {found}");
        return Err(PyTypeError::new_err(message));
    }
    let precision = match precision {
        Some(precision) => precision,
        None if kind == "f" && array.getattr("dtype")?.getattr("itemsize")?.extract::<usize>()? == 4 => {
            "float32"
        }
        None => "float64",
    };
    let asked = (array, precision, ["C_CONTIGUOUS", "ALIGNED"]);
    let required = py.import("numpy")?.call_method1("require", asked);
    required.map_err(|raised| without_room(py, what, raised))
}

/// Doubles from an array of objects: fractions, decimals and large integers are numbers, and what is none is named by its place.
fn from_objects<'py>(what: &str, value: &Any<'py>, array: &Any<'py>) -> PyResult<Any<'py>> {
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let mut entries = room_for(what, &shape)?;
    for (index, entry) in array.getattr("flat")?.try_iter()?.enumerate() {
        let number = numbers::real(&format!("{what}{}", place(&shape, index)), &entry?);
        entries.push(number.map_err(|raised| match shape.is_empty() {
            // Not an array at all.
            true if raised.is_instance_of::<PyTypeError>(value.py()) => {
                numbers::wrong_type(what, "an array of real numbers", value)
            }
            _ => raised,
        })?);
    }
    Ok(Array::new(entries, shape).into_pyobject(value.py())?.into_any())
}

/// Whole numbers of tokens: a number, or a list or array of them; `1e6` is one.
pub(crate) fn lengths(value: &Any<'_>) -> PyResult<Vec<PromptLength>> {
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(vec![length(value)?]);
    }
    let array = array_of("lengths", value)?;
    let axes: usize = array.getattr("ndim")?.extract()?;
    match axes {
        0 => Ok(vec![length(&array.call_method0("item")?)?]),
        1 => {
            check_entries("lengths", &array, numbers::LONGEST_LIST)?;
            let listed = array.call_method0("tolist");
            let listed = listed.map_err(|raised| without_room(value.py(), "lengths", raised))?;
            listed.try_iter()?.map(|item| length(&item?)).collect()
        }
        _ => Err(PyValueError::new_err(format!("lengths: expected one axis, found {axes}"))),
    }
}

/// One prompt length.
pub(crate) fn length(value: &Any<'_>) -> PyResult<PromptLength> {
    length_read(value, value.extract())
}

/// A prompt length that has been read as a number.
pub(crate) fn length_read(value: &Any<'_>, read: PyResult<f64>) -> PyResult<PromptLength> {
    let wrong = || numbers::wrong_type("prompt length", "a whole number", value);
    if numbers::is_truth(value) {
        return Err(wrong());
    }
    check_meant("prompt length", value)?;
    match read {
        Ok(number) => PromptLength::try_from(number).or_raise(),
        Err(raised) if raised.is_instance_of::<PyOverflowError>(value.py()) => {
            let found = numbers::shown(value);
            let message = format!("prompt length {found}: expected a whole number of tokens from 1 to 10¹²");
            Err(PyValueError::new_err(message))
        }
        Err(raised) => Err(numbers::refused(value.py(), raised, wrong)),
    }
}

/// The dimension of a law that is not given by arrays.
pub(crate) fn dimension(value: &Any<'_>) -> PyResult<usize> {
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

/// The tokens of a prompt or a law, rows of an array.
pub(crate) fn tokens<'py>(what: &'static str, value: &Any<'py>) -> PyResult<Reals<'py>> {
    let rows = Reals::read(what, value)?;
    check_dimension(what, rows.matrix()?.ncols())?;
    Ok(rows)
}

/// The same numbers in memory of their own; nothing if there is no room for them.
pub(crate) fn copied<T: Clone>(entries: &[T]) -> Option<Vec<T>> {
    let mut own = Vec::new();
    own.try_reserve_exact(entries.len()).ok()?;
    own.extend_from_slice(entries);
    Some(own)
}

/// Refuses a list or an axis of another size.
pub(crate) fn check_size(what: &'static str, expected: usize, found: usize) -> PyResult<()> {
    let error = esscher_core::Error::Size { what, expected, found };
    if found == expected { Ok(()) } else { Err(error).or_raise() }
}

/// Numbers with a shape on their way to NumPy: what functions return.
pub(crate) struct Array<T = f64> {
    entries: Vec<T>,
    shape: Vec<usize>,
}

impl<T> Array<T> {
    pub(crate) fn new(entries: Vec<T>, shape: impl Into<Vec<usize>>) -> Self {
        Array { entries, shape: shape.into() }
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(entries: Vec<T>) -> Self {
        Array { shape: vec![entries.len()], entries }
    }
}

impl<T: Clone> From<&[T]> for Array<T> {
    fn from(entries: &[T]) -> Self {
        entries.to_vec().into()
    }
}

impl<T> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Vec::from_iter(entries).into()
    }
}

impl From<MatRef<'_, f64>> for Array {
    fn from(matrix: MatRef<'_, f64>) -> Self {
        Array::new(rows(matrix), [matrix.nrows(), matrix.ncols()])
    }
}

impl From<Mat<f64>> for Array {
    fn from(matrix: Mat<f64>) -> Self {
        matrix.as_ref().into()
    }
}

impl<'py, T: Element> IntoPyObject<'py> for Array<T> {
    type Target = PyArrayDyn<T>;
    type Output = Bound<'py, Self::Target>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyArray1::from_vec(py, self.entries).reshape(self.shape)
    }
}

/// The entries of a matrix row by row.
pub(crate) fn rows(matrix: MatRef<'_, f64>) -> Vec<f64> {
    let mut entries = Vec::with_capacity(matrix.nrows() * matrix.ncols());
    append_rows(matrix, &mut entries);
    entries
}

/// Appends a matrix row by row.
pub(crate) fn append_rows(matrix: MatRef<'_, f64>, entries: &mut Vec<f64>) {
    for row in 0..matrix.nrows() {
        entries.extend((0..matrix.ncols()).map(|column| matrix[(row, column)]));
    }
}

/// An owned matrix from an argument.
pub(crate) fn owned_matrix(what: &'static str, value: &Any<'_>) -> PyResult<Mat<f64>> {
    Ok(Reals::read(what, value)?.matrix()?.to_owned())
}

/// An owned vector from an argument.
pub(crate) fn owned_vector(what: &'static str, value: &Any<'_>) -> PyResult<Vec<f64>> {
    Ok(Reals::read(what, value)?.vector()?.to_vec())
}
