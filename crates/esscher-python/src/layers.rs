//! Gaussians through residual attention layers: single steps, stacks, and the continuous flow.

use crate::measures::{PyGaussian, gaussian_from};
use crate::prelude::*;
use crate::watch::by_size;
use esscher_core::layers::{AtCollapse, ExactFlow, FlowOptions, Layer, flow};
use esscher_core::measure::Gaussian;
use esscher_core::{Ending, Mat, MatRef};

export!(class PyLayer, PyExactFlow);
export!(fn depth, exact_softmax_flow);
compared!(PyLayer, PyExactFlow);

/// An attention layer on Rᵈ; `esscher.Layer` adds the flow.
#[pyclass(name = "Layer", module = "esscher._native", subclass, frozen)]
pub(crate) struct PyLayer {
    layer: Layer,
    kind: &'static Kind,
    /// As they were given, for pickling.
    matrices: Vec<Mat<f64>>,
}

/// A kind of attention: its name, its matrices, and what makes a layer of them.
struct Kind {
    name: &'static str,
    matrices: &'static [&'static str],
    make: fn(&[MatRef<'_, f64>]) -> esscher_core::Result<Layer>,
}

const SCORE: &[&str] = &["score", "value"];
const PROJECTIONS: &[&str] = &["query", "key", "value"];

static KINDS: [Kind; 4] = [
    Kind { name: "softmax", matrices: SCORE, make: |given| Layer::softmax(given[0], given[1]) },
    Kind { name: "linear", matrices: SCORE, make: |given| Layer::linear(given[0], given[1]) },
    Kind { name: "l2", matrices: PROJECTIONS, make: |given| Layer::l2(given[0], given[1], given[2]) },
    Kind {
        name: "sinkhorn",
        matrices: PROJECTIONS,
        make: |given| Layer::sinkhorn(given[0], given[1], given[2]),
    },
];

/// Numbers in the covariances of all laws of a flow or a stack: half a gigabyte, and as much again for their roots.
const MOST_NUMBERS: usize = 1 << 26;

/// Refuses more laws than there is room for.
fn check_laws(what: &str, laws: usize, dimension: usize) -> PyResult<()> {
    if laws.saturating_mul(dimension * dimension) <= MOST_NUMBERS {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{what}: {laws} laws in dimension {dimension} are too many to keep, at most {} are supported",
        MOST_NUMBERS / (dimension * dimension)
    )))
}

impl PyLayer {
    /// What the layer makes of a Gaussian; in a large dimension it may be left behind on Ctrl-C.
    fn at<T: Send + 'static>(
        &self,
        py: Python<'_>,
        tokens: &Any<'_>,
        answer: impl FnOnce(&Layer, &Gaussian) -> esscher_core::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (layer, tokens) = (self.layer.clone(), gaussian_from("tokens", tokens)?);
        by_size(py, layer.dimension().saturating_pow(2), move || answer(&layer, &tokens))?.or_raise()
    }
}

getters! { PyLayer, own:
    /// The dimension d of a token.
    dimension: usize = own.layer.dimension();
    /// Which attention: "softmax", "linear", "l2" or "sinkhorn".
    kind: &'static str = own.kind.name;
    /// V.
    value: Array = own.layer.value_matrix().into();
}

#[pymethods]
impl PyLayer {
    #[new]
    #[pyo3(signature = (kind, *matrices))]
    fn new(kind: &Any<'_>, matrices: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let kind =
            choice("kind", &numbers::text("kind", kind)?, &KINDS.each_ref().map(|kind| (kind.name, kind)))?;
        let (names, found) = (kind.matrices, matrices.len());
        if found != names.len() {
            let message = format!("expected the matrices {}, found {found} of them", names.join(", "));
            return Err(PyTypeError::new_err(message));
        }
        let read = |(what, matrix): (&&'static str, Any<'_>)| arrays::owned_matrix(what, &matrix);
        let matrices: Vec<_> = names.iter().zip(matrices.iter()).map(read).collect::<PyResult<_>>()?;
        let given: Vec<_> = matrices.iter().map(|matrix| matrix.as_ref()).collect();
        arrays::check_dimension("value", given[given.len() - 1].nrows())?;
        let layer = (kind.make)(&given);
        Ok(PyLayer { layer: layer.or_raise()?, kind, matrices })
    }

