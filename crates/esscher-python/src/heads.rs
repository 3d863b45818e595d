//! Attention heads as maps from (tokens, queries) to outputs; tokens are a measure or the rows of an array.

use crate::measures::PyMeasure;
use crate::prelude::*;
use crate::watch::{LONG, UNKNOWN, left_behind};
use esscher_core::attention::{Attention, Gradient, Heads, Linear, Moment, Projections, Scaling, Softmax};
use esscher_core::measure::{Measure, Prompt};
use esscher_core::{Mat, MatRef};
use pyo3::types::PyString;
use std::sync::Arc;

export!(class PyAttention, PySoftmaxAttention, PyLinearAttention, PyHeads, PyGradient);
export!(fn gradient_again);
compared!(PyAttention, PyHeads, PyGradient);

/// An attention head: (tokens, query) ↦ output, differentiable in its score matrix U and value matrix V.
#[pyclass(name = "Attention", module = "esscher", subclass, frozen)]
pub(crate) struct PyAttention {
    attention: Arc<dyn Attention>,
    queries: Queries,
}

/// What the queries of a call have in common.
#[derive(Clone, Copy, PartialEq)]
enum Queries {
    /// The tokens alone: some queries may be answered now, others later.
    Apart,
    /// A matrix, made from all tokens: to make it again for others would take as long.
    ShareMatrix,
}

/// Tokens of a call: a law, or a prompt that stays where Python has it.
enum Tokens<'py> {
    Law(Bound<'py, PyMeasure>),
    Prompt(Reals<'py>),
}

impl<'py> Tokens<'py> {
    fn read(value: &Any<'py>) -> PyResult<Self> {
        if let Ok(measure) = value.cast::<PyMeasure>() {
            return Ok(Tokens::Law(measure.clone()));
        }
        Ok(Tokens::Prompt(arrays::tokens("tokens", value)?))
    }

    /// Gives the measure to `ask`, with the interpreter free meanwhile; a large law may be left behind on Ctrl-C.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&dyn Measure) -> esscher_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        match self {
            Tokens::Law(law) => law.get().asked(py, move |law| ask(law.as_ref())),
            Tokens::Prompt(rows) => {
                let (dimension, entries) = (rows.shape()[1], rows.entries());
                threads::detached(py, || ask(&Prompt::new(dimension, entries)?)).or_raise()
            }
        }
    }

    /// The same for so many products beside what the law itself takes: long work on a prompt gets a copy of it, if there is
    /// room, and may be left behind too.
    fn ask_for<T: Send + 'static>(
        &self,
        py: Python<'_>,
        products: usize,
        ask: impl FnOnce(&dyn Measure) -> esscher_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        if products <= PRODUCTS_PER_BATCH {
            return self.ask(py, ask);
        }
        match self {
            Tokens::Law(law) => {
                let (own, exceptions) = (law.get().law.clone(), &law.get().exceptions);
                exceptions.after(exceptions.by_size(py, UNKNOWN, move || ask(own.as_ref())))
            }
            Tokens::Prompt(rows) => match arrays::copied(rows.entries()) {
                Some(own) => {
                    let dimension = rows.shape()[1];
                    left_behind(py, None, move |_| ask(&Prompt::new(dimension, &own)?))?.or_raise()
                }
                None => self.ask(py, ask),
            },
        }
    }

    /// Products that one query takes, about, beside those with the head's matrices.
    fn products_per_query(&self) -> usize {
        match self {
            // A user's functions take longer than any product.
            Tokens::Law(law) if law.get().exceptions.are_possible() => 1 << 23,
            // What takes longer is left behind.
            Tokens::Law(law) => law.get().numbers.min(LONG).max(1024 * law.get().law.dimension()),
            // An exponential takes as long as a few products.
            Tokens::Prompt(rows) => rows.entries().len().saturating_add(8 * rows.shape()[0]),
        }
    }

    /// Products that a matrix of second moments takes.
    fn products_of_moments(&self) -> usize {
        match self {
            Tokens::Law(law) => law.get().law.dimension().saturating_pow(3),
            Tokens::Prompt(rows) => rows.entries().len().saturating_mul(rows.shape()[1]),
        }
    }
}

/// Outputs of queries are computed in batches of about this many products, with a look for signals between: a blink each.
const PRODUCTS_PER_BATCH: usize = 1 << 28;

/// Fewer queries at a time would read a long prompt more often than its products take.
const LEAST_QUERIES: usize = 16;

/// More queries at a time would be a large copy of them.
const MOST_QUERIES: usize = 1 << 20;

