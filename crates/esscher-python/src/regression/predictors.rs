//! What is trained: blocks (A, b), heads (U, v), and layers of heads or of separate projections.

use super::answers::{ATTENDING, Attending};
use crate::prelude::*;
use crate::watch::by_size;
use esscher_core::numerics::Stream;
use esscher_core::regression::tasks::PromptDraw;
use esscher_core::regression::{AttentionKind, Block, RegressionHead, RegressionLayer};
use esscher_core::{Error, Mat};

export!(class PyBlock, PyRegressionHead, PyRegressionLayer);
compared!(PyBlock, PyRegressionHead, PyRegressionLayer);

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
    fn new(matrix: &Any<'_>, #[pyo3(from_py_with = numbers::argument::gain)] gain: f64) -> PyResult<Self> {
        let matrix = Reals::read("matrix", matrix)?;
        arrays::check_dimension("matrix", matrix.matrix()?.nrows())?;
        Ok(PyBlock { block: Block::new(matrix.matrix()?, gain).or_raise()? })
    }

    /// The initialisation of the theory: A = α ΘΘᵀ/‖ΘΘᵀ‖ and b = α, with Θ of d rows.
    #[staticmethod]
    fn initial(
        theta: &Any<'_>,
        #[pyo3(from_py_with = numbers::argument::scale)] scale: f64,
    ) -> PyResult<Self> {
        let theta = Reals::read("theta", theta)?;
        arrays::check_dimension("theta", theta.matrix()?.nrows())?;
        Ok(PyBlock { block: Block::initial(theta.matrix()?, scale).or_raise()? })
    }

    /// bA, the matrix that predicts.
    fn product(&self) -> PyResult<Array> {
        Ok(self.block.product().or_raise()?.into())
    }

    /// The head with full matrices U = diag(A, 0), v = (0, b).
    fn head(&self) -> PyResult<PyRegressionHead> {
        Ok(PyRegressionHead { head: self.block.head().or_raise()? })
    }

    fn __repr__(&self) -> String {
        // Equal blocks print alike, since their hash is that of their print: 0 is added because -0 equals it.
        format!("Block(dimension={}, gain={})", self.block.matrix().nrows(), self.block.gain() + 0.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (PyType::new::<Self>(py), (self.matrix()?, self.gain()?)).into_pyobject(py)
    }
}

getters! { PyBlock, own:
    /// The dimension d of a covariate.
    dimension: usize = own.block.matrix().nrows();
    /// A.
    matrix: Array = own.block.matrix().into();
    /// b.
    gain: f64 = own.block.gain();
    /// ‖A‖²_F − b², which gradient flow conserves on infinite prompts and for linear attention.
    conserved: f64 = own.block.conserved().or_raise()?;
}

