//! The authors' experiment: softmax against linear attention, trained by SGD at each prompt length.

use super::descent::{DRAWS, words};
use super::predictors::PyRegressionLayer;
use crate::prelude::*;
use esscher_core::regression::authors::{
    AuthorsCovariance, AuthorsExperiment, AuthorsOptions, AuthorsProgress, TrainedLayer,
};

export!(fn authors_experiment);

/// Trains and tests both attentions at every length: the lengths, what became of each attention, and the task.
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
        ..AuthorsOptions::default()
    };
    let experiment = AuthorsExperiment::new(options).or_raise()?;
    let mut progress = AuthorsProgress::default();
    asked.watched(|watch| experiment.run(&mut progress, watch))?.or_raise()?;
    let (points, law) = (experiment.points(&progress).or_raise()?, experiment.law());
    let task = dictionary!(py, covariance: Array::from(law.covariance()), noise: law.noise(),
        query_covariance: Array::from(law.query_covariance()), prior: law.prior_scale());
    Ok(dictionary!(py,
        length: points.iter().map(|point| point.length as i64).collect::<Array<_>>(),
        softmax: trained(py, points.iter().map(|point| &point.softmax).collect())?,
        linear: trained(py, points.iter().map(|point| &point.linear).collect())?,
        task: task))
}

/// Test errors, ends and layers of one attention, by length.
fn trained<'py>(py: Python<'py>, found: Vec<&TrainedLayer>) -> PyResult<Bound<'py, PyDict>> {
    let layer = |one: &&TrainedLayer| PyRegressionLayer { layer: one.layer.clone(), projections: true };
    Ok(dictionary!(py,
        error: found.iter().map(|one| one.test_error.mean).collect::<Array>(),
        standard_error: found.iter().map(|one| one.test_error.standard_error).collect::<Array>(),
        stop: found.iter().map(|one| words(one.end)).collect::<Vec<_>>(),
        layers: found.iter().map(layer).collect::<Vec<_>>()))
}
