//! Attention heads as maps from (tokens, queries) to outputs; tokens are a measure or the rows of an array.

use crate::arrays::{self, Reals};
use crate::failure::{Exceptions, OrRaise, choice, room_for};
use crate::measures::PyMeasure;
use crate::numbers;
use crate::threads;
use esscher_core::MatRef;
use esscher_core::attention::{Attention, Gradient, Heads, Linear, Moment, Projections, Scaling, Softmax};
use esscher_core::measure::{Law, Measure, Prompt};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use std::sync::Arc;

/// An attention head: (tokens, query) ↦ output, differentiable in its score matrix U and value matrix V.
#[pyclass(name = "Attention", module = "esscher", subclass, frozen)]
pub(crate) struct PyAttention {
    attention: Arc<dyn Attention>,
}

/// Tokens of a call: a law, or a prompt that stays where Python has it.
enum Tokens<'py> {
    Law(Law, Exceptions),
    Prompt(Reals<'py>),
}

impl<'py> Tokens<'py> {
    fn read(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(measure) = value.cast::<PyMeasure>() {
            let measure = measure.get();
            return Ok(Tokens::Law(measure.law.clone(), measure.exceptions.clone()));
        }
        let rows = Reals::read("tokens", value)?;
        arrays::check_dimension("tokens", rows.matrix()?.ncols())?;
        Ok(Tokens::Prompt(rows))
    }

    /// Gives the measure to `ask`, with the interpreter free meanwhile.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&dyn Measure) -> esscher_core::Result<T> + Send,
    ) -> PyResult<T> {
        match self {
            Tokens::Law(law, exceptions) => {
                let answer = threads::detached(py, || ask(law.as_ref()));
                exceptions.or_raise(answer)
            }
            Tokens::Prompt(rows) => {
                let (dimension, entries) = (rows.shape()[1], rows.entries());
                threads::detached(py, || ask(&Prompt::new(dimension, entries)?)).or_raise()
            }
        }
    }
}

/// Outputs of queries are computed in batches of about this many token-query pairs, with a look for signals between.
const PAIRS_PER_BATCH: usize = 1 << 28;

impl PyAttention {
    fn call<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        queries: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let tokens = Tokens::read(tokens)?;
        let queries = Reals::read("queries", queries)?;
        let (others, size, entries) = queries.vectors()?;
        let head = self.attention.as_ref();
        if others.is_empty() {
            let output = tokens.ask(py, |tokens| head.attend(tokens, entries))?;
            let size = output.len();
            return arrays::array(py, output, &[size]);
        }
        if size != head.query_dimension() {
            let error = esscher_core::Error::Size {
                what: "queries (last axis)",
                expected: head.query_dimension(),
                found: size,
            };
            return Err(error).or_raise();
        }
        let length = match &tokens {
            Tokens::Law(..) => 1024,
            Tokens::Prompt(rows) => rows.shape()[0],
        };
        let count = entries.len() / size;
        let mut outputs = room_for("the outputs", &[count, head.output_dimension()])?;
        for batch in entries.chunks((PAIRS_PER_BATCH / length.max(1)).max(64) * size) {
            let batch = MatRef::from_row_major_slice(batch, batch.len() / size, size);
            let found = tokens.ask(py, |tokens| head.attend_all(tokens, batch))?;
            arrays::append_rows(found.as_ref(), &mut outputs);
            py.check_signals()?;
        }
        let mut shape = others.to_vec();
        shape.push(head.output_dimension());
        arrays::array(py, outputs, &shape)
    }

    fn gradient_at(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        query: &Bound<'_, PyAny>,
    ) -> PyResult<PyGradient> {
        let query = arrays::owned_vector("query", query)?;
        let gradient = Tokens::read(tokens)?.ask(py, |tokens| self.attention.gradient(tokens, &query))?;
        Ok(PyGradient { gradient })
    }
}

#[pymethods]
impl PyAttention {
    /// The dimension of a query, the columns of U.
    #[getter]
    fn query_dimension(&self) -> usize {
        self.attention.query_dimension()
    }

    /// The dimension of a token, the rows of U and the columns of V.
    #[getter]
    fn token_dimension(&self) -> usize {
        self.attention.token_dimension()
    }

    /// The dimension of an output, the rows of V.
    #[getter]
    fn output_dimension(&self) -> usize {
        self.attention.output_dimension()
    }

    /// The outputs at queries (..., query dimension), an array (..., output dimension).
    ///
    /// `tokens` is a measure (an infinite prompt) or a (L, d) array (a finite one, read without a copy where it is
    /// contiguous and of double precision: other threads must not write into it meanwhile).
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        queries: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.call(py, tokens, queries)
    }

    /// The output at one query with its derivatives in U and V.
    fn gradient(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        query: &Bound<'_, PyAny>,
    ) -> PyResult<PyGradient> {
        self.gradient_at(py, tokens, query)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (class, head) = (slf.get_type().name()?.to_string(), &slf.get().attention);
        Ok(format!(
            "{class}(token_dimension={}, query_dimension={}, output_dimension={})",
            head.token_dimension(),
            head.query_dimension(),
            head.output_dimension()
        ))
    }
}

