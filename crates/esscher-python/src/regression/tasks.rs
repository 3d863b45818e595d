//! Tasks as laws of prompts: what the examples, the query and the target of one prompt are drawn from.

use crate::arrays;
use crate::failure::{Exceptions, OrRaise, choice};
use crate::measures::measure_from;
use crate::numbers;
use crate::threads;
use esscher_core::measure::Law;
use esscher_core::numerics::{InstructionSet, Stream};
use esscher_core::regression::tasks::{
    ClassificationTask, GeneralisedTask, LinearTask, Link, PromptDraw, SparseTask, Task,
};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::prelude::*;
use std::sync::Arc;

/// A law of prompts.
#[pyclass(name = "Task", module = "esscher._native", subclass, frozen)]
pub(crate) struct PyTask {
    pub(super) task: Arc<dyn Task>,
    pub(super) exceptions: Exceptions,
}

impl PyTask {
    pub(super) fn of(task: Arc<dyn Task>, exceptions: Exceptions) -> Self {
        PyTask { task, exceptions }
    }
}

/// The laws of covariates and queries, one law unless two are given.
struct Laws {
    covariates: Law,
    queries: Law,
    exceptions: Exceptions,
}

impl Laws {
    fn read(covariates: &Bound<'_, PyAny>, queries: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Laws::named(["covariates", "queries"], covariates, queries)
    }

    fn named(
        [first, second]: [&'static str; 2],
        covariates: &Bound<'_, PyAny>,
        queries: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (covariates, mine) = measure_from(first, covariates)?;
        let Some(queries) = queries else {
            return Ok(Laws { queries: covariates.clone(), covariates, exceptions: mine });
        };
        let (queries, theirs) = measure_from(second, queries)?;
        Ok(Laws { covariates, queries, exceptions: Exceptions::joined([&mine, &theirs]) })
    }

    /// Makes the task; a user's law may be asked for its moments meanwhile.
    fn task<T: Task + 'static>(
        self,
        py: Python<'_>,
        make: impl FnOnce(Law, Law) -> esscher_core::Result<T> + Send,
    ) -> PyResult<PyTask> {
        let Laws { covariates, queries, exceptions } = self;
        let made = threads::detached(py, || make(covariates, queries));
        Ok(PyTask::of(Arc::new(exceptions.or_raise(made)?), exceptions))
    }
}

#[pymethods]
impl PyTask {
    /// y = ⟨w, x⟩ + noise.
    #[staticmethod]
    fn linear(
        py: Python<'_>,
        covariates: &Bound<'_, PyAny>,
        queries: Option<&Bound<'_, PyAny>>,
        noise: f64,
        query_noise: Option<f64>,
        prior: f64,
    ) -> PyResult<PyTask> {
        Laws::read(covariates, queries)?.task(py, |covariates, queries| {
            let task = LinearTask::with_queries(covariates, queries)?.with_noise(noise)?.with_prior(prior)?;
            query_noise.map_or(Ok(task.clone()), |variance| task.with_query_noise(variance))
        })
    }

    /// y = g(⟨w, x⟩) + noise.
    #[staticmethod]
    fn generalised(
        py: Python<'_>,
        link: &str,
        covariates: &Bound<'_, PyAny>,
        queries: Option<&Bound<'_, PyAny>>,
        noise: f64,
        prior: f64,
    ) -> PyResult<PyTask> {
        let link = choice("link", link, &Link::ALL.map(|link| (link.name(), link)))?;
        Laws::read(covariates, queries)?.task(py, |covariates, queries| {
            GeneralisedTask::with_queries(link, covariates, queries)?.with_noise(noise)?.with_prior(prior)
        })
    }

    /// y = ⟨w, x⟩ + noise with few non-zero entries of w.
    #[staticmethod]
    fn sparse(
        py: Python<'_>,
        non_zero: &Bound<'_, PyAny>,
        covariates: &Bound<'_, PyAny>,
        queries: Option<&Bound<'_, PyAny>>,
        noise: f64,
        prior: f64,
    ) -> PyResult<PyTask> {
        let non_zero = numbers::count("non_zero", non_zero, 1)? as usize;
        Laws::read(covariates, queries)?.task(py, |covariates, queries| {
            SparseTask::with_queries(non_zero, covariates, queries)?.with_noise(noise)?.with_prior(prior)
        })
    }

    /// Labels ±1, x = y · mean + noise.
    #[staticmethod]
    fn classification(
        py: Python<'_>,
        separation: f64,
        noise: &Bound<'_, PyAny>,
        query_noise: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTask> {
        let make = |noise, query| ClassificationTask::with_queries(separation, noise, query);
        Laws::named(["noise", "query_noise"], noise, query_noise)?.task(py, make)
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.task.dimension()
    }

    /// One prompt: tokens (L, d + 1), the query's covariates (d,), the target, and the hidden vector (d,).
    #[allow(clippy::type_complexity)]
    fn draw<'py>(
        &self,
        py: Python<'py>,
        prompt_length: &Bound<'py, PyAny>,
        seed: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArray1<f64>>, f64, Bound<'py, PyArray1<f64>>)>
    {
        let length = arrays::length(prompt_length)?.get() as usize;
        let mut stream = Stream::new(numbers::seed(seed)?, 0, 0).with_instruction_set(InstructionSet::best());
        let mut prompt = PromptDraw::new();
        let drawn = threads::detached(py, || self.task.draw(length, &mut stream, &mut prompt));
        self.exceptions.or_raise(drawn)?;
        // A law that could not draw leaves NaN.
        let mut entries = prompt.tokens().iter().chain(prompt.query());
        if !(prompt.target().is_finite() && entries.all(|entry| entry.is_finite())) {
            return Err(esscher_core::Error::Overflow { what: "the drawn prompt" }).or_raise();
        }
        let dimension = prompt.dimension();
        Ok((
            arrays::array(py, prompt.tokens().to_vec(), &[length, dimension + 1])?,
            arrays::vector(py, prompt.query()[..dimension].to_vec()),
            prompt.target(),
            arrays::vector(py, prompt.hidden().to_vec()),
        ))
    }
}