getters! { PyAttention, own:
    /// The dimension of a query, the columns of U.
    query_dimension: usize = own.attention.query_dimension();
    /// The dimension of a token, the rows of U and the columns of V.
    token_dimension: usize = own.attention.token_dimension();
    /// The dimension of an output, the rows of V.
    output_dimension: usize = own.attention.output_dimension();
}

#[pymethods]
impl PyAttention {
    /// The outputs at queries (..., query dimension), an array (..., output dimension).
    ///
    /// `tokens` is a measure (an infinite prompt) or a (L, d) array (a finite one, read without a copy where it is
    /// contiguous and of double precision: other threads must not write into it meanwhile).
    fn __call__(&self, py: Python<'_>, tokens: &Any<'_>, queries: &Any<'_>) -> PyResult<Array> {
        let tokens = Tokens::read(tokens)?;
        let queries = Reals::read("queries", queries)?;
        let (others, size, entries) = queries.vectors()?;
        let head = &self.attention;
        if others.is_empty() {
            let products = if self.queries == Queries::Apart { 0 } else { tokens.products_of_moments() };
            let (head, query) = (head.clone(), entries.to_vec());
            return Ok(tokens.ask_for(py, products, move |tokens| head.attend(tokens, &query))?.into());
        }
        arrays::check_size("queries (last axis)", head.query_dimension(), size)?;
        let count = entries.len() / size;
        let mut outputs = room_for("the outputs", &[count, head.output_dimension()])?;
        let of_head = head.token_dimension() * (size + head.output_dimension());
        let (at_once, products) = match self.queries {
            Queries::Apart => {
                let at_once = PRODUCTS_PER_BATCH / (of_head + tokens.products_per_query());
                (at_once.clamp(LEAST_QUERIES, MOST_QUERIES), 0)
            }
            Queries::ShareMatrix => {
                let of_queries = count.saturating_mul(size * head.output_dimension());
                (count.max(1), tokens.products_of_moments().saturating_add(of_queries))
            }
        };
        for batch in entries.chunks(at_once * size) {
            let (head, batch) = (head.clone(), batch.to_vec());
            let found = tokens.ask_for(py, products, move |tokens| {
                head.attend_all(tokens, MatRef::from_row_major_slice(&batch, batch.len() / size, size))
            })?;
            arrays::append_rows(found.as_ref(), &mut outputs);
            py.check_signals()?;
        }
        Ok(Array::new(outputs, [others, &[head.output_dimension()]].concat()))
    }

    /// The output at one query with its derivatives in U and V.
    fn gradient(&self, py: Python<'_>, tokens: &Any<'_>, query: &Any<'_>) -> PyResult<PyGradient> {
        let (head, query) = (self.attention.clone(), arrays::owned_vector("query", query)?);
        let tokens = Tokens::read(tokens)?;
        let products = tokens.products_of_moments();
        Ok(PyGradient {
            gradient: tokens.ask_for(py, products, move |tokens| head.gradient(tokens, &query))?,
        })
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (class, head) = (slf.get_type().name()?, &slf.get().attention);
        let (token, query, output) =
            (head.token_dimension(), head.query_dimension(), head.output_dimension());
        Ok(format!("{class}(token_dimension={token}, query_dimension={query}, output_dimension={output})"))
    }
}

/// Reads the factor of the scores of query, key and value projections.
fn scaling(value: Option<&Any<'_>>) -> PyResult<Scaling> {
    let Some(value) = value else { return Ok(Scaling::None) };
    match value.cast::<PyString>() {
        Ok(name) => {
            let names = [("inverse-root-dimension", Scaling::InverseRootDimension)];
            choice("scaling", &numbers::text("scaling", name.as_any())?, &names)
        }
        Err(_) => numbers::real("scaling", value).map(Scaling::Factor),
    }
}

fn projections(
    query: &Any<'_>,
    key: &Any<'_>,
    value: &Any<'_>,
    factor: Option<&Any<'_>>,
) -> PyResult<Projections> {
    let query = arrays::owned_matrix("query projection", query)?;
    let key = arrays::owned_matrix("key projection", key)?;
    let value = arrays::owned_matrix("value projection", value)?;
    Projections::new(query.as_ref(), key.as_ref(), value.as_ref(), scaling(factor)?).or_raise()
}

/// U and V as they are given.
fn score_and_value(score: &Any<'_>, value: &Any<'_>) -> PyResult<(Mat<f64>, Mat<f64>)> {
    Ok((arrays::owned_matrix("score matrix", score)?, arrays::owned_matrix("value matrix", value)?))
}

