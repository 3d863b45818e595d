//! The theory's task with full covariances: exact risks and flows of blocks, heads and layers.

use super::answers::{Attending, attending, context_length, response_of};
use super::flow::{Wishes, check_stiff, columns};
use super::linear_attention::PyLinearAttentionTraining;
use super::predictors::{Predictor, PyBlock, PyRegressionLayer};
use super::spectral::{PySpectralTask, check_groups};
use super::tasks::PyTask;
use crate::arrays;
use crate::failure::OrRaise;
use crate::numbers;
use crate::threads;
use crate::watch::watched;
use esscher_core::numerics::statistics::Summary;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::tasks::LinearTask;
use esscher_core::regression::{
    Block, BlockLandscape, ContextLength, HeadGradient, Landscape, LayerLandscape, LinearAttention,
    LinearRegression, Method, PointAverage, RegressionHead, Response, RiskAverage, SpectralLandscape,
    SpectralTask, bayes_at_length, flow, infinite_risk, linear_risk, settle,
};
use esscher_core::{Accuracy, Error, Estimate, Mat};
use numpy::PyArrayDyn;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};
use std::sync::{Arc, Mutex, PoisonError};

/// Linear regression with Gaussian covariates.
#[pyclass(name = "GaussianTask", module = "esscher._native", extends = PyTask, frozen)]
pub(crate) struct PyGaussianTask {
    law: LinearRegression,
    /// The points over (w, x_q) that were asked for last.
    points: Mutex<Option<(PointAverage, Arc<RiskAverage>)>>,
}

/// How finely to average over (w, x_q).
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Points<'py> {
    points: Bound<'py, PyAny>,
    randomisations: Bound<'py, PyAny>,
    seed: Bound<'py, PyAny>,
}

impl Points<'_> {
    fn average(&self) -> PyResult<PointAverage> {
        Ok(PointAverage {
            points: numbers::count("points", &self.points, 1)?,
            randomisations: numbers::count("randomisations", &self.randomisations, 2)?,
            seed: numbers::seed(&self.seed)?,
        })
    }
}

/// Where a flow starts.
enum Start {
    /// The paper's initialisation with this α, or half of the proved bound.
    Scale(Option<f64>),
    Block(Block),
    Layer(PyRegressionLayer),
}

impl Start {
    fn read(initial: Option<&Bound<'_, PyAny>>, attention: &str) -> PyResult<Self> {
        match initial {
            None => Ok(Start::Scale(None)),
            Some(value) if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() => {
                Ok(Start::Scale(Some(value.extract()?)))
            }
            Some(value) => match Predictor::read("initial", value)? {
                Predictor::Block(block) => Ok(Start::Block(block)),
                // A pair of opposite heads is flowed as one head with the response of both.
                Predictor::Head(head) if attention == "opposite-heads" => {
                    let (layer, projections) = Predictor::Head(head).layer(None)?;
                    Ok(Start::Layer(PyRegressionLayer { layer, projections }))
                }
                other => {
                    let (layer, projections) = other.layer(Some(attention))?;
                    Ok(Start::Layer(PyRegressionLayer { layer, projections }))
                }
            },
        }
    }
}

/// A landscape with a point of it, and how parameters are read.
struct Place {
    landscape: Box<dyn Landscape + Send>,
    start: Vec<f64>,
    form: Form,
}

enum Form {
    Spectral(SpectralTask, Mat<f64>),
    Block,
    Layer(PyRegressionLayer),
}