    /// The layer at a Gaussian, x ↦ b + Bx: the pair (b, B).
    fn affine_form(&self, py: Python<'_>, tokens: &Any<'_>) -> PyResult<(Array, Array)> {
        let form = self.at(py, tokens, Layer::affine_form)?;
        Ok((form.offset.into(), form.matrix.into()))
    }

    /// How mean and covariance move: (dm/dt, dS/dt) = (b + Bm, BS + SBᵀ).
    fn velocity(&self, py: Python<'_>, tokens: &Any<'_>) -> PyResult<(Array, Array)> {
        let velocity = self.at(py, tokens, Layer::velocity)?;
        Ok((velocity.mean.into(), velocity.covariance.into()))
    }

    /// One residual layer: the law of x + h T[μ](x), x ~ μ; exact for every step size h.
    ///
    /// >>> import esscher as es
    /// >>> es.Layer.softmax([[0.5]], [[1.0]]).step(es.Gaussian.standard(1)).covariance()
    /// array([[2.25]])
    #[pyo3(signature = (tokens, step_size = 1.0))]
    fn step(
        &self,
        py: Python<'_>,
        tokens: &Any<'_>,
        #[pyo3(from_py_with = numbers::argument::step_size)] step_size: f64,
    ) -> PyResult<Py<PyGaussian>> {
        PyGaussian::wrap(py, &self.at(py, tokens, move |layer, tokens| layer.step(tokens, step_size))?)
    }

    /// One layer without the residual connection: the law of T[μ](x), x ~ μ.
    fn push_forward(&self, py: Python<'_>, tokens: &Any<'_>) -> PyResult<Py<PyGaussian>> {
        PyGaussian::wrap(py, &self.at(py, tokens, Layer::push_forward)?)
    }

    /// The continuous flow: times, means, covariances, collapses, and how it ended.
    fn _flow<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let start = gaussian_from("start", &asked.get("start")?)?;
        let times = asked.vector("times")?;
        check_laws("times", times.len().saturating_add(1), self.layer.dimension())?;
        let options = FlowOptions {
            relative_tolerance: asked.real("relative_tolerance")?,
            absolute_tolerance: asked.real("absolute_tolerance")?,
            collapse_threshold: asked.real("collapse_threshold")?,
            at_collapse: asked
                .choice("at_collapse", &[("stop", AtCollapse::Stop), ("continue", AtCollapse::Continue)])?,
            max_steps: asked.count("max_steps", 1)? as usize,
            ..FlowOptions::at(&times)
        };
        let mut path = asked.watched(|watch| flow(&self.layer, &start, &options, watch))?.or_raise()?;
        // Where the flow ended early, its last step is a row too.
        if path.times.last().is_none_or(|time| *time < path.last_time) {
            path.times.push(path.last_time);
            path.laws.push(path.last_law);
        }
        let (mean, covariance) = moments(&path.laws, self.layer.dimension())?;
        Ok(dictionary!(py,
            time: Array::from(path.times),
            mean: mean,
            covariance: covariance,
            collapses: path.collapses.iter().map(|c| (c.time, c.rank, c.eigenvalue_ratio)).collect::<Vec<_>>(),
            // Remedies in the words of Python.
            stop: path.sentence.replace("AtCollapse::Continue", "at_collapse=\"continue\""),
            blow_up_time: (path.ending == Ending::BlownUp).then_some(path.ending_time),
            finished: path.ending == Ending::Completed,
            steps: path.steps))
    }

    fn __repr__(&self) -> String {
        format!("Layer({}, dimension={})", self.kind.name, self.layer.dimension())
    }

    /// A class of Python's made from this one keeps what it added.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let matrices = own.matrices.iter().map(|matrix| Array::from(matrix.as_ref()).into_pyobject(py));
        let matrices = matrices.map(|array| array.map(Bound::into_any)).collect::<PyResult<Vec<_>>>()?;
        let kind = own.kind.name.into_pyobject(py)?.into_any();
        let arguments = PyTuple::new(py, std::iter::once(kind).chain(matrices).collect::<Vec<_>>())?;
        let added = slf.getattr("__dict__").ok().filter(|added| added.is_truthy().unwrap_or(false));
        (slf.get_type(), arguments, added).into_pyobject(py)
    }
}

