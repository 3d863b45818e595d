//! The theory's task with full covariances: exact risks and flows of blocks, heads and layers.

use super::answers::{Attending, estimated, exactly, response_asked, response_of};
use super::flow::{self, check_stiff};
use super::linear_attention::PyLinearAttentionTraining;
use super::predictors::{Predictor, PyBlock, PyRegressionLayer};
use super::spectral::{PySpectralTask, check_groups};
use super::tasks::PyTask;
use crate::prelude::*;
use crate::watch::Watch;
use esscher_core::numerics::statistics::Summary;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::tasks::LinearTask;
use esscher_core::regression::{
    Block, BlockLandscape, ContextLength, HeadGradient, Landscape, LayerLandscape, LinearAttention,
    LinearRegression, Method, PointAverage, RegressionHead, Response, RiskAverage, SpectralLandscape,
    SpectralTask, bayes_at_length, infinite_risk, linear_risk, settle,
};
use esscher_core::{Error, Mat};
use pyo3::types::{PyFloat, PyInt};
use std::sync::{Arc, Mutex, PoisonError};

export!(class PyGaussianTask);
export!(fn toeplitz, spiked);

/// Linear regression with Gaussian covariates.
#[pyclass(name = "GaussianTask", module = "esscher._native", extends = PyTask, frozen)]
pub(crate) struct PyGaussianTask {
    law: LinearRegression,
    /// The points over (w, x_q) that were asked for last.
    points: Mutex<Option<(PointAverage, Arc<RiskAverage>)>>,
}

/// How finely to average over (w, x_q).
fn point_average(asked: &Asked<'_>) -> PyResult<PointAverage> {
    Ok(PointAverage {
        points: asked.count("points", 1)?,
        randomisations: asked.count("randomisations", 2)?,
        seed: asked.seed()?,
    })
}

/// Where a flow starts.
enum Start {
    /// The paper's initialisation with this α, or half of the proved bound.
    Scale(Option<f64>),
    Block(Block),
    Layer(PyRegressionLayer),
}

impl Start {
    fn read(asked: &Asked<'_>, attention: Attending) -> PyResult<Self> {
        let Some(value) = asked.given("initial")? else { return Ok(Start::Scale(None)) };
        if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            return Ok(Start::Scale(Some(value.extract()?)));
        }
        Ok(match Predictor::read("initial", &value)? {
            Predictor::Block(block) => Start::Block(block),
            // A pair of opposite heads is flowed as one head with the response of both.
            head @ Predictor::Head(_) if attention == Attending::OppositeHeads => {
                Start::Layer(head.layer(Attending::Softmax)?)
            }
            other => {
                let attending = other.attending(asked)?;
                Start::Layer(other.layer(attending)?)
            }
        })
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
    fn new(py: Python<'_>, asked: Asked<'_>) -> PyResult<PyClassInitializer<Self>> {
        let covariance = asked.matrix("covariance")?;
        arrays::check_dimension("covariance", covariance.nrows())?;
        let query_covariance = asked.maybe("query_covariance", Asked::matrix)?;
        let (noise, prior) = (asked.real("noise")?, asked.real("prior")?);
        let query_noise = asked.maybe("query_noise", Asked::real)?;
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
        let base = PyTask { task: Arc::new(task), exceptions: Default::default() };
        Ok(PyClassInitializer::from(base).add_subclass(PyGaussianTask { law, points: Mutex::default() }))
    }

    /// The task by its eigenvalues.
    fn spectral(&self, py: Python<'_>) -> PyResult<PySpectralTask> {
        let (task, vectors) = threads::detached(py, || SpectralTask::new(&self.law)).or_raise()?;
        PySpectralTask::of(task, Some(vectors))
    }

    /// Linear attention trained on prompts of this length.
    fn linear_attention(&self, py: Python<'_>, asked: Asked<'_>) -> PyResult<PyLinearAttentionTraining> {
        let length = asked.context_length()?;
        let attention = threads::detached(py, || LinearAttention::new(&self.law, length)).or_raise()?;
        Ok(PyLinearAttentionTraining { attention })
    }

