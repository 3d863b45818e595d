//! Gaussians through residual attention layers: single steps, stacks, and the continuous flow.

use crate::arrays::{self, Reals};
use crate::failure::{OrRaise, choice, room_for};
use crate::measures::{PyGaussian, gaussian_from};
use crate::numbers;
use crate::threads;
use crate::watch::watched;
use esscher_core::layers::{AtCollapse, ExactFlow, FlowOptions, FlowStop, Layer, flow};
use esscher_core::measure::Gaussian;
use numpy::{PyArray1, PyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An attention layer on Rᵈ.
#[pyclass(name = "Layer", module = "esscher._native", frozen)]
pub(crate) struct PyLayer {
    layer: Layer,
}

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

/// How to flow, as a user says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wishes<'py> {
    times: Bound<'py, PyAny>,
    relative_tolerance: f64,
    absolute_tolerance: f64,
    collapse_threshold: f64,
    at_collapse: String,
    max_steps: Bound<'py, PyAny>,
}

#[pymethods]
impl PyLayer {
    #[staticmethod]
    fn softmax(score: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (score, value) = (Reals::read("score", score)?, value_matrix(value)?);
        Ok(PyLayer { layer: Layer::softmax(score.matrix()?, value.matrix()?).or_raise()? })
    }

    #[staticmethod]
    fn linear(score: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (score, value) = (Reals::read("score", score)?, value_matrix(value)?);
        Ok(PyLayer { layer: Layer::linear(score.matrix()?, value.matrix()?).or_raise()? })
    }

    #[staticmethod]
    fn l2(query: &Bound<'_, PyAny>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (query, key) = (Reals::read("query", query)?, Reals::read("key", key)?);
        let value = value_matrix(value)?;
        Ok(PyLayer { layer: Layer::l2(query.matrix()?, key.matrix()?, value.matrix()?).or_raise()? })
    }

    #[staticmethod]
    fn sinkhorn(
        query: &Bound<'_, PyAny>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (query, key) = (Reals::read("query", query)?, Reals::read("key", key)?);
        let value = value_matrix(value)?;
        Ok(PyLayer { layer: Layer::sinkhorn(query.matrix()?, key.matrix()?, value.matrix()?).or_raise()? })
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.layer.dimension()
    }

    #[getter]
    fn kind(&self) -> String {
        self.layer.kind().to_string()
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.layer.value_matrix())
    }

    /// (b, B) of the layer at a Gaussian.
    #[allow(clippy::type_complexity)]
    fn affine_form<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArrayDyn<f64>>)> {
        let tokens = gaussian_from("tokens", tokens)?;
        let form = threads::detached(py, || self.layer.affine_form(&tokens)).or_raise()?;
        Ok((arrays::vector(py, form.offset), arrays::matrix(py, form.matrix.as_ref())?))
    }

    /// (dm/dt, dS/dt) at a Gaussian.
    #[allow(clippy::type_complexity)]
    fn velocity<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArrayDyn<f64>>)> {
        let tokens = gaussian_from("tokens", tokens)?;
        let velocity = threads::detached(py, || self.layer.velocity(&tokens)).or_raise()?;
        Ok((arrays::vector(py, velocity.mean), arrays::matrix(py, velocity.covariance.as_ref())?))
    }

    fn step(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>, step_size: f64) -> PyResult<Py<PyGaussian>> {
        let tokens = gaussian_from("tokens", tokens)?;
        PyGaussian::wrap(py, &threads::detached(py, || self.layer.step(&tokens, step_size)).or_raise()?)
    }

    fn push_forward(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<Py<PyGaussian>> {
        let tokens = gaussian_from("tokens", tokens)?;
        PyGaussian::wrap(py, &threads::detached(py, || self.layer.push_forward(&tokens)).or_raise()?)
    }

    /// The continuous flow: times, means, covariances, collapses, and how it ended.
    fn flow<'py>(
        &self,
        py: Python<'py>,
        start: &Bound<'py, PyAny>,
        wishes: Wishes<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let start = gaussian_from("start", start)?;
        let times = arrays::owned_vector("times", &wishes.times)?;
        check_laws("times", times.len().saturating_add(1), self.layer.dimension())?;
        let options = FlowOptions {
            relative_tolerance: wishes.relative_tolerance,
            absolute_tolerance: wishes.absolute_tolerance,
            collapse_threshold: wishes.collapse_threshold,
            at_collapse: choice(
                "at_collapse",
                &wishes.at_collapse,
                &[("stop", AtCollapse::Stop), ("continue", AtCollapse::Continue)],
            )?,
            max_steps: numbers::count("max_steps", &wishes.max_steps, 1)? as usize,
            ..FlowOptions::at(&times)
        };
        let mut path =
            watched(py, progress, |watch| flow(&self.layer, &start, &options, watch))?.or_raise()?;
        // Where the flow ended early, its last step is a row too.
        if path.times.last().is_none_or(|time| *time < path.last_time) {
            path.times.push(path.last_time);
            path.laws.push(path.last_law);
        }
        let answer = PyDict::new(py);
        answer.set_item("time", arrays::vector(py, path.times))?;
        write_laws(py, &answer, &path.laws, self.layer.dimension())?;
        let collapses: Vec<(f64, usize, f64)> =
            path.collapses.iter().map(|c| (c.time, c.rank, c.eigenvalue_ratio)).collect();
        answer.set_item("collapses", collapses)?;
        answer.set_item("stop", words(&path.stop))?;
        answer.set_item(
            "blow_up_time",
            match path.stop {
                FlowStop::BlowUp { time, .. } => Some(time),
                _ => None,
            },
        )?;
        answer.set_item("finished", matches!(path.stop, FlowStop::ReachedTime { .. }))?;
        answer.set_item("steps", path.steps)?;
        Ok(answer)
    }
}

