//! Stochastic gradient descent with fresh prompts, and the state from which it is resumed.

use super::predictors::{Predictor, PyRegressionLayer};
use super::tasks::PyTask;
use crate::prelude::*;
use esscher_core::regression::{
    Descent, DescentEnd, DescentOptions, DescentRow, DescentState, Draws, Loss, Optimiser,
};
use esscher_core::{Ending, Error};

export!(class PyDescentState);
compared!(PyDescentState);

/// The words for what is drawn of a prompt.
pub(super) const DRAWS: [(&str, Draws); 2] =
    [("prompts", Draws::Prompts), ("projections", Draws::Projections)];

/// Numbers in all recorded rows: a gigabyte.
const MOST_NUMBERS: usize = 1 << 27;

fn options(asked: &Asked<'_>, parameters: usize) -> PyResult<DescentOptions> {
    let (rate, floor) = (asked.real("rate")?, asked.real("floor")?);
    let (first_decay, second_decay) = (asked.real("first_decay")?, asked.real("second_decay")?);
    let sgd = Optimiser::Sgd { rate };
    let adam = Optimiser::Adam { rate, first_decay, second_decay, floor };
    let losses = [("half-mean-square", Loss::HalfMeanSquare), ("mean-square", Loss::MeanSquare)];
    let steps = asked.vector("record")?;
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
        optimiser: asked.choice("optimiser", &[("sgd", sgd), ("adam", adam)])?,
        loss: asked.choice("loss", &losses)?,
        batch: asked.count("batch", 1)?,
        draws: asked.choice("draws", &DRAWS)?,
        steps: asked.count("steps", 0)?,
        seed: asked.seed()?,
        smoothing: asked.real("smoothing")?,
        record: record.collect::<PyResult<_>>()?,
        instruction_set: asked.instruction_set()?,
    })
}

#[pymethods]
impl PyTask {
    /// Descends from a layer, or resumes from a state: the state reached, the layer there, and why it ended.
    fn descend(&self, asked: Asked<'_>) -> PyResult<(PyDescentState, PyRegressionLayer, String)> {
        let PyRegressionLayer { layer, projections } = Predictor::layer_asked(&asked)?;
        let length = asked.length("prompt_length")?.get() as usize;
        let options = options(&asked, layer.parameters().len())?;
        let descent = Descent::new(self.task.clone(), layer, length, options).or_raise()?;
        let start = match asked.given("state")? {
            Some(state) => match state.cast::<PyDescentState>() {
                Ok(state) => state.get().state.clone(),
                Err(_) => return Err(numbers::wrong_type("state", "a DescentState", &state)),
            },
            None => descent.start(),
        };
        let run = self.exceptions.watched(&asked, |watch| descent.run(start, watch))?;
        let layer = PyRegressionLayer { layer: descent.layer(&run.state).or_raise()?, projections };
        Ok((PyDescentState { state: run.state }, layer, words(run.end)))
    }
}