    /// The risk with its class and, if `gradient` is true, its gradient.
    fn risk<'py>(&self, py: Python<'py>, asked: Asked<'py>, gradient: bool) -> PyResult<Bound<'py, PyDict>> {
        let predictor = Predictor::read("predictor", &asked.get("predictor")?)?;
        let (attention, length) = (predictor.attending(&asked)?, asked.context_length()?);
        let options = point_average(&asked)?;
        let head = match predictor {
            Predictor::Block(block) => {
                let response = response_of(attention, length);
                if !gradient {
                    let found = asked.watched(|_| block.risk(&self.law, &response))?.or_raise()?;
                    return Ok(dictionary!(py, risk: exactly(found)));
                }
                let found = asked.watched(|_| block.risk_and_gradient(&self.law, &response))?.or_raise()?;
                let matrix = Array::from(found.matrix);
                return Ok(dictionary!(py, risk: exactly(found.risk), matrix: matrix, gain: found.gain));
            }
            Predictor::Head(head) => head,
            Predictor::Layer(layer) => {
                let mut heads = layer.layer.effective_heads().or_raise()?;
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
        let found = asked.watched(|_| self.head_risk(&head, attention, length, options))?.or_raise()?;
        let risk = estimated(found.risk);
        if !gradient {
            return Ok(dictionary!(py, risk: risk));
        }
        let (score, value) = (Array::from(found.score), Array::from(found.value));
        let gradient_error = found.gradient_error;
        Ok(dictionary!(py, risk: risk, score: score, value: value, gradient_error: gradient_error))
    }

    /// A gradient flow, in the smallest form that holds its start.
    fn flow<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (attention, response) = response_asked(&asked)?;
        let start = Start::read(&asked, attention)?;
        let average = point_average(&asked)?;
        let place = asked.watched(|_| self.place(start, &response, average))?.or_raise()?;
        if let Form::Spectral(task, _) = &place.form {
            check_groups(task.groups().len())?;
        }
        let options = flow::options(&asked, &response, attention == Attending::Linear, place.start.len())?;
        let (landscape, start) = (place.landscape.as_ref(), &place.start);
        let walk = |watch: &Watch| esscher_core::regression::flow(landscape, start, &options, watch);
        let answer = flow::columns(py, &asked.watched(walk)?.or_raise()?)?;
        answer.set_item(
            "form",
            match place.form {
                Form::Spectral(task, vectors) => {
                    answer.set_item("spectral", PySpectralTask::of(task, Some(vectors))?)?;
                    "spectral"
                }
                Form::Block => "block",
                Form::Layer(layer) => {
                    answer.set_item("layer", layer)?;
                    "layer"
                }
            },
        )?;
        Ok(answer)
    }

    /// The stationary block next to a guess; None if Newton's method finds none.
    fn settle(&self, asked: Asked<'_>) -> PyResult<Option<PyBlock>> {
        let (_, response) = response_asked(&asked)?;
        let (start, stationary) = (Start::Block(PyBlock::asked(&asked, "guess")?), asked.real("stationary")?);
        let place = asked.watched(|_| self.place(start, &response, PointAverage::default()))?.or_raise()?;
        check_stiff(Method::Stiff, place.start.len())?;
        let found = asked.watched(|_| settle(place.landscape.as_ref(), &place.start, stationary))?;
        let Some(point) = found.or_raise()? else {
            return Ok(None);
        };
        let (entries, gain) = point.split_at(point.len() - 1);
        let block = match &place.form {
            Form::Spectral(task, vectors) => task.block(vectors.as_ref(), entries, gain[0]),
            _ => {
                let size = self.law.dimension();
                Block::new(Mat::from_fn(size, size, |i, j| entries[j * size + i]).as_ref(), gain[0])
            }
        };
        Ok(Some(PyBlock { block: block.or_raise()? }))
    }

    /// The risk of the posterior mean at a length.
    fn bayes_risk(&self, asked: Asked<'_>) -> PyResult<(f64, &'static str, f64)> {
        let (length, seed) = (asked.length("prompt_length")?, asked.seed()?);
        let trials = asked.count("prompts", 1)?;
        let found = asked.watched(|watch| self.bayes_in_parts(length, trials, seed, watch))?.or_raise()?;
        let mean =
            found.mean().ok_or(Error::Overflow { what: "the risk of the posterior mean" }).or_raise()?;
        Ok((mean, "sampled", found.standard_error().unwrap_or(f64::NAN)))
    }
}

getters! { PyGaussianTask, own:
    covariance: Array = own.law.covariance().into();
    query_covariance: Array = own.law.query_covariance().into();
    noise: f64 = own.law.noise();
    query_noise: f64 = own.law.query_noise();
    prior: f64 = own.law.prior_scale();
    noise_floor: f64 = own.law.noise_floor();
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
        watch: &Watch,
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

/// The Toeplitz covariance ρ^|i − j|.
///
/// >>> import esscher as es
/// >>> es.toeplitz(3, 0.5)
/// array([[1.  , 0.5 , 0.25],
///        [0.5 , 1.  , 0.5 ],
///        [0.25, 0.5 , 1.  ]])
#[pyfunction]
fn toeplitz(dimension: &Any<'_>, correlation: f64) -> PyResult<Array> {
    Ok(LinearRegression::toeplitz(arrays::dimension(dimension)?, correlation).or_raise()?.into())
}

/// The spiked covariance I + strength · e eᵀ, e = (1, …, 1)/√d.
///
/// >>> import esscher as es
/// >>> es.spiked(2, 1.0)
/// array([[1.5, 0.5],
///        [0.5, 1.5]])
#[pyfunction]
fn spiked(dimension: &Any<'_>, strength: f64) -> PyResult<Array> {
    Ok(LinearRegression::spiked(arrays::dimension(dimension)?, strength).or_raise()?.into())
}
