//! Covariates of any law on fixed draws: landscapes that are as smooth as the exact ones.

use super::answers::Estimated;
use super::flow;
use super::predictors::PyBlock;
use crate::measures::{PyMeasure, measure_from, owner};
use crate::prelude::*;
use esscher_core::regression::{BlockLandscape, ContextLength, DrawnCovariates, DrawnLandscape};

export!(class PyDrawnCovariates);

/// Drawn covariates of many prompts with their queries.
#[pyclass(name = "DrawnCovariates", module = "esscher._native", frozen)]
pub(crate) struct PyDrawnCovariates {
    covariates: DrawnCovariates,
    exceptions: Exceptions,
    /// Of the law, for the garbage collector: see `PyCustom`.
    owner: Option<Py<PyMeasure>>,
}

impl PyDrawnCovariates {
    fn landscape(&self, py: Python<'_>, asked: &Asked<'_>) -> PyResult<DrawnLandscape> {
        let length = match asked.context_length()? {
            ContextLength::Finite(length) => Some(length),
            ContextLength::Infinite => None,
        };
        // A user's law may be asked on other threads, which need the interpreter.
        self.exceptions.or_raise(threads::detached(py, || self.covariates.landscape(length)))
    }
}

#[pymethods]
impl PyDrawnCovariates {
    #[new]
    fn new(asked: Asked<'_>) -> PyResult<Self> {
        let given = asked.get("covariates")?;
        let (law, exceptions) = measure_from("covariates", &given)?;
        let (noise, prior) = (asked.real("noise")?, asked.real("prior")?);
        let (prompts, longest, seed) = (asked.count("prompts", 1)?, asked.length("longest")?, asked.seed()?);
        let make = move || DrawnCovariates::new(law, noise, prior, prompts, longest, seed);
        let covariates = if exceptions.are_possible() {
            exceptions.watched(&asked, |_| make())?
        } else {
            asked.left_behind(|_| make())?.or_raise()?
        };
        Ok(PyDrawnCovariates { covariates, exceptions, owner: owner(&given) })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)
    }

    /// The risk, its gradient in A, and in b, averaged over the draws.
    fn risk_and_gradient<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (landscape, block) = (self.landscape(py, &asked)?, PyBlock::asked(&asked, "block")?);
        // The draws are made: no function of a user's is called.
        let found = asked.left_behind(move |_| landscape.risk_and_gradient(&block))?.or_raise()?;
        let (risk, matrix) = (Estimated::sampled(found.risk, None), Array::from(found.matrix));
        Ok(dictionary!(py, risk: risk, matrix: matrix, gain: found.gain))
    }

    /// A gradient flow of a block.
    fn flow<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let landscape = self.landscape(py, &asked)?;
        let start = BlockLandscape::parameters(&PyBlock::asked(&asked, "initial")?);
        // Nothing is known about drift on other laws: the choices are those of a finite prompt.
        flow::walked(py, &asked, &landscape, &start, false, &self.exceptions)
    }
}
