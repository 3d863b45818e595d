//! The authors' experiment: softmax against linear attention, trained by SGD at each prompt length.

use super::descent::{draws, words};
use super::predictors::PyRegressionLayer;
use super::simulation::instruction_set;
use crate::arrays;
use crate::failure::{OrRaise, choice};
use crate::watch::{Watch, watched};
use crate::whole;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::authors::{
    AuthorsCovariance, AuthorsExperiment, AuthorsOptions, AuthorsPoint, AuthorsProgress,
};
use esscher_core::regression::{
    FlowEnding, FlowOptions, LinearAttention, LinearRegression, Response, SpectralLandscape, SpectralTask,
    flow,
};
use esscher_core::{Monitor, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What to run, as a user says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted<'py> {
    covariance: String,
    covariance_bug: bool,
    lengths: Bound<'py, PyAny>,
    steps: Bound<'py, PyAny>,
    rate: f64,
    draws: String,
    test_prompts: Bound<'py, PyAny>,
    seed: Bound<'py, PyAny>,
    instructions: Option<String>,
}

/// Trains and tests both attentions at every length: columns, and the trained layers as lists.
#[pyfunction]
pub(crate) fn authors_experiment<'py>(
    py: Python<'py>,
    wanted: Wanted<'py>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let covariances =
        [("isotropic", AuthorsCovariance::Isotropic), ("toeplitz", AuthorsCovariance::Toeplitz)];
    let options = AuthorsOptions {
        covariance: choice("covariance", &wanted.covariance, &covariances)?,
        covariance_bug: wanted.covariance_bug,
        lengths: arrays::lengths(&wanted.lengths)?.iter().map(|length| length.get() as usize).collect(),
        steps: whole::count("steps", &wanted.steps, 0)?,
        rate: wanted.rate,
        draws: draws(&wanted.draws)?,
        test_prompts: whole::count("test_prompts", &wanted.test_prompts, 2)?,
        seed: whole::seed(&wanted.seed)?,
        instruction_set: instruction_set(wanted.instructions.as_deref())?,
    };
    let experiment = AuthorsExperiment::new(options).or_raise()?;
    let found = watched(py, progress, |watch| run(&experiment, watch))?.or_raise()?;
    let answer = PyDict::new(py);
    let mut columns: Vec<(&str, Vec<f64>)> = NAMES.iter().map(|name| (*name, Vec::new())).collect();
    let mut stops: [Vec<String>; 2] = Default::default();
    let mut layers: [Vec<PyRegressionLayer>; 2] = Default::default();
    for (point, optimum) in found {
        let (softmax, linear) = (&point.softmax, &point.linear);
        let values = [
            point.length as f64,
            softmax.test_error.mean,
            softmax.test_error.standard_error,
            optimum.softmax.unwrap_or(f64::NAN),
            linear.test_error.mean,
            linear.test_error.standard_error,
            optimum.linear,
        ];
        columns.iter_mut().zip(values).for_each(|(column, value)| column.1.push(value));
        for (index, trained) in [softmax, linear].into_iter().enumerate() {
            stops[index].push(words(trained.stop));
            layers[index].push(PyRegressionLayer { layer: trained.layer.clone(), projections: true });
        }
    }
    for (name, column) in columns {
        answer.set_item(name, arrays::vector(py, column))?;
    }
    let ([softmax_stops, linear_stops], [softmax_layers, linear_layers]) = (stops, layers);
    answer.set_item("softmax_stop", softmax_stops)?;
    answer.set_item("linear_stop", linear_stops)?;
    answer.set_item("softmax_layers", softmax_layers)?;
    answer.set_item("linear_layers", linear_layers)?;
    Ok(answer)
}

const NAMES: [&str; 7] = [
    "length",
    "softmax_error",
    "softmax_standard_error",
    "softmax_optimum",
    "linear_error",
    "linear_standard_error",
    "linear_optimum",
];

/// The smallest mean squared errors at one length: where the flow from the paper's start ends, if the task is
/// spectral, and the closed form.
struct Optimum {
    softmax: Option<f64>,
    linear: f64,
}

fn run(experiment: &AuthorsExperiment, watch: &Watch) -> Result<Vec<(AuthorsPoint, Optimum)>> {
    let mut progress = AuthorsProgress::default();
    experiment.run(&mut progress, watch)?;
    let law = experiment.law();
    let mut rows = Vec::new();
    for point in experiment.points(&progress)? {
        if watch.should_stop() {
            break;
        }
        let length = PromptLength::new(point.length as u64)?;
        let linear = 2.0 * LinearAttention::new(law, length)?.minimal_risk()?;
        let optimum = Optimum { softmax: softmax_optimum(law, length, watch)?, linear };
        rows.push((point, optimum));
    }
    Ok(rows)
}

fn softmax_optimum(law: &LinearRegression, length: PromptLength, watch: &Watch) -> Result<Option<f64>> {
    let Ok((task, _)) = SpectralTask::new(law) else {
        return Ok(None);
    };
    let start = task.initial(0.5 * task.proved_scale())?;
    let landscape = SpectralLandscape { task, response: Response::softmax(length) };
    let options = FlowOptions { end_time: 1e12, rows: 1, ..FlowOptions::default() };
    let found = flow(&landscape, &start, &options, watch)?;
    // A flow that does not stand still has no limit to report.
    if !matches!(found.ending, FlowEnding::Stationary { .. }) {
        return Ok(None);
    }
    Ok(Some(2.0 * found.last()?.risk))
}
