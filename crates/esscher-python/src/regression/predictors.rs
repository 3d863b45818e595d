//! What is trained: blocks (A, b), heads (U, v), and layers of heads or of separate projections.

use super::answers::{Attending, attending};
use crate::arrays::{self, Reals};
use crate::failure::{OrRaise, choice};
use crate::numbers;
use crate::threads;
use esscher_core::numerics::Stream;
use esscher_core::regression::tasks::PromptDraw;
use esscher_core::regression::{AttentionKind, Block, RegressionHead, RegressionLayer};
use esscher_core::{Error, Mat, MatRef};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

/// The block form U = diag(A, 0), v = (0, b) of a head, which training preserves at every prompt length.
///
/// >>> import esscher as es
/// >>> block = es.Block([[0.5, 0.0], [0.0, 0.25]], 2.0)
/// >>> block.product()
/// array([[1. , 0. ],
///        [0. , 0.5]])
/// >>> es.Block.initial([[1.0, 0.0], [0.0, 1.0]], 0.5).conserved
/// 0.0
#[pyclass(name = "Block", module = "esscher", frozen)]
pub(crate) struct PyBlock {
    pub(super) block: Block,
}

#[pymethods]
impl PyBlock {
    #[new]
    fn new(matrix: &Bound<'_, PyAny>, gain: f64) -> PyResult<Self> {
        let matrix = Reals::read("matrix", matrix)?;
        arrays::check_dimension("matrix", matrix.matrix()?.nrows())?;
        Ok(PyBlock { block: Block::new(matrix.matrix()?, gain).or_raise()? })
    }

    /// The initialisation of the theory: A = α ΘΘᵀ/‖ΘΘᵀ‖ and b = α, with Θ of d rows.
    #[staticmethod]
    fn initial(theta: &Bound<'_, PyAny>, scale: f64) -> PyResult<Self> {
        let theta = Reals::read("theta", theta)?;
        arrays::check_dimension("theta", theta.matrix()?.nrows())?;
        Ok(PyBlock { block: Block::initial(theta.matrix()?, scale).or_raise()? })
    }

    /// The dimension d of a covariate.
    #[getter]
    fn dimension(&self) -> usize {
        self.block.matrix().nrows()
    }

    /// A.
    #[getter]
    fn matrix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.block.matrix())
    }

    /// b.
    #[getter]
    fn gain(&self) -> f64 {
        self.block.gain()
    }

    /// ‖A‖²_F − b², which gradient flow conserves on infinite prompts and for linear attention.
    #[getter]
    fn conserved(&self) -> PyResult<f64> {
        self.block.conserved().or_raise()
    }

    /// bA, the matrix that predicts.
    fn product<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.block.product().or_raise()?.as_ref())
    }

    /// The head with full matrices U = diag(A, 0), v = (0, b).
    fn head(&self) -> PyResult<PyRegressionHead> {
        Ok(PyRegressionHead { head: self.block.head().or_raise()? })
    }

    fn __repr__(&self) -> String {
        format!("Block(dimension={}, gain={})", self.block.matrix().nrows(), self.block.gain())
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        Ok((PyType::new::<Self>(py), (own.matrix(py)?, own.gain())).into_pyobject(py)?.unbind())
    }
}

/// One head read as a predictor: tokens (x, y), query (x_q, 0), prediction ⟨v, attended token⟩.
///
/// `score` is U, square of size d + 1; `value` is v, the last row of V: no other row predicts.
///
/// >>> import esscher as es
/// >>> head = es.RegressionHead([[0.5, 0.0], [0.0, 0.0]], [0.0, 2.0])
/// >>> head.dimension
/// 1
#[pyclass(name = "RegressionHead", module = "esscher", frozen)]
pub(crate) struct PyRegressionHead {
    pub(super) head: RegressionHead,
}

#[pymethods]
impl PyRegressionHead {
    #[new]
    fn new(score: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (score, value) = (Reals::read("score", score)?, Reals::read("value", value)?);
        arrays::check_dimension("value", value.vector()?.len())?;
        Ok(PyRegressionHead { head: RegressionHead::new(score.matrix()?, value.vector()?).or_raise()? })
    }

    /// The dimension d of a covariate.
    #[getter]
    fn dimension(&self) -> usize {
        self.head.dimension()
    }

    /// U.
    #[getter]
    fn score<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.head.score())
    }

    /// v.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.head.value().to_vec())
    }

    fn __repr__(&self) -> String {
        format!("RegressionHead(dimension={})", self.head.dimension())
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        Ok((PyType::new::<Self>(py), (own.score(py)?, own.value(py))).into_pyobject(py)?.unbind())
    }
}