/// A class of heads with their two matrices.
macro_rules! head_class {
    ($(#[$documentation:meta])* $class:ident as $name:literal, $head:ty, $queries:expr) => {
        $(#[$documentation])*
        #[pyclass(name = $name, module = "esscher", extends = PyAttention, frozen)]
        pub(crate) struct $class {
            head: $head,
        }

        impl $class {
            fn initialiser(head: $head) -> PyClassInitializer<Self> {
                let attention = PyAttention { attention: Arc::new(head.clone()), queries: $queries };
                PyClassInitializer::from(attention).add_subclass($class { head })
            }
        }

        getters! { $class, own:
            /// The score matrix U.
            score: Array = own.head.score().into();
            /// The value matrix V.
            value: Array = own.head.value().into();
        }
    };
}

head_class! {
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
    PySoftmaxAttention as "SoftmaxAttention", Softmax, Queries::Apart
}

/// A softmax head, or a TypeError that names what was found.
pub(crate) fn softmax_from(value: &Any<'_>) -> PyResult<Softmax> {
    match value.cast::<PySoftmaxAttention>() {
        Ok(head) => Ok(head.get().head.clone()),
        Err(_) => Err(numbers::wrong_type("head", "a SoftmaxAttention", value)),
    }
}

#[pymethods]
impl PySoftmaxAttention {
    #[new]
    fn new(score: &Any<'_>, value: &Any<'_>) -> PyResult<PyClassInitializer<Self>> {
        let (score, value) = score_and_value(score, value)?;
        Ok(PySoftmaxAttention::initialiser(Softmax::new(score.as_ref(), value.as_ref()).or_raise()?))
    }

    /// The head of query, key and value projections: U = factor · KᵀQ.
    ///
    /// `scaling` is "inverse-root-dimension" (1/√k, as in transformers), a number, or None for no factor.
    #[staticmethod]
    #[pyo3(signature = (query, key, value, *, scaling = None))]
    fn from_qkv(
        py: Python<'_>,
        query: &Any<'_>,
        key: &Any<'_>,
        value: &Any<'_>,
        scaling: Option<&Any<'_>>,
    ) -> PyResult<Py<Self>> {
        let head = Softmax::from_projections(&projections(query, key, value, scaling)?).or_raise()?;
        Py::new(py, PySoftmaxAttention::initialiser(head))
    }

    /// θ = Uz, the tilt that the head applies for a query.
    fn tilt(&self, query: &Any<'_>) -> PyResult<Array> {
        Ok(self.head.tilt(&arrays::owned_vector("query", query)?).or_raise()?.into())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (PyType::new::<Self>(py), (self.score()?, self.value()?)).into_pyobject(py)
    }
}

head_class! {
    /// One linear attention head V M Uz, M the second moment of the tokens ("raw") or their covariance ("centred").
    ///
    /// >>> import esscher as es
    /// >>> head = es.LinearAttention(score=[[1, 0], [0, 1]], value=[[1, -1]])
    /// >>> head(es.Gaussian.standard(2), [0.5, -0.25])
    /// array([0.75])
    PyLinearAttention as "LinearAttention", Linear, Queries::ShareMatrix
}

/// The words for the moment of linear attention.
const MOMENTS: [(&str, Moment); 2] = [("raw", Moment::Raw), ("centred", Moment::Centred)];

getters! { PyLinearAttention, own:
    /// "raw" or "centred".
    moment: &'static str = MOMENTS.iter().find(|(_, it)| *it == own.head.moment()).map_or("", |(name, _)| name);
}

#[pymethods]
impl PyLinearAttention {
    #[new]
    #[pyo3(signature = (score, value, *, moment = None), text_signature = "(score, value, *, moment='raw')")]
    fn new(score: &Any<'_>, value: &Any<'_>, moment: Option<&Any<'_>>) -> PyResult<PyClassInitializer<Self>> {
        let (score, value) = score_and_value(score, value)?;
        let moment = choice_or_first("moment", moment, &MOMENTS)?;
        Ok(PyLinearAttention::initialiser(Linear::new(score.as_ref(), value.as_ref(), moment).or_raise()?))
    }

    /// The head of query, key and value projections: U = factor · KᵀQ.
    #[staticmethod]
    #[pyo3(signature = (query, key, value, *, scaling = None, moment = None),
           text_signature = "(query, key, value, *, scaling=None, moment='raw')")]
    fn from_qkv(
        py: Python<'_>,
        query: &Any<'_>,
        key: &Any<'_>,
        value: &Any<'_>,
        scaling: Option<&Any<'_>>,
        moment: Option<&Any<'_>>,
    ) -> PyResult<Py<Self>> {
        let moment = choice_or_first("moment", moment, &MOMENTS)?;
        let head = Linear::from_projections(&projections(query, key, value, scaling)?, moment).or_raise()?;
        Py::new(py, PyLinearAttention::initialiser(head))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let keywords = dictionary!(py, moment: self.moment()?);
        let class = PyType::new::<Self>(py);
        let maker = py.import("functools")?.getattr("partial")?.call((class,), Some(&keywords))?;
        (maker, (self.score()?, self.value()?)).into_pyobject(py)
    }
}

