//! Risks by simulation: of any layer on any task, and of classical baselines.

use super::answers::Estimated;
use super::predictors::Predictor;
use super::tasks::PyTask;
use crate::prelude::*;
use esscher_core::regression::{Baseline, RiskOptions, RiskSimulation, baseline_risks_watched};

#[pymethods]
impl PyTask {
    /// Simulates ½ E (prediction − target)² of a layer on a task.
    fn simulate_risk<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let layer = Predictor::layer_asked(&asked)?.layer;
        let length = asked.length("prompt_length")?.get() as usize;
        let gradient = asked.flag("gradient")?;
        let options = RiskOptions {
            prompts: asked.count("prompts", 2)?,
            gradient,
            seed: asked.seed()?,
            instruction_set: asked.instruction_set()?,
        };
        let simulation = RiskSimulation::new(self.task.clone(), layer, length, options).or_raise()?;
        let found = self.exceptions.watched(&asked, |watch| simulation.finish(watch))?;
        let slopes = gradient.then(|| Array::from(found.gradient.mean().to_vec()));
        let errors = gradient.then(|| found.gradient.standard_error().unwrap_or_default());
        Ok(dictionary!(py,
            risk: Estimated::mean("the simulated risk", &found.risk)?,
            prompts: found.risk.count(),
            gradient: slopes,
            gradient_standard_error: errors.map(Array::from),
            rests_on_few: found.risk.rests_on_few()))
    }

    /// Risks of baselines, given as (name, parameter), over the same prompts: for each its risk and standard error.
    fn baselines(&self, asked: Asked<'_>) -> PyResult<Vec<(f64, f64)>> {
        let length = asked.length("prompt_length")?.get() as usize;
        let wanted: Vec<(String, f64)> = asked.get("wanted")?.extract()?;
        let baselines: Vec<Baseline> =
            wanted.iter().map(|(name, parameter)| baseline(name, *parameter)).collect::<PyResult<_>>()?;
        let (prompts, seed) = (asked.count("prompts", 2)?, asked.seed()?);
        let found = self.exceptions.watched(&asked, |watch| {
            baseline_risks_watched(self.task.as_ref(), length, &baselines, prompts, seed, watch)
        })?;
        let known = |number: Option<f64>| number.unwrap_or(f64::NAN);
        Ok(found.iter().map(|summary| (known(summary.mean()), known(summary.standard_error()))).collect())
    }
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