/// One attention layer that predicts: heads (U, v) whose predictions add, or one head in separate Q, K, V, O.
///
/// Its parameters are one flat vector: U row by row, then v, for each head; or Q, K, V and O, each row by row,
/// with U = KᵀQ/√(d + 1) and v the last row of OV.
///
/// >>> import esscher as es
/// >>> layer = es.RegressionLayer([es.Block([[0.5]], 2.0).head()], attention="linear")
/// >>> layer.predict([[1.0, 3.0], [2.0, 1.0]], [1.0])        # 2 · mean of y · x · 0.5
/// 2.5
/// >>> len(es.RegressionLayer.at_random(3).parameters)       # four matrices of size d + 1
/// 64
#[pyclass(name = "RegressionLayer", module = "esscher", frozen)]
pub(crate) struct PyRegressionLayer {
    pub(super) layer: RegressionLayer,
    /// Whether it is made of Q, K, V and O.
    pub(super) projections: bool,
}

const KINDS: [(&str, AttentionKind); 2] =
    [("softmax", AttentionKind::Softmax), ("linear", AttentionKind::Linear)];

impl PyRegressionLayer {
    fn prompt(&self, tokens: &Bound<'_, PyAny>, query: &Bound<'_, PyAny>) -> PyResult<PromptDraw> {
        let (tokens, query) = (Reals::read("tokens", tokens)?, Reals::read("query", query)?);
        let (columns, query) = (tokens.matrix()?.ncols(), query.vector()?);
        let size = self.layer.dimension() + 1;
        if columns != size {
            return Err(Error::Size { what: "tokens (columns, d + 1)", expected: size, found: columns })
                .or_raise();
        }
        PromptDraw::from_rows(tokens.entries(), query, 0.0).or_raise()
    }
}

#[pymethods]
impl PyRegressionLayer {
    #[new]
    #[pyo3(signature = (heads, *, attention = "softmax"))]
    fn new(heads: &Bound<'_, PyAny>, attention: &str) -> PyResult<Self> {
        let heads = numbers::list("heads", heads, |head| match head.cast::<PyRegressionHead>() {
            Ok(head) => Ok(head.borrow()),
            Err(_) => Err(numbers::wrong_type("heads", "regression heads", head)),
        })?;
        let heads: Vec<RegressionHead> = heads.iter().map(|head| head.head.clone()).collect();
        let kind = choice("attention", attention, &KINDS)?;
        let layer = RegressionLayer::heads(kind, &heads).or_raise()?;
        Ok(PyRegressionLayer { layer, projections: false })
    }

    /// One head in separate square matrices Q, K, V and O of size d + 1.
    #[staticmethod]
    #[pyo3(signature = (query, key, value, output, *, attention = "softmax"))]
    fn projections(
        query: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        output: &Bound<'_, PyAny>,
        attention: &str,
    ) -> PyResult<Self> {
        let kind = choice("attention", attention, &KINDS)?;
        let (query, key) = (Reals::read("query projection", query)?, Reals::read("key projection", key)?);
        let (value, output) =
            (Reals::read("value projection", value)?, Reals::read("output projection", output)?);
        arrays::check_dimension("query projection", query.matrix()?.nrows())?;
        let layer = RegressionLayer::projections(
            kind,
            query.matrix()?,
            key.matrix()?,
            value.matrix()?,
            output.matrix()?,
        );
        Ok(PyRegressionLayer { layer: layer.or_raise()?, projections: true })
    }

    /// Projections with PyTorch's default initialisation, every entry uniform between ∓1/√(d + 1).
    #[staticmethod]
    #[pyo3(signature = (dimension, *, attention = "softmax", seed = None))]
    fn at_random(
        dimension: &Bound<'_, PyAny>,
        attention: &str,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let kind = choice("attention", attention, &KINDS)?;
        let seed = seed.map_or(Ok(0), numbers::seed)?;
        let dimension = arrays::dimension(dimension)?;
        let layer = RegressionLayer::projections_at_random(kind, dimension, &mut Stream::new(seed, 0, 0));
        Ok(PyRegressionLayer { layer: layer.or_raise()?, projections: true })
    }

    /// The dimension d of a covariate.
    #[getter]
    fn dimension(&self) -> usize {
        self.layer.dimension()
    }