/// How a descent ended, in words.
pub(super) fn words(end: DescentEnd) -> String {
    match (end.ending, end.loss) {
        (Ending::Completed, _) => "finished".to_string(),
        (Ending::Diverged, Some(loss)) => {
            format!("diverged after {} steps (loss {loss:e}): take a smaller rate", end.step)
        }
        (Ending::Diverged, None) => format!("diverged after {} steps: take a smaller rate", end.step),
        (ending, _) => format!("{} after {} steps", ending.name(), end.step),
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

type Row<'py> = (Any<'py>, Option<Any<'py>>, Option<Any<'py>>, Any<'py>);

/// A number that a descent can have reached: one that left the numbers kept the last sound ones.
fn sound(what: &str, value: &Any<'_>) -> PyResult<f64> {
    let number = numbers::real(what, value)?;
    if number.is_finite() { Ok(number) } else { Err(unsound(what, number)) }
}

/// The same for a vector.
fn sound_vector(what: &'static str, value: &Any<'_>) -> PyResult<Vec<f64>> {
    let numbers = arrays::owned_vector(what, value)?;
    match numbers.iter().find(|number| !number.is_finite()) {
        None => Ok(numbers),
        Some(&number) => Err(unsound(what, number)),
    }
}

fn unsound(what: &str, number: f64) -> PyErr {
    PyValueError::new_err(format!("{what}: expected finite numbers, found {number}"))
}

#[pymethods]
impl PyDescentState {
    #[new]
    fn new(
        step: &Any<'_>,
        parameters: &Any<'_>,
        first_moment: &Any<'_>,
        second_moment: &Any<'_>,
        smoothed_loss: Option<&Any<'_>>,
        rows: &Any<'_>,
    ) -> PyResult<Self> {
        let parameters = sound_vector("parameters", parameters)?;
        let expected = "rows of step, smoothed loss, balance and parameters";
        let rows: Vec<Row<'_>> = numbers::list("rows", rows, |row| {
            let wrong =
                |raised| numbers::refused(row.py(), raised, || numbers::wrong_type("rows", expected, row));
            row.extract().map_err(wrong)
        })?;
        let mut read = Vec::with_capacity(rows.len());
        for (step, smoothed_loss, balance, row) in rows {
            let row = sound_vector("rows", &row)?;
            let step = numbers::count("rows", &step, 0)?;
            let one = |number: Option<Any<'_>>| number.map(|number| sound("rows", &number)).transpose();
            let (smoothed_loss, balance) = (one(smoothed_loss)?, one(balance)?);
            if row.len() != parameters.len() {
                let error = Error::Size { what: "rows", expected: parameters.len(), found: row.len() };
                return Err(error).or_raise();
            }
            read.push(DescentRow { step, smoothed_loss, balance, parameters: row });
        }
        let second_moment = sound_vector("second_moment", second_moment)?;
        if let Some(&value) = second_moment.iter().find(|value| **value < 0.0) {
            let error =
                Error::OutOfRange { what: "second_moment", value, expected: "mean squares, at least 0" };
            return Err(error).or_raise();
        }
        Ok(PyDescentState {
            state: DescentState {
                step: numbers::count("step", step, 0)?,
                parameters,
                first_moment: sound_vector("first_moment", first_moment)?,
                second_moment,
                smoothed_loss: smoothed_loss.map(|loss| sound("smoothed_loss", loss)).transpose()?,
                rows: read,
            },
        })
    }

    fn __repr__(&self) -> String {
        format!("DescentState(step={}, parameters={})", self.state.step, self.state.parameters.len())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (parameters, rows) = (self.parameters()?, self.rows()?);
        let (first, second) = (self.first_moment()?, self.second_moment()?);
        let arguments = (self.state.step, parameters, first, second, self.state.smoothed_loss, rows);
        (PyType::new::<Self>(py), arguments).into_pyobject(py)
    }
}

/// Step, smoothed loss, balance and parameters.
type RowOut = (u32, Option<f64>, Option<f64>, Array);

getters! { PyDescentState, own:
    /// Steps taken.
    step: u32 = own.state.step;
    /// The parameters after them.
    parameters: Array = own.state.parameters[..].into();
    /// Adam's mean of the gradient; empty for SGD.
    first_moment: Array = own.state.first_moment[..].into();
    /// Adam's mean of its square; empty for SGD.
    second_moment: Array = own.state.second_moment[..].into();
    /// The exponentially smoothed loss of the batches; None before the first.
    smoothed_loss: Option<f64> = own.state.smoothed_loss;
    /// The recorded rows: (step, smoothed loss, balance, parameters).
    rows: Vec<RowOut> = {
        let row = |row: &DescentRow| (row.step, row.smoothed_loss, row.balance, row.parameters[..].into());
        own.state.rows.iter().map(row).collect()
    };
}