impl PyGaussianTask {
    fn average(&self, options: PointAverage) -> esscher_core::Result<Arc<RiskAverage>> {
        let mut kept = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((known, average)) if *known == options => Ok(average.clone()),
            _ => {
                let average = Arc::new(RiskAverage::new(&self.law, options)?);
                *kept = Some((options, average.clone()));
                Ok(average)
            }
        }
    }

    fn head_risk(
        &self,
        head: &RegressionHead,
        attention: Attending,
        length: ContextLength,
        options: PointAverage,
    ) -> esscher_core::Result<HeadGradient> {
        match (attention, length) {
            (_, ContextLength::Infinite) => infinite_risk(head, &self.law),
            (Attending::Linear, ContextLength::Finite(length)) => linear_risk(head, &self.law, length),
            _ => self.average(options)?.evaluate(head, &response_of(attention, length)),
        }
    }

    /// The landscape in the smallest form that holds the start.
    fn place(&self, start: Start, response: &Response, options: PointAverage) -> esscher_core::Result<Place> {
        let (task, response) = (self.law.clone(), response.clone());
        let block = match start {
            Start::Layer(layer) => {
                let average = self.average(options)?.as_ref().clone();
                let landscape = LayerLandscape::new(average, response, &layer.layer)?;
                let start = layer.layer.parameters().to_vec();
                return Ok(Place { landscape: Box::new(landscape), start, form: Form::Layer(layer) });
            }
            Start::Scale(scale) => {
                let scale = match scale {
                    Some(scale) => scale,
                    None => {
                        let attention = LinearAttention::new(&self.law, ContextLength::Infinite)?;
                        0.5 * attention.initial_scale(1.0)?.paper_bound
                    }
                };
                let dimension = self.law.dimension();
                let identity = Mat::from_fn(dimension, dimension, |i, j| f64::from(u8::from(i == j)));
                Block::initial(identity.as_ref(), scale)?
            }
            Start::Block(block) => {
                let (expected, found) = (self.law.dimension(), block.matrix().nrows());
                if expected != found {
                    return Err(Error::Size { what: "initial (dimension of the task)", expected, found });
                }
                block
            }
        };
        if let Ok((spectral, vectors)) = SpectralTask::new(&self.law)
            && let Some(mut start) = spectral.entries_of(vectors.as_ref(), &block)
        {
            start.push(block.gain());
            let landscape = SpectralLandscape { task: spectral.clone(), response };
            return Ok(Place {
                landscape: Box::new(landscape),
                start,
                form: Form::Spectral(spectral, vectors),
            });
        }
        let start = BlockLandscape::parameters(&block);
        Ok(Place { landscape: Box::new(BlockLandscape { task, response }), start, form: Form::Block })
    }
}

#[pymethods]
impl PyGaussianTask {
    #[new]
    fn new(
        py: Python<'_>,
        covariance: &Bound<'_, PyAny>,
        noise: f64,
        prior: f64,
        query_covariance: Option<&Bound<'_, PyAny>>,
        query_noise: Option<f64>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let covariance = arrays::owned_matrix("covariance", covariance)?;
        arrays::check_dimension("covariance", covariance.nrows())?;
        let query_covariance =
            query_covariance.map(|query| arrays::owned_matrix("query_covariance", query)).transpose()?;
        let made = threads::detached(py, || -> esscher_core::Result<_> {
            let mut law = LinearRegression::new(covariance.as_ref())?.with_noise(noise)?.with_prior(prior)?;
            if let Some(query) = &query_covariance {
                law = law.with_query_covariance(query.as_ref())?;
            }
            if let Some(variance) = query_noise {
                law = law.with_query_noise(variance)?;
            }
            let task = LinearTask::gaussian(&law)?;
            Ok((law, task))
        });
        let (law, task) = made.or_raise()?;
        let base = PyTask::of(Arc::new(task), Default::default());
        Ok(PyClassInitializer::from(base).add_subclass(PyGaussianTask { law, points: Mutex::default() }))
    }