/// The sum of several heads on the same tokens and queries.
#[pyclass(name = "Heads", module = "esscher", frozen)]
pub(crate) struct PyHeads {
    parts: Vec<Py<PyAttention>>,
}

#[pymethods]
impl PyHeads {
    #[new]
    fn new(heads: &Any<'_>) -> PyResult<Self> {
        let parts = numbers::list("heads", heads, |head| match head.cast::<PyAttention>() {
            Ok(head) => Ok(head.clone().unbind()),
            Err(_) => Err(numbers::wrong_type("heads", "attention heads", head)),
        })?;
        // Whether they can be added.
        Heads::new(parts.iter().map(|head| head.get().attention.clone()).collect()).or_raise()?;
        Ok(PyHeads { parts })
    }

    /// The outputs at queries (..., query dimension), an array (..., output dimension).
    fn __call__<'py>(&self, tokens: &Any<'py>, queries: &Any<'py>) -> PyResult<Any<'py>> {
        let mut outputs = self.parts.iter().map(|head| head.bind(tokens.py()).call1((tokens, queries)));
        let first = outputs.next().ok_or_else(|| PyTypeError::new_err("heads: at least one is needed"))?;
        outputs.try_fold(first?, |total, output| total.add(output?))
    }

    /// The gradient of each head at one query.
    fn gradients(&self, py: Python<'_>, tokens: &Any<'_>, query: &Any<'_>) -> PyResult<Vec<PyGradient>> {
        self.parts.iter().map(|head| head.get().gradient(py, tokens, query)).collect()
    }

    fn __len__(&self) -> usize {
        self.parts.len()
    }

    fn __repr__(&self) -> String {
        format!("Heads({})", self.parts.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (PyType::new::<Self>(py), (&self.parts[..],)).into_pyobject(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.parts.iter().try_for_each(|part| visit.call(part))
    }
}

/// An output with its derivatives in the score matrix U and the value matrix V.
#[pyclass(name = "Gradient", module = "esscher", frozen)]
pub(crate) struct PyGradient {
    gradient: Gradient,
}

getters! { PyGradient, own:
    /// The output of the head.
    output: Array = own.gradient.output[..].into();
    /// ∂output/∂θ, an (output, token) matrix.
    tilt_sensitivity: Array = own.gradient.tilt_sensitivity.as_ref().into();
    /// The mean of the tilted tokens, on which V acts.
    attended_token: Array = own.gradient.attended_token[..].into();
    /// The query.
    query: Array = own.gradient.query[..].into();
}

#[pymethods]
impl PyGradient {
    /// The gradient in U of ⟨weight, output⟩.
    fn in_score(&self, output_weight: &Any<'_>) -> PyResult<Array> {
        let weight = arrays::owned_vector("output weight", output_weight)?;
        Ok(self.gradient.in_score(&weight).or_raise()?.into())
    }

    /// The gradient in V of ⟨weight, output⟩.
    fn in_value(&self, output_weight: &Any<'_>) -> PyResult<Array> {
        let weight = arrays::owned_vector("output weight", output_weight)?;
        Ok(self.gradient.in_value(&weight).or_raise()?.into())
    }

    fn __repr__(&self) -> String {
        let (output, token) =
            (self.gradient.tilt_sensitivity.nrows(), self.gradient.tilt_sensitivity.ncols());
        format!("Gradient(output_dimension={output}, token_dimension={token})")
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let arguments = (own.output()?, own.tilt_sensitivity()?, own.attended_token()?, own.query()?);
        let maker = py.import("esscher._native")?.getattr("gradient_again")?;
        Ok((maker, arguments).into_pyobject(py)?.unbind())
    }
}

/// A gradient from its parts, for pickles.
#[pyfunction]
fn gradient_again(
    output: &Any<'_>,
    tilt_sensitivity: &Any<'_>,
    attended_token: &Any<'_>,
    query: &Any<'_>,
) -> PyResult<PyGradient> {
    Ok(PyGradient {
        gradient: Gradient {
            output: arrays::owned_vector("output", output)?,
            tilt_sensitivity: arrays::owned_matrix("tilt_sensitivity", tilt_sensitivity)?,
            attended_token: arrays::owned_vector("attended_token", attended_token)?,
            query: arrays::owned_vector("query", query)?,
        },
    })
}