impl PyBlock {
    /// An argument that is a block.
    pub(super) fn asked(asked: &Asked<'_>, what: &str) -> PyResult<Block> {
        let value = asked.get(what)?;
        match value.cast::<PyBlock>() {
            Ok(block) => Ok(block.get().block.clone()),
            Err(_) => Err(numbers::wrong_type(what, "a Block", &value)),
        }
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
    fn new(score: &Any<'_>, value: &Any<'_>) -> PyResult<Self> {
        let (score, value) = (Reals::read("score", score)?, Reals::read("value", value)?);
        arrays::check_dimension("value", value.vector()?.len())?;
        Ok(PyRegressionHead { head: RegressionHead::new(score.matrix()?, value.vector()?).or_raise()? })
    }

    fn __repr__(&self) -> String {
        format!("RegressionHead(dimension={})", self.head.dimension())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (PyType::new::<Self>(py), (self.score()?, self.value()?)).into_pyobject(py)
    }
}

getters! { PyRegressionHead, own:
    /// The dimension d of a covariate.
    dimension: usize = own.head.dimension();
    /// U.
    score: Array = own.head.score().into();
    /// v.
    value: Array = own.head.value().into();
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
#[derive(Clone)]
pub(crate) struct PyRegressionLayer {
    pub(super) layer: RegressionLayer,
    /// Whether it is made of Q, K, V and O.
    pub(super) projections: bool,
}

const KINDS: [(&str, AttentionKind); 2] =
    [("softmax", AttentionKind::Softmax), ("linear", AttentionKind::Linear)];

impl PyRegressionLayer {
    fn prompt(&self, tokens: &Any<'_>, query: &Any<'_>) -> PyResult<PromptDraw> {
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
    #[pyo3(signature = (heads, *, attention = None), text_signature = "(heads, *, attention='softmax')")]
    fn new(heads: &Any<'_>, attention: Option<&Any<'_>>) -> PyResult<Self> {
        let heads = numbers::list("heads", heads, |head| match head.cast::<PyRegressionHead>() {
            Ok(head) => Ok(head.borrow()),
            Err(_) => Err(numbers::wrong_type("heads", "regression heads", head)),
        })?;
        let heads: Vec<RegressionHead> = heads.iter().map(|head| head.head.clone()).collect();
        let kind = choice_or_first("attention", attention, &KINDS)?;
        let layer = RegressionLayer::heads(kind, &heads).or_raise()?;
        Ok(PyRegressionLayer { layer, projections: false })
    }

    /// One head in separate square matrices Q, K, V and O of size d + 1.
    #[staticmethod]
    #[pyo3(signature = (query, key, value, output, *, attention = None),
           text_signature = "(query, key, value, output, *, attention='softmax')")]
    fn projections(
        query: &Any<'_>,
        key: &Any<'_>,
        value: &Any<'_>,
        output: &Any<'_>,
        attention: Option<&Any<'_>>,
    ) -> PyResult<Self> {
        let kind = choice_or_first("attention", attention, &KINDS)?;
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
    #[pyo3(signature = (dimension, *, attention = None, seed = None),
           text_signature = "(dimension, *, attention='softmax', seed=None)")]
    fn at_random(dimension: &Any<'_>, attention: Option<&Any<'_>>, seed: Option<&Any<'_>>) -> PyResult<Self> {
        let kind = choice_or_first("attention", attention, &KINDS)?;
        let seed = seed.map_or(Ok(0), numbers::seed)?;
        let dimension = arrays::dimension(dimension)?;
        let layer = RegressionLayer::projections_at_random(kind, dimension, &mut Stream::new(seed, 0, 0));
        Ok(PyRegressionLayer { layer: layer.or_raise()?, projections: true })
    }

    /// A layer of the same form with other parameters.
    fn with_parameters(&self, parameters: &Any<'_>) -> PyResult<Self> {
        let parameters = Reals::read("parameters", parameters)?;
        let layer = self.layer.with_parameters(parameters.vector()?).or_raise()?;
        Ok(PyRegressionLayer { layer, projections: self.projections })
    }

    /// The prediction from tokens (L, d + 1) and the covariates (d,) of a query.
    fn predict(&self, py: Python<'_>, tokens: &Any<'_>, query: &Any<'_>) -> PyResult<f64> {
        let prompt = self.prompt(tokens, query)?;
        threads::detached(py, || self.layer.predict(&prompt)).or_raise()
    }

    /// The prediction and its gradient in all parameters.
    fn predict_with_gradient(
        &self,
        py: Python<'_>,
        tokens: &Any<'_>,
        query: &Any<'_>,
    ) -> PyResult<(f64, Array)> {
        let (layer, prompt) = (self.layer.clone(), self.prompt(tokens, query)?);
        let numbers = layer.parameters().len();
        let found = by_size(py, numbers, move || layer.predict_with_gradient(&prompt))?.or_raise()?;
        Ok((found.0, found.1.into()))
    }

    fn __repr__(&self) -> PyResult<String> {
        let (attention, dimension) = (self.attention()?, self.layer.dimension());
        Ok(if self.projections {
            format!("RegressionLayer.projections(dimension={dimension}, attention=\"{attention}\")")
        } else {
            let heads = self.heads()?.len();
            format!("RegressionLayer(heads={heads}, dimension={dimension}, attention=\"{attention}\")")
        })
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let keywords = dictionary!(py, attention: own.attention()?);
        let class = PyType::new::<Self>(py);
        if !own.projections {
            let maker = py.import("functools")?.getattr("partial")?.call((class,), Some(&keywords))?;
            return Ok((maker, (own.heads()?,)).into_pyobject(py)?.unbind());
        }
        let size = own.layer.dimension() + 1;
        let mut arguments = vec!["projections".into_pyobject(py)?.into_any()];
        for part in own.layer.parameters().chunks_exact(size * size) {
            arguments.push(Array::new(part.to_vec(), [size, size]).into_pyobject(py)?.into_any());
        }
        let maker = py.import("operator")?.getattr("methodcaller")?;
        let maker = maker.call(PyTuple::new(py, arguments)?, Some(&keywords))?;
        Ok((maker, (class,)).into_pyobject(py)?.unbind())
    }
}

