//! The theory's task with full covariances: exact risks and flows of blocks, heads and layers.

use super::answers::{Answering, Attending, Estimated, response_asked, response_of};
use super::flow::{self, check_stiff};
use super::linear_attention::PyLinearAttentionTraining;
use super::predictors::{Predictor, PyBlock, PyRegressionLayer};
use super::spectral::PySpectralTask;
use super::tasks::PyTask;
use crate::prelude::*;
use crate::watch::{Watch, left_behind};
use esscher_core::Error;
use esscher_core::regression::tasks::LinearTask;
use esscher_core::regression::{
    Block, BlockLandscape, ContextLength, HeadGradient, Landscape, LayerLandscape, LinearAttention,
    LinearRegression, Method, PointAverage, RegressionHead, Response, RiskAverage, SpectralLandscape,
    SpectralTask, bayes_at_length_watched, infinite_risk, linear_risk, settle,
};
use std::sync::{Arc, Mutex, PoisonError};

export!(class PyGaussianTask);
export!(fn toeplitz, spiked);

/// Linear regression with Gaussian covariates.
#[pyclass(name = "GaussianTask", module = "esscher._native", extends = PyTask, frozen)]
pub(crate) struct PyGaussianTask {
    exact: Arc<Exact>,
}

/// What exact risks are computed from, shared with work that may be left behind.
struct Exact {
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

/// A landscape with a point of it, and what its parameters are: of a spectral task, of a layer, or else of a block.
struct Place {
    landscape: Box<dyn Landscape + Send>,
    start: Vec<f64>,
    spectral: Option<PySpectralTask>,
    layer: Option<PyRegressionLayer>,
}

impl Exact {
    fn average(&self, options: PointAverage) -> esscher_core::Result<Arc<RiskAverage>> {
        let kept = || self.points.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept() {
            Some((known, average)) if *known == options => return Ok(average.clone()),
            _ => {}
        }
        // Made without the lock: no other call waits for one that was left behind.
        let average = Arc::new(RiskAverage::new(&self.law, options)?);
        *kept() = Some((options, average.clone()));
        Ok(average)
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

    /// The landscape of a layer.
    fn place_of_layer(
        &self,
        layer: PyRegressionLayer,
        response: Response,
        options: PointAverage,
    ) -> esscher_core::Result<Place> {
        let average = self.average(options)?.as_ref().clone();
        let landscape = Box::new(LayerLandscape::new(average, response, &layer.layer)?);
        let start = layer.layer.parameters().to_vec();
        Ok(Place { landscape, start, spectral: None, layer: Some(layer) })
    }

    /// The landscape in the smallest form that holds a block.
    fn place_of_block(&self, block: &Block, response: Response) -> PyResult<Place> {
        let (expected, found) = (self.law.dimension(), block.matrix().nrows());
        if expected != found {
            return Err(Error::Size { what: "initial (dimension of the task)", expected, found }).or_raise();
        }
        if let Ok((task, vectors)) = SpectralTask::new(&self.law)
            && let Some(mut start) = task.entries_of(vectors.as_ref(), block)
        {
            start.push(block.gain());
            let landscape = Box::new(SpectralLandscape { task: task.clone(), response });
            let spectral = Some(PySpectralTask::of(task, Some(vectors))?);
            return Ok(Place { landscape, start, spectral, layer: None });
        }
        let landscape = Box::new(BlockLandscape { task: self.law.clone(), response });
        Ok(Place { landscape, start: BlockLandscape::parameters(block), spectral: None, layer: None })
    }
}

#[pymethods]
impl PyGaussianTask {
    #[new]
    fn new(asked: Asked<'_>) -> PyResult<PyClassInitializer<Self>> {
        let covariance = asked.matrix("covariance")?;
        arrays::check_dimension("covariance", covariance.nrows())?;
        let query_covariance = asked.maybe("query_covariance", Asked::matrix)?;
        let (noise, prior) = (asked.real("noise")?, asked.real("prior")?);
        let query_noise = asked.maybe("query_noise", Asked::real)?;
        let made = asked.left_behind(move |_| -> esscher_core::Result<_> {
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
        let (law, task) = made?.or_raise()?;
        let base = PyTask { task: Arc::new(task), exceptions: Default::default(), owners: Vec::new() };
        let exact = Arc::new(Exact { law, points: Mutex::default() });
        Ok(PyClassInitializer::from(base).add_subclass(PyGaussianTask { exact }))
    }

    /// The task by its eigenvalues.
    fn spectral(&self, py: Python<'_>) -> PyResult<PySpectralTask> {
        let exact = self.exact.clone();
        let (task, vectors) = left_behind(py, None, move |_| SpectralTask::new(&exact.law))?.or_raise()?;
        PySpectralTask::of(task, Some(vectors))
    }

    /// Linear attention trained on prompts of this length.
    fn linear_attention(&self, py: Python<'_>, asked: Asked<'_>) -> PyResult<PyLinearAttentionTraining> {
        let length = asked.context_length()?;
        let exact = self.exact.clone();
        let attention = asked.left_behind(move |_| LinearAttention::new(&exact.law, length))?.or_raise()?;
        let again = py.import("operator")?.getattr("methodcaller")?;
        let again = again.call1(("linear_attention", asked.get("prompt_length")?))?;
        let recipe = (again, (asked.get("self")?,)).into_pyobject(py)?.unbind();
        Ok(PyLinearAttentionTraining { attention, recipe })
    }

    /// The risk with its class and, for heads or if `gradient` is true, its gradient.
    fn risk<'py>(&self, py: Python<'py>, asked: Asked<'py>, gradient: bool) -> PyResult<Bound<'py, PyDict>> {
        let predictor = Predictor::read("predictor", &asked.get("predictor")?)?;
        let (attention, length) = (predictor.attending(&asked)?, asked.context_length()?);
        let (options, exact) = (point_average(&asked)?, self.exact.clone());
        let head = match predictor {
            Predictor::Block(block) => {
                let response = response_of(attention, length);
                if !gradient {
                    let found = asked.left_behind(move |_| block.risk(&exact.law, &response))?.or_raise()?;
                    return Ok(dictionary!(py, risk: Estimated::exactly(found)));
                }
                let work = move |_: &Watch| block.risk_and_gradient(&exact.law, &response);
                let found = asked.left_behind(work)?.or_raise()?;
                let (risk, matrix) = (Estimated::exactly(found.risk), Array::from(found.matrix));
                return Ok(dictionary!(py, risk: risk, matrix: matrix, gain: found.gain));
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
        let work = move |_: &Watch| exact.head_risk(&head, attention, length, options);
        let found = asked.left_behind(work)?.or_raise()?;
        let (score, value) = (Array::from(found.score), Array::from(found.value));
        Ok(dictionary!(py, risk: Estimated(found.risk), score: score, value: value,
                       gradient_error: found.gradient_error))
    }

    /// A gradient flow, in the smallest form that holds its start.
    fn flow<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Answering { attention, response, still } = response_asked(&asked)?;
        let (average, exact) = (point_average(&asked)?, self.exact.clone());
        let place = match Predictor::read("initial", &asked.get("initial")?)? {
            Predictor::Block(block) => {
                asked.left_behind(move |_| exact.place_of_block(&block, response))??
            }
            other => {
                // A pair of opposite heads is flowed as one head with the response of both.
                let layer = match (&other, attention) {
                    (Predictor::Head(_), Attending::OppositeHeads) => other.layer(Attending::Softmax)?,
                    _ => {
                        let attending = other.attending(&asked)?;
                        other.layer(attending)?
                    }
                };
                asked.left_behind(move |_| exact.place_of_layer(layer, response, average))?.or_raise()?
            }
        };
        let Place { landscape, start, spectral, layer } = place;
        let answer = flow::walked(py, &asked, &*landscape, &start, still, &Exceptions::default())?;
        answer.update(dictionary!(py, spectral: spectral, layer: layer).as_mapping())?;
        Ok(answer)
    }

    /// The stationary block next to a guess; None if Newton's method finds none.
    fn settle(&self, asked: Asked<'_>) -> PyResult<Option<PyBlock>> {
        let response = response_asked(&asked)?.response;
        let (guess, stationary) = (PyBlock::asked(&asked, "guess")?, asked.real("stationary")?);
        let (exact, response_of_place) = (self.exact.clone(), response.clone());
        let place = asked.left_behind(move |_| exact.place_of_block(&guess, response_of_place))??;
        let Place { landscape, start, spectral, .. } = place;
        check_stiff(Method::Stiff, start.len())?;
        let found = asked.left_behind(move |_| settle(&*landscape, &start, stationary))?.or_raise()?;
        let block = |point: Vec<f64>| match &spectral {
            Some(spectral) => {
                let (entries, gain) = point.split_at(point.len() - 1);
                spectral.block_of(entries, gain[0])
            }
            None => {
                let landscape = BlockLandscape { task: self.exact.law.clone(), response: response.clone() };
                Ok(PyBlock { block: landscape.block(&point).or_raise()? })
            }
        };
        found.map(block).transpose()
    }

    /// The risk of the posterior mean at a length.
    fn bayes_risk(&self, asked: Asked<'_>) -> PyResult<Estimated> {
        let (length, seed) = (asked.length("prompt_length")?, asked.seed()?);
        let prompts = asked.count("prompts", 1)?;
        let law = &self.exact.law;
        let found = asked.watched(|watch| bayes_at_length_watched(law, length, prompts, seed, watch))?;
        Estimated::mean("the risk of the posterior mean", &found.or_raise()?)
    }
}

getters! { PyGaussianTask, own:
    covariance: Array = own.exact.law.covariance().into();
    query_covariance: Array = own.exact.law.query_covariance().into();
    noise: f64 = own.exact.law.noise();
    query_noise: f64 = own.exact.law.query_noise();
    prior: f64 = own.exact.law.prior_scale();
    noise_floor: f64 = own.exact.law.noise_floor();
}

/// The Toeplitz covariance ρ^|i − j|.
///
/// >>> import esscher as es
/// >>> es.toeplitz(3, 0.5)
/// array([[1.  , 0.5 , 0.25],
///        [0.5 , 1.  , 0.5 ],
///        [0.25, 0.5 , 1.  ]])
#[pyfunction]
fn toeplitz(
    dimension: &Any<'_>,
    #[pyo3(from_py_with = numbers::argument::correlation)] correlation: f64,
) -> PyResult<Array> {
    Ok(LinearRegression::toeplitz(arrays::dimension(dimension)?, correlation).or_raise()?.into())
}

/// The spiked covariance I + strength · e eᵀ, e = (1, …, 1)/√d.
///
/// >>> import esscher as es
/// >>> es.spiked(2, 1.0)
/// array([[1.5, 0.5],
///        [0.5, 1.5]])
#[pyfunction]
fn spiked(
    dimension: &Any<'_>,
    #[pyo3(from_py_with = numbers::argument::strength)] strength: f64,
) -> PyResult<Array> {
    Ok(LinearRegression::spiked(arrays::dimension(dimension)?, strength).or_raise()?.into())
}
