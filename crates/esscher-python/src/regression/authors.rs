//! The authors' experiment: softmax against linear attention, trained by SGD at each prompt length.

use super::descent::{DRAWS, words};
use super::predictors::PyRegressionLayer;
use crate::prelude::*;
use crate::watch::Watch;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::authors::{
    AuthorsCovariance, AuthorsExperiment, AuthorsOptions, AuthorsPoint, AuthorsProgress, TrainedLayer,
};
use esscher_core::regression::{
    FlowOptions, LinearAttention, LinearRegression, Response, SpectralLandscape, SpectralTask, flow,
};
use esscher_core::{Ending, Monitor, Result};

export!(fn authors_experiment);

/// Trains and tests both attentions at every length: columns, and the trained layers as lists.
#[pyfunction]
fn authors_experiment<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let covariances =
        [("isotropic", AuthorsCovariance::Isotropic), ("toeplitz", AuthorsCovariance::Toeplitz)];
    let options = AuthorsOptions {
        covariance: asked.choice("covariance", &covariances)?,
        covariance_bug: asked.flag("covariance_bug")?,
        lengths: asked.lengths()?.iter().map(|length| length.get() as usize).collect(),
        steps: asked.count("steps", 0)?,
        rate: asked.real("rate")?,
        draws: asked.choice("draws", &DRAWS)?,
        test_prompts: asked.count("test_prompts", 2)?,
        seed: asked.seed()?,
        instruction_set: asked.instruction_set()?,
    };
    let experiment = AuthorsExperiment::new(options).or_raise()?;
    let found = asked.watched(|watch| run(&experiment, watch))?.or_raise()?;
    type Found = (AuthorsPoint, Optimum);
    let column = |read: fn(&Found) -> f64| found.iter().map(read).collect::<Array>();
    let stops =
        |read: fn(&Found) -> &TrainedLayer| found.iter().map(|row| words(read(row).end)).collect::<Vec<_>>();
    let layers = |read: fn(&Found) -> &TrainedLayer| {
        let layer = |row| PyRegressionLayer { layer: read(row).layer.clone(), projections: true };
        found.iter().map(layer).collect::<Vec<_>>()
    };
    Ok(dictionary!(py,
        length: column(|(point, _)| point.length as f64),
        softmax_error: column(|(point, _)| point.softmax.test_error.mean),
        softmax_standard_error: column(|(point, _)| point.softmax.test_error.standard_error),
        softmax_optimum: column(|(_, optimum)| optimum.softmax.unwrap_or(f64::NAN)),
        linear_error: column(|(point, _)| point.linear.test_error.mean),
        linear_standard_error: column(|(point, _)| point.linear.test_error.standard_error),
        linear_optimum: column(|(_, optimum)| optimum.linear),
        softmax_stop: stops(|(point, _)| &point.softmax),
        linear_stop: stops(|(point, _)| &point.linear),
        softmax_layers: layers(|(point, _)| &point.softmax),
        linear_layers: layers(|(point, _)| &point.linear)))
}

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
    if found.ending != Ending::Stationary {
        return Ok(None);
    }
    Ok(Some(2.0 * found.last()?.risk))
}