/// Reads the factor of the scores of query, key and value projections.
fn scaling(value: Option<&Bound<'_, PyAny>>) -> PyResult<Scaling> {
    match value {
        None => Ok(Scaling::None),
        Some(value) => match value.cast::<PyString>() {
            Ok(name) => choice(
                "scaling",
                name.to_str()?,
                &[("inverse-root-dimension", Scaling::InverseRootDimension)],
            ),
            Err(_) => numbers::real("scaling", value).map(Scaling::Factor),
        },
    }
}

fn projections(
    query: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    factor: Option<&Bound<'_, PyAny>>,
) -> PyResult<Projections> {
    let query = Reals::read("query projection", query)?;
    let key = Reals::read("key projection", key)?;
    let value = Reals::read("value projection", value)?;
    Projections::new(query.matrix()?, key.matrix()?, value.matrix()?, scaling(factor)?).or_raise()
}

/// One softmax attention head T[μ](z) = V ∇Λ_μ(Uz): V times the mean of the tilted tokens.
///
/// On a prompt this is Σₗ softmax(⟨zₗ, Uz⟩) V zₗ; on Gaussian tokens it is V(m + GUz), linear in the query.
///
/// >>> import esscher as es
/// >>> head = es.SoftmaxAttention(score=[[1, 0], [0, 1]], value=[[1, -1]])
/// >>> head(es.Gaussian.standard(2), [0.5, -0.25])          # an infinite prompt
/// array([0.75])
/// >>> head([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [9.0, 0.0]]).shape       # a prompt of two tokens, two queries
/// (2, 1)
#[pyclass(name = "SoftmaxAttention", module = "esscher", extends = PyAttention, frozen)]
pub(crate) struct PySoftmaxAttention {
    head: Softmax,
}

/// A softmax head, or a TypeError that names what was found.
pub(crate) fn softmax_from(value: &Bound<'_, PyAny>) -> PyResult<Softmax> {
    let Ok(head) = value.cast::<PySoftmaxAttention>() else {
        let found = value.get_type().name()?;
        let message = format!("head: expected a SoftmaxAttention, found an object of type {found}");
        return Err(PyTypeError::new_err(message));
    };
    Ok(head.get().head.clone())
}

impl PySoftmaxAttention {
    fn initialiser(head: Softmax) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyAttention { attention: Arc::new(head.clone()) })
            .add_subclass(PySoftmaxAttention { head })
    }
}

#[pymethods]
impl PySoftmaxAttention {
    #[new]
    fn new(score: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let (score, value) = (Reals::read("score matrix", score)?, Reals::read("value matrix", value)?);
        Ok(PySoftmaxAttention::initialiser(Softmax::new(score.matrix()?, value.matrix()?).or_raise()?))
    }

    /// The head of query, key and value projections: U = factor · KᵀQ.
    ///
    /// `scaling` is "inverse-root-dimension" (1/√k, as in transformers), a number, or None for no factor.
    #[staticmethod]
    #[pyo3(signature = (query, key, value, *, scaling = None))]
    fn from_qkv(
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        scaling: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Self>> {
        let head = Softmax::from_projections(&projections(query, key, value, scaling)?).or_raise()?;
        Py::new(py, PySoftmaxAttention::initialiser(head))
    }

    /// The score matrix U.
    #[getter]
    fn score<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.head.score())
    }

    /// The value matrix V.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.head.value())
    }

    /// θ = Uz, the tilt that the head applies for a query.
    fn tilt<'py>(&self, py: Python<'py>, query: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let query = arrays::owned_vector("query", query)?;
        Ok(arrays::vector(py, self.head.tilt(&query).or_raise()?))
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let arguments = (own.score(py)?, own.value(py)?);
        Ok((PyType::new::<Self>(py), arguments).into_pyobject(py)?.unbind())
    }
}

/// One linear attention head V M Uz, M the second moment of the tokens ("raw") or their covariance ("centred").
///
/// >>> import esscher as es
/// >>> head = es.LinearAttention(score=[[1, 0], [0, 1]], value=[[1, -1]])
/// >>> head(es.Gaussian.standard(2), [0.5, -0.25])
/// array([0.75])
#[pyclass(name = "LinearAttention", module = "esscher", extends = PyAttention, frozen)]
pub(crate) struct PyLinearAttention {
    head: Linear,
}

/// The words for the moment of linear attention.
const MOMENTS: [(&str, Moment); 2] = [("raw", Moment::Raw), ("centred", Moment::Centred)];

impl PyLinearAttention {
    fn initialiser(head: Linear) -> PyClassInitializer<Self> {
        PyClassInitializer::from(PyAttention { attention: Arc::new(head.clone()) })
            .add_subclass(PyLinearAttention { head })
    }
}