    #[getter]
    fn covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.law.covariance())
    }

    #[getter]
    fn query_covariance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        arrays::matrix(py, self.law.query_covariance())
    }

    #[getter]
    fn noise(&self) -> f64 {
        self.law.noise()
    }

    #[getter]
    fn query_noise(&self) -> f64 {
        self.law.query_noise()
    }

    #[getter]
    fn prior(&self) -> f64 {
        self.law.prior_scale()
    }

    #[getter]
    fn noise_floor(&self) -> f64 {
        self.law.noise_floor()
    }

    /// The task by its eigenvalues.
    fn spectral(&self, py: Python<'_>) -> PyResult<PySpectralTask> {
        let (task, vectors) = threads::detached(py, || SpectralTask::new(&self.law)).or_raise()?;
        PySpectralTask::of(task, Some(vectors))
    }

    /// Linear attention trained on prompts of this length.
    fn linear_attention(
        &self,
        py: Python<'_>,
        prompt_length: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyLinearAttentionTraining> {
        let length = context_length(prompt_length)?;
        let attention = threads::detached(py, || LinearAttention::new(&self.law, length)).or_raise()?;
        Ok(PyLinearAttentionTraining { attention })
    }

    /// The risk with its class and, if asked for, its gradient.
    fn risk<'py>(
        &self,
        py: Python<'py>,
        predictor: &Bound<'py, PyAny>,
        prompt_length: Option<&Bound<'py, PyAny>>,
        attention: Option<&str>,
        gradient: bool,
        points: Points<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let predictor = Predictor::read("predictor", predictor)?;
        let (attention, length) = (predictor.attending(attention)?, context_length(prompt_length)?);
        let options = points.average()?;
        let answer = PyDict::new(py);
        let head = match predictor {
            Predictor::Block(block) => {
                let response = response_of(attention, length);
                if gradient {
                    let work = |_: &crate::watch::Watch| block.risk_and_gradient(&self.law, &response);
                    let found = watched(py, None, work)?.or_raise()?;
                    exact_risk(&answer, found.risk)?;
                    answer.set_item("matrix", arrays::matrix(py, found.matrix.as_ref())?)?;
                    answer.set_item("gain", found.gain)?;
                } else {
                    let found = watched(py, None, |_| block.risk(&self.law, &response))?.or_raise()?;
                    exact_risk(&answer, found)?;
                }
                return Ok(answer);
            }
            Predictor::Head(head) => head,
            Predictor::Layer { layer, .. } => {
                let mut heads = layer.effective_heads().or_raise()?;
                match (heads.pop(), heads.is_empty()) {
                    (Some(head), true) => head,
                    _ => {
                        let message = "predictor: several heads share their prompt and have no exact risk; \
                                       use simulate_risk";
                        return Err(PyTypeError::new_err(message));
                    }
                }
            }
        };
        let found = watched(py, None, |_| self.head_risk(&head, attention, length, options))?.or_raise()?;
        estimated_risk(&answer, found.risk)?;
        if gradient {
            answer.set_item("score", arrays::matrix(py, found.score.as_ref())?)?;
            answer.set_item("value", arrays::vector(py, found.value))?;
            answer.set_item("gradient_error", found.gradient_error)?;
        }
        Ok(answer)
    }

    /// A gradient flow, in the smallest form that holds its start.
    fn flow<'py>(
        &self,
        py: Python<'py>,
        initial: Option<&Bound<'py, PyAny>>,
        prompt_length: Option<&Bound<'py, PyAny>>,
        attention: &str,
        wishes: Wishes<'py>,
        points: Points<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let attending = attending(attention)?;
        let start = Start::read(initial, attention)?;
        let response = response_of(attending, context_length(prompt_length)?);
        let average = points.average()?;
        let place = watched(py, None, |_| self.place(start, &response, average))?.or_raise()?;
        if let Form::Spectral(task, _) = &place.form {
            check_groups(task.groups().len())?;
        }
        let options = wishes.options(&response, attending == Attending::Linear, place.start.len())?;
        let work =
            |watch: &crate::watch::Watch| flow(place.landscape.as_ref(), &place.start, &options, watch);
        let found = watched(py, progress, work)?.or_raise()?;
        let answer = columns(py, &found)?;
        match place.form {
            Form::Spectral(task, vectors) => {
                answer.set_item("form", "spectral")?;
                answer.set_item("spectral", Py::new(py, PySpectralTask::of(task, Some(vectors))?)?)?;
            }
            Form::Block => answer.set_item("form", "block")?,
            Form::Layer(layer) => {
                answer.set_item("form", "layer")?;
                answer.set_item("layer", Py::new(py, layer)?)?;
            }
        }
        Ok(answer)
    }

    /// The stationary block next to a guess; None if Newton's method finds none.
    fn settle(
        &self,
        py: Python<'_>,
        guess: &PyBlock,
        prompt_length: Option<&Bound<'_, PyAny>>,
        attention: &str,
        stationary: f64,
    ) -> PyResult<Option<PyBlock>> {
        let response = response_of(attending(attention)?, context_length(prompt_length)?);
        let start = Start::Block(guess.block.clone());
        let place =
            watched(py, None, |_| self.place(start, &response, PointAverage::default()))?.or_raise()?;
        check_stiff(Method::Stiff, place.start.len())?;
        let work = |_: &crate::watch::Watch| settle(place.landscape.as_ref(), &place.start, stationary);
        let Some(point) = watched(py, None, work)?.or_raise()? else {
            return Ok(None);
        };
        let block = match &place.form {
            Form::Spectral(task, vectors) => {
                let (entries, gain) = point.split_at(task.groups().len());
                task.block(vectors.as_ref(), entries, gain[0])
            }
            _ => {
                let (matrix, gain) = point.split_at(point.len() - 1);
                let size = self.law.dimension();
                Block::new(Mat::from_fn(size, size, |i, j| matrix[j * size + i]).as_ref(), gain[0])
            }
        };
        Ok(Some(PyBlock { block: block.or_raise()? }))
    }

    /// The risk of the posterior mean at a length: mean, standard error, number of trials.
    fn bayes_risk(
        &self,
        py: Python<'_>,
        prompt_length: &Bound<'_, PyAny>,
        prompts: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(f64, Option<f64>, u64)> {
        let (length, seed) = (arrays::length(prompt_length)?, numbers::seed(seed)?);
        let trials = numbers::count("prompts", prompts, 1)?;
        let found =
            watched(py, progress, |watch| self.bayes_in_parts(length, trials, seed, watch))?.or_raise()?;
        let mean =
            found.mean().ok_or(Error::Overflow { what: "the risk of the posterior mean" }).or_raise()?;
        Ok((mean, found.standard_error(), found.count()))
    }
}

