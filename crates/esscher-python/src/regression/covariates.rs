//! Covariates of any law on fixed draws: landscapes that are as smooth as the exact ones.

use super::answers::context_length;
use super::flow::{Wishes, columns};
use super::predictors::PyBlock;
use crate::arrays;
use crate::failure::Exceptions;
use crate::measures::measure_from;
use crate::watch::watched;
use crate::whole;
use esscher_core::regression::{
    BlockLandscape, ContextLength, DrawnCovariates, DrawnLandscape, Landscape, Response, flow,
};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Drawn covariates of many prompts with their queries.
#[pyclass(name = "DrawnCovariates", module = "esscher._native", frozen)]
pub(crate) struct PyDrawnCovariates {
    covariates: DrawnCovariates,
    exceptions: Exceptions,
}

impl PyDrawnCovariates {
    fn landscape(&self, length: Option<&Bound<'_, PyAny>>) -> PyResult<DrawnLandscape> {
        let length = match context_length(length)? {
            ContextLength::Finite(length) => Some(length),
            ContextLength::Infinite => None,
        };
        self.exceptions.or_raise(self.covariates.landscape(length))
    }
}

#[pymethods]
impl PyDrawnCovariates {
    #[new]
    fn new(
        py: Python<'_>,
        covariates: &Bound<'_, PyAny>,
        noise: f64,
        prior: f64,
        prompts: &Bound<'_, PyAny>,
        longest: &Bound<'_, PyAny>,
        seed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (law, exceptions) = measure_from("covariates", covariates)?;
        let (prompts, seed) = (whole::count("prompts", prompts, 1)?, whole::seed(seed)?);
        let longest = arrays::length(longest)?;
        let made = watched(py, None, |_| DrawnCovariates::new(law, noise, prior, prompts, longest, seed))?;
        Ok(PyDrawnCovariates { covariates: exceptions.or_raise(made)?, exceptions })
    }

    /// The risk, its gradient in A, and in b, averaged over the draws.
    fn risk_and_gradient<'py>(
        &self,
        py: Python<'py>,
        block: &PyBlock,
        prompt_length: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(f64, Bound<'py, PyArrayDyn<f64>>, f64)> {
        let landscape = self.landscape(prompt_length)?;
        let found = watched(py, None, |_| landscape.risk_and_gradient(&block.block))?;
        let found = self.exceptions.or_raise(found)?;
        Ok((found.risk, arrays::matrix(py, found.matrix.as_ref())?, found.gain))
    }

    /// A gradient flow of a block.
    fn flow<'py>(
        &self,
        py: Python<'py>,
        initial: &PyBlock,
        prompt_length: Option<&Bound<'py, PyAny>>,
        wishes: Wishes<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let landscape = self.landscape(prompt_length)?;
        // Nothing is known about drift on other laws: the choices are those of a finite prompt.
        let options = wishes.options(
            &Response::linear(esscher_core::prompt::PromptLength::MAX),
            false,
            landscape.size(),
        )?;
        let start = BlockLandscape::parameters(&initial.block);
        let found = watched(py, progress, |watch| flow(&landscape, &start, &options, watch))?;
        columns(py, &self.exceptions.or_raise(found)?)
    }
}