    /// "softmax" or "linear".
    #[getter]
    fn attention(&self) -> &'static str {
        match self.layer.attention() {
            AttentionKind::Softmax => "softmax",
            AttentionKind::Linear => "linear",
        }
    }

    /// All parameters, one flat vector.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.layer.parameters().to_vec())
    }

    /// ‖scores‖² − ‖values‖² over the parameters; None where a square exceeds double precision.
    #[getter]
    fn balance(&self) -> Option<f64> {
        self.layer.balance()
    }

    /// (U, v) of each head, whatever the form.
    #[getter]
    fn heads(&self) -> PyResult<Vec<PyRegressionHead>> {
        let heads = self.layer.effective_heads().or_raise()?;
        Ok(heads.into_iter().map(|head| PyRegressionHead { head }).collect())
    }

    /// A layer of the same form with other parameters.
    fn with_parameters(&self, parameters: &Bound<'_, PyAny>) -> PyResult<Self> {
        let parameters = Reals::read("parameters", parameters)?;
        let layer = self.layer.with_parameters(parameters.vector()?).or_raise()?;
        Ok(PyRegressionLayer { layer, projections: self.projections })
    }

    /// The prediction from tokens (L, d + 1) and the covariates (d,) of a query.
    fn predict(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>, query: &Bound<'_, PyAny>) -> PyResult<f64> {
        let prompt = self.prompt(tokens, query)?;
        threads::detached(py, || self.layer.predict(&prompt)).or_raise()
    }

    /// The prediction and its gradient in all parameters.
    fn predict_with_gradient<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'_, PyAny>,
        query: &Bound<'_, PyAny>,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        let prompt = self.prompt(tokens, query)?;
        let (prediction, gradient) =
            threads::detached(py, || self.layer.predict_with_gradient(&prompt)).or_raise()?;
        Ok((prediction, arrays::vector(py, gradient)))
    }

    fn __repr__(&self) -> PyResult<String> {
        let (attention, dimension) = (self.attention(), self.layer.dimension());
        Ok(if self.projections {
            format!("RegressionLayer.projections(dimension={dimension}, attention=\"{attention}\")")
        } else {
            let heads = self.layer.effective_heads().or_raise()?.len();
            format!("RegressionLayer(heads={heads}, dimension={dimension}, attention=\"{attention}\")")
        })
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let keywords = PyDict::new(py);
        keywords.set_item("attention", own.attention())?;
        let class = PyType::new::<Self>(py);
        if !own.projections {
            let maker = py.import("functools")?.getattr("partial")?.call((class,), Some(&keywords))?;
            return Ok((maker, (own.heads()?,)).into_pyobject(py)?.unbind());
        }
        let size = own.layer.dimension() + 1;
        let mut arguments = vec!["projections".into_pyobject(py)?.into_any()];
        for part in own.layer.parameters().chunks_exact(size * size) {
            arguments.push(arrays::matrix(py, MatRef::from_row_major_slice(part, size, size))?.into_any());
        }
        let maker = py.import("operator")?.getattr("methodcaller")?;
        let maker = maker.call(PyTuple::new(py, arguments)?, Some(&keywords))?;
        Ok((maker, (class,)).into_pyobject(py)?.unbind())
    }
}

/// What a user may hand in where something predicts.
pub(super) enum Predictor {
    Block(Block),
    Head(RegressionHead),
    Layer { layer: RegressionLayer, projections: bool },
}

impl Predictor {
    pub(super) fn read(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(block) = value.cast::<PyBlock>() {
            Ok(Predictor::Block(block.get().block.clone()))
        } else if let Ok(head) = value.cast::<PyRegressionHead>() {
            Ok(Predictor::Head(head.get().head.clone()))
        } else if let Ok(layer) = value.cast::<PyRegressionLayer>() {
            let layer = layer.get();
            Ok(Predictor::Layer { layer: layer.layer.clone(), projections: layer.projections })
        } else {
            let found = value.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "{what}: expected a Block, a RegressionHead or a RegressionLayer, found an object of type {found}"
            )))
        }
    }

    /// Its attention: the layer's own, else the word, else softmax. A word that contradicts a layer is refused.
    pub(super) fn attending(&self, word: Option<&str>) -> PyResult<Attending> {
        let word = word.map(attending).transpose()?;
        let Predictor::Layer { layer, .. } = self else {
            return Ok(word.unwrap_or(Attending::Softmax));
        };
        let own = match layer.attention() {
            AttentionKind::Softmax => Attending::Softmax,
            AttentionKind::Linear => Attending::Linear,
        };
        match word {
            Some(word) if word != own => {
                Err(PyTypeError::new_err("attention: a RegressionLayer has its own; leave the argument out"))
            }
            _ => Ok(own),
        }
    }

    /// As a layer that simulations and descents can run, and whether it is made of projections.
    pub(super) fn layer(self, word: Option<&str>) -> PyResult<(RegressionLayer, bool)> {
        let attending = self.attending(word)?;
        let head = match self {
            Predictor::Layer { layer, projections } => return Ok((layer, projections)),
            Predictor::Block(block) => block.head().or_raise()?,
            Predictor::Head(head) => head,
        };
        let layer = match attending {
            Attending::Softmax => RegressionLayer::heads(AttentionKind::Softmax, &[head]),
            Attending::Linear => RegressionLayer::heads(AttentionKind::Linear, &[head]),
            Attending::OppositeHeads => {
                let pair = [half(&head, 1.0), half(&head, -1.0)]
                    .into_iter()
                    .collect::<esscher_core::Result<Vec<_>>>();
                pair.and_then(|pair| RegressionLayer::heads(AttentionKind::Softmax, &pair))
            }
        };
        Ok((layer.or_raise()?, false))
    }
}

/// (±U, ±v/2).
fn half(head: &RegressionHead, sign: f64) -> esscher_core::Result<RegressionHead> {
    let (score, size) = (head.score(), head.value().len());
    let value: Vec<f64> = head.value().iter().map(|entry| 0.5 * sign * entry).collect();
    RegressionHead::new(Mat::from_fn(size, size, |i, j| sign * score[(i, j)]).as_ref(), &value)
}