getters! { PyRegressionLayer, own:
    /// The dimension d of a covariate.
    dimension: usize = own.layer.dimension();
    /// "softmax" or "linear".
    attention: &'static str = match own.layer.attention() {
        AttentionKind::Softmax => "softmax",
        AttentionKind::Linear => "linear",
    };
    /// All parameters, one flat vector.
    parameters: Array = own.layer.parameters().into();
    /// ‖scores‖² − ‖values‖² over the parameters; None where a square exceeds double precision.
    balance: Option<f64> = own.layer.balance();
    /// (U, v) of each head, whatever the form.
    heads: Vec<PyRegressionHead> = {
        let heads = own.layer.effective_heads().or_raise()?;
        heads.into_iter().map(|head| PyRegressionHead { head }).collect()
    };
}

/// What a user may hand in where something predicts.
pub(super) enum Predictor {
    Block(Block),
    Head(RegressionHead),
    Layer(PyRegressionLayer),
}

impl Predictor {
    pub(super) fn read(what: &str, value: &Any<'_>) -> PyResult<Self> {
        if let Ok(block) = value.cast::<PyBlock>() {
            Ok(Predictor::Block(block.get().block.clone()))
        } else if let Ok(head) = value.cast::<PyRegressionHead>() {
            Ok(Predictor::Head(head.get().head.clone()))
        } else if let Ok(layer) = value.cast::<PyRegressionLayer>() {
            Ok(Predictor::Layer(layer.get().clone()))
        } else {
            Err(numbers::wrong_type(what, "a Block, a RegressionHead or a RegressionLayer", value))
        }
    }

    /// Its attention: the layer's own, else the one of a call, else softmax. One that contradicts a layer is refused.
    pub(super) fn attending(&self, asked: &Asked<'_>) -> PyResult<Attending> {
        let word = asked.maybe("attention", |asked, what| asked.choice(what, &ATTENDING))?;
        let Predictor::Layer(layer) = self else {
            return Ok(word.unwrap_or(Attending::Softmax));
        };
        let own = match layer.layer.attention() {
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

    /// As a layer of this attention that simulations and descents can run.
    pub(super) fn layer(self, attending: Attending) -> PyResult<PyRegressionLayer> {
        let head = match self {
            Predictor::Layer(layer) => return Ok(layer),
            Predictor::Block(block) => block.head().or_raise()?,
            Predictor::Head(head) => head,
        };
        let layer = match attending {
            Attending::Softmax => RegressionLayer::heads(AttentionKind::Softmax, &[head]),
            Attending::Linear => RegressionLayer::heads(AttentionKind::Linear, &[head]),
            Attending::OppositeHeads => half(&head, 1.0)
                .and_then(|one| RegressionLayer::heads(AttentionKind::Softmax, &[one, half(&head, -1.0)?])),
        };
        Ok(PyRegressionLayer { layer: layer.or_raise()?, projections: false })
    }

    /// The argument `predictor` of a call as a layer that runs.
    pub(super) fn layer_asked(asked: &Asked<'_>) -> PyResult<PyRegressionLayer> {
        let predictor = Predictor::read("predictor", &asked.get("predictor")?)?;
        let attending = predictor.attending(asked)?;
        predictor.layer(attending)
    }
}

/// (±U, ±v/2).
fn half(head: &RegressionHead, sign: f64) -> esscher_core::Result<RegressionHead> {
    let (score, size) = (head.score(), head.value().len());
    let value: Vec<f64> = head.value().iter().map(|entry| 0.5 * sign * entry).collect();
    RegressionHead::new(Mat::from_fn(size, size, |i, j| sign * score[(i, j)]).as_ref(), &value)
}
