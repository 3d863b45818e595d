//! Covariates of any law on fixed draws: landscapes that are as smooth as the exact ones.

use super::answers::Estimated;
use super::flow;
use super::predictors::PyBlock;
use crate::measures::measure_from;
use crate::prelude::*;
use crate::watch::Watch;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{
    BlockLandscape, ContextLength, DrawnCovariates, DrawnLandscape, Landscape, Response,
};

export!(class PyDrawnCovariates);

/// Drawn covariates of many prompts with their queries.
#[pyclass(name = "DrawnCovariates", module = "esscher._native", frozen)]
pub(crate) struct PyDrawnCovariates {
    covariates: DrawnCovariates,
    exceptions: Exceptions,
}

impl PyDrawnCovariates {
    fn landscape(&self, asked: &Asked<'_>) -> PyResult<DrawnLandscape> {
        let length = match asked.context_length()? {
            ContextLength::Finite(length) => Some(length),
            ContextLength::Infinite => None,
        };
        self.exceptions.or_raise(self.covariates.landscape(length))
    }
}

#[pymethods]
impl PyDrawnCovariates {
    #[new]
    fn new(asked: Asked<'_>) -> PyResult<Self> {
        let (law, exceptions) = measure_from("covariates", &asked.get("covariates")?)?;
        let (noise, prior) = (asked.real("noise")?, asked.real("prior")?);
        let (prompts, longest, seed) = (asked.count("prompts", 1)?, asked.length("longest")?, asked.seed()?);
        let made = asked.watched(|_| DrawnCovariates::new(law, noise, prior, prompts, longest, seed))?;
        Ok(PyDrawnCovariates { covariates: exceptions.or_raise(made)?, exceptions })
    }

    /// The risk, its gradient in A, and in b, averaged over the draws.
    fn risk_and_gradient(&self, asked: Asked<'_>) -> PyResult<(Estimated, Array, f64)> {
        let (landscape, block) = (self.landscape(&asked)?, PyBlock::asked(&asked, "block")?);
        let found = asked.watched(|_| landscape.risk_and_gradient(&block))?;
        let found = self.exceptions.or_raise(found)?;
        Ok(((found.risk, "sampled", f64::NAN), found.matrix.into(), found.gain))
    }

    /// A gradient flow of a block.
    fn flow<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let landscape = self.landscape(&asked)?;
        // Nothing is known about drift on other laws: the choices are those of a finite prompt.
        let response = Response::linear(PromptLength::MAX);
        let options = flow::options(&asked, &response, false, landscape.size())?;
        let start = BlockLandscape::parameters(&PyBlock::asked(&asked, "initial")?);
        let walk = |watch: &Watch| esscher_core::regression::flow(&landscape, &start, &options, watch);
        let found = asked.watched(walk)?;
        flow::columns(py, &self.exceptions.or_raise(found)?)
    }
}