/// How a flow ended, with remedies in the words of Python.
fn words(stop: &FlowStop) -> String {
    stop.to_string().replace("AtCollapse::Continue", "at_collapse=\"continue\"")
}

fn value_matrix<'py>(value: &Bound<'py, PyAny>) -> PyResult<Reals<'py>> {
    let value = Reals::read("value", value)?;
    arrays::check_dimension("value", value.matrix()?.nrows())?;
    Ok(value)
}

/// Means (laws, d) and covariances (laws, d, d).
fn write_laws(
    py: Python<'_>,
    answer: &Bound<'_, PyDict>,
    laws: &[Gaussian],
    dimension: usize,
) -> PyResult<()> {
    let mut means = room_for("the means", &[laws.len(), dimension])?;
    let mut covariances = room_for("the covariances", &[laws.len(), dimension, dimension])?;
    for law in laws {
        means.extend_from_slice(law.mean_vector());
        arrays::append_rows(law.covariance_matrix(), &mut covariances);
    }
    answer.set_item("mean", arrays::array(py, means, &[laws.len(), dimension])?)?;
    answer.set_item("covariance", arrays::array(py, covariances, &[laws.len(), dimension, dimension])?)
}

/// Layers between two looks for signals.
const LAYERS_PER_LOOK: usize = 16;

/// The law before the first layer and after each of them: means and covariances.
#[pyfunction]
pub(crate) fn depth<'py>(
    py: Python<'py>,
    start: &Bound<'py, PyAny>,
    layers: Vec<PyRef<'py, PyLayer>>,
    step_size: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let start = gaussian_from("start", start)?;
    let dimension = start.mean_vector().len();
    check_laws("layers", layers.len().saturating_add(1), dimension)?;
    let mut laws = vec![start];
    for some in layers.chunks(LAYERS_PER_LOOK) {
        let some: Vec<Layer> = some.iter().map(|layer| layer.layer.clone()).collect();
        if let Some(tokens) = laws.pop() {
            laws.extend(
                threads::detached(py, || esscher_core::layers::depth(&tokens, &some, step_size))
                    .or_raise()?,
            );
        }
        py.check_signals()?;
    }
    let answer = PyDict::new(py);
    write_laws(py, &answer, &laws, dimension)?;
    Ok(answer)
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
}

#[pymethods]
impl PyExactFlow {
    /// 1/λ_max, or None if no direction grows.
    #[getter]
    fn blow_up_time(&self) -> Option<f64> {
        self.exact.blow_up_time()
    }

    /// The rank of lim S(t) as t → ∞; None if the flow blows up first.
    #[getter]
    fn limit_rank(&self) -> Option<usize> {
        self.exact.limit_rank()
    }

    /// S(t), for t before the blow-up; t may be negative.
    fn covariance<'py>(&self, py: Python<'py>, time: f64) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.exact.covariance(time).or_raise()?.as_ref())
    }

    fn __repr__(&self) -> String {
        match self.blow_up_time() {
            Some(time) => format!("ExactFlow(blow_up_time={time})"),
            None => format!("ExactFlow(limit_rank={})", self.limit_rank().unwrap_or(0)),
        }
    }
}

/// The exact covariance flow of softmax attention with V = I and score matrix U from N(m, S(0)).
#[pyfunction]
pub(crate) fn exact_softmax_flow(
    py: Python<'_>,
    score: &Bound<'_, PyAny>,
    start: &Bound<'_, PyAny>,
) -> PyResult<PyExactFlow> {
    let (score, start) = (arrays::owned_matrix("score", score)?, gaussian_from("start", start)?);
    let exact = threads::detached(py, || esscher_core::layers::exact_softmax_flow(score.as_ref(), &start))
        .or_raise()?;
    Ok(PyExactFlow { exact })
}
