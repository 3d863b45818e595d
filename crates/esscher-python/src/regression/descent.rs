//! Stochastic gradient descent with fresh prompts, and the state from which it is resumed.

use super::predictors::{Predictor, PyRegressionLayer};
use super::simulation::instruction_set;
use super::tasks::PyTask;
use crate::arrays::{self, Reals};
use crate::failure::{OrRaise, choice};
use crate::numbers;
use crate::watch::watched;
use esscher_core::Error;
use esscher_core::regression::{
    Descent, DescentOptions, DescentRow, DescentState, DescentStop, Draws, Loss, Optimiser,
};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

/// How to descend, as a user says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Manner<'py> {
    optimiser: String,
    rate: f64,
    first_decay: f64,
    second_decay: f64,
    floor: f64,
    loss: String,
    draws: String,
    batch: Bound<'py, PyAny>,
    steps: Bound<'py, PyAny>,
    smoothing: f64,
    record: Bound<'py, PyAny>,
    seed: Bound<'py, PyAny>,
    instructions: Option<String>,
}

/// What is drawn of a prompt.
pub(super) fn draws(word: &str) -> PyResult<Draws> {
    choice("draws", word, &[("prompts", Draws::Prompts), ("projections", Draws::Projections)])
}

/// Numbers in all recorded rows: a gigabyte.
const MOST_NUMBERS: usize = 1 << 27;

impl Manner<'_> {
    fn options(&self, parameters: usize) -> PyResult<DescentOptions> {
        let &Manner { rate, first_decay, second_decay, floor, .. } = self;
        let sgd = Optimiser::Sgd { rate };
        let adam = Optimiser::Adam { rate, first_decay, second_decay, floor };
        let losses = [("half-mean-square", Loss::HalfMeanSquare), ("mean-square", Loss::MeanSquare)];
        let steps = Reals::read("record", &self.record)?;
        let steps = steps.vector()?;
        if steps.len().saturating_mul(parameters) > MOST_NUMBERS {
            return Err(PyValueError::new_err(format!(
                "record: {} rows of {parameters} parameters, at most {} rows are supported",
                steps.len(),
                MOST_NUMBERS / parameters.max(1)
            )));
        }
        let record = steps.iter().map(|&step| {
            if step.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&step) {
                return Ok(step as u32);
            }
            let message = format!("record: {step} is not a number of steps from 0 to {}", u32::MAX);
            Err(PyValueError::new_err(message))
        });
        Ok(DescentOptions {
            optimiser: choice("optimiser", &self.optimiser, &[("sgd", sgd), ("adam", adam)])?,
            loss: choice("loss", &self.loss, &losses)?,
            batch: numbers::count("batch", &self.batch, 1)?,
            draws: draws(&self.draws)?,
            steps: numbers::count("steps", &self.steps, 0)?,
            seed: numbers::seed(&self.seed)?,
            smoothing: self.smoothing,
            record: record.collect::<PyResult<_>>()?,
            instruction_set: instruction_set(self.instructions.as_deref())?,
        })
    }
}

/// Descends from a layer, or resumes from a state: the state reached, the layer there, and why it ended.
#[pyfunction]
pub(crate) fn descend<'py>(
    py: Python<'py>,
    task: &PyTask,
    predictor: &Bound<'py, PyAny>,
    prompt_length: &Bound<'py, PyAny>,
    attention: Option<&str>,
    manner: Manner<'py>,
    state: Option<&PyDescentState>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(PyDescentState, PyRegressionLayer, String)> {
    let (layer, projections) = Predictor::read("predictor", predictor)?.layer(attention)?;
    let length = arrays::length(prompt_length)?.get() as usize;
    let options = manner.options(layer.parameters().len())?;
    let descent = Descent::new(task.task.clone(), layer, length, options).or_raise()?;
    let start = state.map_or_else(|| descent.start(), |state| state.state.clone());
    let run = watched(py, progress, |watch| descent.run(start, watch))?;
    let run = task.exceptions.or_raise(run)?;
    let layer = PyRegressionLayer { layer: descent.layer(&run.state).or_raise()?, projections };
    Ok((PyDescentState { state: run.state }, layer, words(run.stop)))
}