/// Trials between two looks for a stop, times the cube of the dimension.
const WORK_PER_PART: usize = 1 << 28;

impl PyGaussianTask {
    /// Parts of fixed size, each with a seed of its own, so that a call can be stopped between them.
    fn bayes_in_parts(
        &self,
        length: PromptLength,
        trials: u32,
        seed: u64,
        watch: &crate::watch::Watch,
    ) -> esscher_core::Result<Summary> {
        use esscher_core::Monitor;
        let cube = self.law.dimension().pow(3).max(1);
        let part = (WORK_PER_PART / cube).clamp(16, 1 << 16) as u32;
        let mut total = Summary::new();
        for (index, first) in (0..trials).step_by(part as usize).enumerate() {
            if watch.should_stop() {
                break;
            }
            // The first part has the seed itself; an odd multiplier keeps the others apart.
            let seed = seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            total.merge(&bayes_at_length(&self.law, length, part.min(trials - first), seed)?);
            watch.progress((first + part.min(trials - first)) as usize, trials as usize);
        }
        Ok(total)
    }
}

/// The relative error of risks of blocks, as the library states it.
const BLOCK_TOLERANCE: f64 = 1e-9;

fn exact_risk(answer: &Bound<'_, PyDict>, value: f64) -> PyResult<()> {
    estimated_risk(answer, Estimate { value, accuracy: Accuracy::Exact { tolerance: BLOCK_TOLERANCE } })
}

fn estimated_risk(answer: &Bound<'_, PyDict>, risk: Estimate) -> PyResult<()> {
    let class = match risk.accuracy {
        Accuracy::Exact { .. } => "exact",
        Accuracy::QuasiMonteCarlo { .. } => "quasi-monte-carlo",
        Accuracy::Sampled { .. } => "sampled",
    };
    answer.set_item("risk", risk.value)?;
    answer.set_item("accuracy", class)?;
    answer.set_item("error", risk.absolute_error())
}

/// The Toeplitz covariance ρ^|i − j|.
#[pyfunction]
pub(crate) fn toeplitz<'py>(
    py: Python<'py>,
    dimension: &Bound<'_, PyAny>,
    correlation: f64,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let matrix = LinearRegression::toeplitz(arrays::dimension(dimension)?, correlation).or_raise()?;
    arrays::matrix(py, matrix.as_ref())
}

/// The spiked covariance I + strength · e eᵀ, e = (1, …, 1)/√d.
#[pyfunction]
pub(crate) fn spiked<'py>(
    py: Python<'py>,
    dimension: &Bound<'_, PyAny>,
    strength: f64,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let matrix = LinearRegression::spiked(arrays::dimension(dimension)?, strength).or_raise()?;
    arrays::matrix(py, matrix.as_ref())
}