/// Means (laws, d) and covariances (laws, d, d).
fn moments(laws: &[Gaussian], dimension: usize) -> PyResult<(Array, Array)> {
    let mut means = room_for("the means", &[laws.len(), dimension])?;
    let mut covariances = room_for("the covariances", &[laws.len(), dimension, dimension])?;
    for law in laws {
        means.extend_from_slice(law.mean_vector());
        arrays::append_rows(law.covariance_matrix(), &mut covariances);
    }
    let shape = [laws.len(), dimension, dimension];
    Ok((Array::new(means, &shape[..2]), Array::new(covariances, shape)))
}

/// Layers between two looks for signals.
const LAYERS_PER_LOOK: usize = 16;

/// The law before the first layer and after each of them: means and covariances.
#[pyfunction]
fn depth<'py>(
    py: Python<'py>,
    start: &Any<'py>,
    layers: Vec<PyRef<'py, PyLayer>>,
    #[pyo3(from_py_with = numbers::argument::step_size)] step_size: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let start = gaussian_from("start", start)?;
    let dimension = start.mean_vector().len();
    check_laws("layers", layers.len().saturating_add(1), dimension)?;
    let mut laws = vec![start];
    for some in layers.chunks(LAYERS_PER_LOOK) {
        let some: Vec<Layer> = some.iter().map(|layer| layer.layer.clone()).collect();
        if let Some(tokens) = laws.pop() {
            let work = move || esscher_core::layers::depth(&tokens, &some, step_size);
            laws.extend(by_size(py, dimension.saturating_pow(2), work)?.or_raise()?);
        }
        py.check_signals()?;
    }
    let (mean, covariance) = moments(&laws, dimension)?;
    Ok(dictionary!(py, mean: mean, covariance: covariance))
}

/// The covariance of the softmax flow with V = I in closed form: S(t)⁻¹ = S(0)⁻¹ − t(U + Uᵀ).
///
/// >>> import esscher as es
/// >>> exact = es.exact_softmax_flow([[0.125]], es.Gaussian.centred([[4.0]]))
/// >>> exact.blow_up_time
/// 1.0
/// >>> exact.covariance(0.75).round(9)
/// array([[16.]])
#[pyclass(name = "ExactFlow", module = "esscher", frozen)]
pub(crate) struct PyExactFlow {
    exact: ExactFlow,
    /// What makes it again, for pickling: the function and its arguments.
    recipe: Py<PyTuple>,
}

getters! { PyExactFlow, own:
    /// 1/λ_max, or None if no direction grows.
    blow_up_time: Option<f64> = own.exact.blow_up_time();
    /// The rank of lim S(t) as t → ∞; None if the flow blows up first.
    limit_rank: Option<usize> = own.exact.limit_rank();
}

#[pymethods]
impl PyExactFlow {
    /// S(t), for t before the blow-up; t may be negative.
    fn covariance(&self, #[pyo3(from_py_with = numbers::argument::time)] time: f64) -> PyResult<Array> {
        Ok(self.exact.covariance(time).or_raise()?.into())
    }

    fn __reduce__(&self, py: Python<'_>) -> Py<PyTuple> {
        self.recipe.clone_ref(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.recipe)
    }

    fn __repr__(&self) -> String {
        match self.exact.blow_up_time() {
            Some(time) => format!("ExactFlow(blow_up_time={time})"),
            None => format!("ExactFlow(limit_rank={})", self.exact.limit_rank().unwrap_or(0)),
        }
    }
}

/// The exact covariance flow of softmax attention with V = I and score matrix U from N(m, S(0)).
#[pyfunction]
fn exact_softmax_flow(py: Python<'_>, score: &Any<'_>, start: &Any<'_>) -> PyResult<PyExactFlow> {
    let (score, start) = (arrays::owned_matrix("score", score)?, gaussian_from("start", start)?);
    let numbers = score.nrows().saturating_mul(score.ncols());
    let work = move || (esscher_core::layers::exact_softmax_flow(score.as_ref(), &start), score, start);
    let (exact, score, start) = by_size(py, numbers, work)?;
    let exact = exact.or_raise()?;
    let maker = py.import("esscher._native")?.getattr("exact_softmax_flow")?;
    let recipe = (maker, (Array::from(score), PyGaussian::wrap(py, &start)?)).into_pyobject(py)?.unbind();
    Ok(PyExactFlow { exact, recipe })
}