/// Why a descent ended.
pub(super) fn words(stop: DescentStop) -> String {
    match stop {
        DescentStop::Finished => "finished".to_string(),
        DescentStop::Diverged { step, loss: Some(loss) } => {
            format!("diverged after {step} steps (loss {loss:e}): take a smaller rate")
        }
        DescentStop::Diverged { step, loss: None } => {
            format!("diverged after {step} steps: take a smaller rate")
        }
        DescentStop::Stopped { step } => format!("stopped after {step} steps"),
    }
}

/// Everything that the next step of a descent depends on, and what has been recorded: save it, and resume bit for bit.
///
/// >>> import pickle
/// >>> import esscher as es
/// >>> task = es.LinearTask(es.Rademacher(2))
/// >>> half = task.descend(es.RegressionLayer.at_random(2), prompt_length=10, steps=20)
/// >>> state = pickle.loads(pickle.dumps(half.state))
/// >>> resumed = task.descend(es.RegressionLayer.at_random(2), prompt_length=10, steps=40, state=state)
/// >>> whole = task.descend(es.RegressionLayer.at_random(2), prompt_length=10, steps=40)
/// >>> bool((resumed.state.parameters == whole.state.parameters).all())
/// True
#[pyclass(name = "DescentState", module = "esscher", frozen)]
pub(crate) struct PyDescentState {
    state: DescentState,
}

type Row<'py> = (u32, Option<f64>, Option<f64>, Bound<'py, PyAny>);

#[pymethods]
impl PyDescentState {
    #[new]
    fn new(
        step: &Bound<'_, PyAny>,
        parameters: &Bound<'_, PyAny>,
        first_moment: &Bound<'_, PyAny>,
        second_moment: &Bound<'_, PyAny>,
        smoothed_loss: Option<f64>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let parameters = arrays::owned_vector("parameters", parameters)?;
        let rows: Vec<Row<'_>> = numbers::list("rows", rows, |row| row.extract())?;
        let mut read = Vec::with_capacity(rows.len());
        for (step, smoothed_loss, balance, row) in rows {
            let row = arrays::owned_vector("rows", &row)?;
            if row.len() != parameters.len() {
                let error = Error::Size { what: "rows", expected: parameters.len(), found: row.len() };
                return Err(error).or_raise();
            }
            read.push(DescentRow { step, smoothed_loss, balance, parameters: row });
        }
        let second_moment = arrays::owned_vector("second_moment", second_moment)?;
        if let Some(&value) = second_moment.iter().find(|value| **value < 0.0) {
            let error =
                Error::OutOfRange { what: "second_moment", value, expected: "mean squares, at least 0" };
            return Err(error).or_raise();
        }
        Ok(PyDescentState {
            state: DescentState {
                step: numbers::count("step", step, 0)?,
                parameters,
                first_moment: arrays::owned_vector("first_moment", first_moment)?,
                second_moment,
                smoothed_loss,
                rows: read,
            },
        })
    }

    /// Steps taken.
    #[getter]
    fn step(&self) -> u32 {
        self.state.step
    }

    /// The parameters after them.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.state.parameters.clone())
    }

    /// Adam's mean of the gradient; empty for SGD.
    #[getter]
    fn first_moment<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.state.first_moment.clone())
    }

    /// Adam's mean of its square; empty for SGD.
    #[getter]
    fn second_moment<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.state.second_moment.clone())
    }

    /// The exponentially smoothed loss of the batches; None before the first.
    #[getter]
    fn smoothed_loss(&self) -> Option<f64> {
        self.state.smoothed_loss
    }

    /// The recorded rows: (step, smoothed loss, balance, parameters).
    #[getter]
    #[allow(clippy::type_complexity)]
    fn rows<'py>(&self, py: Python<'py>) -> Vec<(u32, Option<f64>, Option<f64>, Bound<'py, PyArray1<f64>>)> {
        let row = |row: &DescentRow| {
            (row.step, row.smoothed_loss, row.balance, arrays::vector(py, row.parameters.clone()))
        };
        self.state.rows.iter().map(row).collect()
    }

    fn __repr__(&self) -> String {
        format!("DescentState(step={}, parameters={})", self.state.step, self.state.parameters.len())
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<Py<PyTuple>> {
        let (py, own) = (slf.py(), slf.get());
        let moments = (own.first_moment(py), own.second_moment(py));
        let arguments =
            (own.step(), own.parameters(py), moments.0, moments.1, own.smoothed_loss(), own.rows(py));
        Ok((PyType::new::<Self>(py), arguments).into_pyobject(py)?.unbind())
    }
}