#[pymethods]
impl PyLinearAttention {
    #[new]
    #[pyo3(signature = (score, value, *, moment = "raw"))]
    fn new(
        score: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        moment: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        let (score, value) = (Reals::read("score matrix", score)?, Reals::read("value matrix", value)?);
        let moment = choice("moment", moment, &MOMENTS)?;
        Ok(PyLinearAttention::initialiser(Linear::new(score.matrix()?, value.matrix()?, moment).or_raise()?))
    }

    /// The head of query, key and value projections: U = factor · KᵀQ.
    #[staticmethod]
    #[pyo3(signature = (query, key, value, *, scaling = None, moment = "raw"))]
    fn from_qkv(
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        scaling: Option<&Bound<'_, PyAny>>,
        moment: &str,
    ) -> PyResult<Py<Self>> {
        let moment = choice("moment", moment, &MOMENTS)?;
        let head = Linear::from_projections(&projections(query, key, value, scaling)?, moment).or_raise()?;
        Py::new(py, PyLinearAttention::initialiser(head))
    }

    /// The score matrix U.
    #[getter]
    fn score<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.head.score())
    }

    /// The value matrix V.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.head.value())
    }

    /// "raw" or "centred".
    #[getter]
    fn moment(&self) -> &'static str {
        MOMENTS.iter().find(|(_, moment)| *moment == self.head.moment()).map_or("", |(name, _)| name)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let keywords = pyo3::types::PyDict::new(py);
        keywords.set_item("moment", own.moment())?;
        let partial = py.import("functools")?.getattr("partial")?;
        let maker = partial.call((PyType::new::<Self>(py),), Some(&keywords))?;
        Ok((maker, (own.score(py)?, own.value(py)?)).into_pyobject(py)?.unbind())
    }
}

/// The sum of several heads on the same tokens and queries.
#[pyclass(name = "Heads", module = "esscher", frozen)]
pub(crate) struct PyHeads {
    heads: Heads,
    parts: Vec<Py<PyAttention>>,
}

#[pymethods]
impl PyHeads {
    #[new]
    fn new(heads: &Bound<'_, PyAny>) -> PyResult<Self> {
        let heads = numbers::list("heads", heads, |head| match head.cast::<PyAttention>() {
            Ok(head) => Ok(head.clone().unbind()),
            Err(_) => Err(numbers::wrong_type("heads", "attention heads", head)),
        })?;
        let sum = Heads::new(heads.iter().map(|head| head.get().attention.clone()).collect()).or_raise()?;
        Ok(PyHeads { heads: sum, parts: heads })
    }

    /// The outputs at queries (..., query dimension), an array (..., output dimension).
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        queries: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut total: Option<Bound<'py, PyAny>> = None;
        for head in &self.parts {
            let output = head.get().call(py, tokens, queries)?.into_any();
            total = Some(match total {
                Some(total) => total.add(output)?,
                None => output,
            });
        }
        total.ok_or_else(|| PyTypeError::new_err("heads: none given, at least one is needed"))
    }

    /// The gradient of each head at one query.
    fn gradients(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        query: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<PyGradient>> {
        self.parts.iter().map(|head| head.get().gradient_at(py, tokens, query)).collect()
    }

    fn __len__(&self) -> usize {
        self.heads.heads().len()
    }

    fn __repr__(&self) -> String {
        format!("Heads({})", self.heads.heads().len())
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let parts: Vec<_> = own.parts.iter().map(|part| part.bind(py)).collect();
        Ok((PyType::new::<Self>(py), (PyTuple::new(py, parts)?,)).into_pyobject(py)?.unbind())
    }
}

/// An output with its derivatives in the score matrix U and the value matrix V.
#[pyclass(name = "Gradient", module = "esscher", frozen)]
pub(crate) struct PyGradient {
    gradient: Gradient,
}

#[pymethods]
impl PyGradient {
    /// The output of the head.
    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.gradient.output.clone())
    }

    /// ∂output/∂θ, an (output, token) matrix.
    #[getter]
    fn tilt_sensitivity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.gradient.tilt_sensitivity.as_ref())
    }

    /// The mean of the tilted tokens, on which V acts.
    #[getter]
    fn attended_token<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.gradient.attended_token.clone())
    }

    /// The query.
    #[getter]
    fn query<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.gradient.query.clone())
    }

    /// The gradient in U of ⟨weight, output⟩.
    fn in_score<'py>(
        &self,
        py: Python<'py>,
        output_weight: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let weight = arrays::owned_vector("output weight", output_weight)?;
        arrays::matrix(py, self.gradient.in_score(&weight).or_raise()?.as_ref())
    }

    /// The gradient in V of ⟨weight, output⟩.
    fn in_value<'py>(
        &self,
        py: Python<'py>,
        output_weight: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let weight = arrays::owned_vector("output weight", output_weight)?;
        arrays::matrix(py, self.gradient.in_value(&weight).or_raise()?.as_ref())
    }
}
