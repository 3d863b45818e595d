//! Risks by simulation: of any layer on any task, and of classical baselines.

use super::predictors::Predictor;
use super::tasks::PyTask;
use crate::arrays;
use crate::failure::OrRaise;
use crate::watch::{Watch, watched};
use crate::whole;
use esscher_core::numerics::statistics::Summary;
use esscher_core::numerics::{InstructionSet, Stream};
use esscher_core::regression::tasks::{LinearTask, PromptDraw, Task};
use esscher_core::regression::{Baseline, RiskOptions, RiskSimulation};
use esscher_core::{Error, Monitor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The instructions of inner loops: the best of this machine, or those of a name.
pub(super) fn instruction_set(name: Option<&str>) -> PyResult<InstructionSet> {
    name.map_or_else(|| Ok(InstructionSet::best()), |name| InstructionSet::named(name).or_raise())
}

/// Simulates ½ E (prediction − target)² of a layer on a task.
#[pyfunction]
pub(crate) fn simulate_risk<'py>(
    py: Python<'py>,
    task: &PyTask,
    predictor: &Bound<'py, PyAny>,
    prompt_length: &Bound<'py, PyAny>,
    attention: Option<&str>,
    prompts: &Bound<'py, PyAny>,
    gradient: bool,
    seed: &Bound<'py, PyAny>,
    instructions: Option<&str>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (layer, _) = Predictor::read("predictor", predictor)?.layer(attention)?;
    let length = arrays::length(prompt_length)?.get() as usize;
    let options = RiskOptions {
        prompts: whole::count("prompts", prompts, 2)?,
        gradient,
        seed: whole::seed(seed)?,
        instruction_set: instruction_set(instructions)?,
    };
    let simulation = RiskSimulation::new(task.task.clone(), layer, length, options).or_raise()?;
    let found = watched(py, progress, |watch| simulation.finish(watch))?;
    let found = task.exceptions.or_raise(found)?;
    let answer = PyDict::new(py);
    summarise(&answer, &found.risk)?;
    if gradient {
        answer.set_item("gradient", arrays::vector(py, found.gradient.mean().to_vec()))?;
        let errors = found.gradient.standard_error().unwrap_or_default();
        answer.set_item("gradient_standard_error", arrays::vector(py, errors))?;
    }
    Ok(answer)
}

fn summarise(answer: &Bound<'_, PyDict>, risk: &Summary) -> PyResult<()> {
    answer.set_item("risk", risk.mean())?;
    answer.set_item("standard_error", risk.standard_error())?;
    answer.set_item("prompts", risk.count())?;
    answer.set_item("rests_on_few", risk.rests_on_few())
}

/// Risks of baselines, given as (name, parameter), over the same prompts: for each its risk and standard error.
#[pyfunction]
pub(crate) fn baseline_risks(
    py: Python<'_>,
    task: &PyTask,
    prompt_length: &Bound<'_, PyAny>,
    baselines: Vec<(String, f64)>,
    prompts: &Bound<'_, PyAny>,
    seed: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(Option<f64>, Option<f64>)>> {
    let length = arrays::length(prompt_length)?.get() as usize;
    let baselines: Vec<Baseline> =
        baselines.iter().map(|(name, parameter)| baseline(name, *parameter)).collect::<PyResult<_>>()?;
    let (prompts, seed) = (whole::count("prompts", prompts, 2)?, whole::seed(seed)?);
    let found = watched(py, progress, |watch| {
        let stoppable = Stoppable {
            task: task.task.as_ref(),
            watch,
            drawn: AtomicUsize::new(0),
            total: prompts as usize,
        };
        esscher_core::regression::baseline_risks(&stoppable, length, &baselines, prompts, seed)
    })?;
    let found = task.exceptions.or_raise(found)?;
    Ok(found.iter().map(|summary| (summary.mean(), summary.standard_error())).collect())
}

fn baseline(name: &str, parameter: f64) -> PyResult<Baseline> {
    Ok(match name {
        "ridge" => Baseline::Ridge { lambda: parameter },
        "least-squares" => Baseline::LeastSquares,
        "gradient-step" => Baseline::GradientStep { rate: parameter },
        "averaging" => Baseline::Averaging,
        "nearest-neighbours" if parameter.fract() == 0.0 && parameter >= 1.0 => {
            Baseline::NearestNeighbours { neighbours: parameter as usize }
        }
        "nearest-neighbours" => {
            let message = format!("neighbours is {parameter}: expected a whole number from 1 on");
            return Err(PyValueError::new_err(message));
        }
        _ => return Err(PyValueError::new_err(format!("no baseline \"{name}\""))),
    })
}

/// A task whose draws report progress and end when the call is to stop: baselines have no monitor of their own.
struct Stoppable<'a> {
    task: &'a dyn Task,
    watch: &'a Watch,
    drawn: AtomicUsize,
    total: usize,
}

impl fmt::Debug for Stoppable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.task.fmt(formatter)
    }
}

impl Task for Stoppable<'_> {
    fn dimension(&self) -> usize {
        self.task.dimension()
    }

    fn draw(&self, length: usize, stream: &mut Stream, prompt: &mut PromptDraw) -> esscher_core::Result<()> {
        if self.watch.should_stop() {
            return Err(Error::Empty { what: "the prompts (stopped)" });
        }
        self.watch.progress(self.drawn.fetch_add(1, Ordering::Relaxed), self.total);
        self.task.draw(length, stream, prompt)
    }

    fn as_gaussian_linear(&self) -> Option<&LinearTask> {
        self.task.as_gaussian_linear()
    }
}
