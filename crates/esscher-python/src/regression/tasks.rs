//! Tasks as laws of prompts: what the examples, the query and the target of one prompt are drawn from.

use crate::measures::{PyMeasure, measure_from, owner};
use crate::prelude::*;
use crate::watch::UNKNOWN;
use esscher_core::measure::Law;
use esscher_core::numerics::{InstructionSet, Stream};
use esscher_core::regression::tasks::{
    ClassificationTask, GeneralisedTask, LinearTask, Link, PromptDraw, SparseTask, Task,
};
use std::sync::Arc;

export!(class PyTask);

/// A law of prompts.
#[pyclass(name = "Task", module = "esscher._native", subclass, frozen)]
pub(crate) struct PyTask {
    pub(super) task: Arc<dyn Task>,
    pub(super) exceptions: Exceptions,
    /// Of its laws, for the garbage collector: see `PyCustom`.
    pub(super) owners: Vec<Py<PyMeasure>>,
}

/// Makes a task from the laws of covariates and queries, one law unless two are given; a user's law may be asked for
/// its moments meanwhile.
fn made<T: Task + 'static>(
    py: Python<'_>,
    asked: &Asked<'_>,
    [covariates, queries]: [&'static str; 2],
    make: impl FnOnce(Law, Law) -> esscher_core::Result<T> + Send + 'static,
) -> PyResult<PyTask> {
    let given = asked.get(covariates)?;
    let (covariates, mut exceptions) = measure_from(covariates, &given)?;
    let mut owners = Vec::from_iter(owner(&given));
    let queries = match asked.given(queries)? {
        None => covariates.clone(),
        Some(given) => {
            let (law, theirs) = measure_from(queries, &given)?;
            exceptions = Exceptions::joined([&exceptions, &theirs]);
            owners.extend(owner(&given));
            law
        }
    };
    let task = exceptions.by_size(py, UNKNOWN, move || make(covariates, queries));
    Ok(PyTask { task: Arc::new(exceptions.after(task)?), exceptions, owners })
}

#[pymethods]
impl PyTask {
    /// The task that a class of `esscher.tasks` is, from the arguments of its constructor.
    #[new]
    fn new(py: Python<'_>, class: &str, asked: Asked<'_>) -> PyResult<Self> {
        let laws = ["covariates", "queries"];
        if class == "ClassificationTask" {
            let separation = asked.real("separation")?;
            return made(py, &asked, ["noise", "query_noise"], move |noise, query| {
                ClassificationTask::with_queries(separation, noise, query)
            });
        }
        let (noise, prior) = (asked.real("noise")?, asked.real("prior")?);
        match class {
            "LinearTask" => {
                let query_noise = asked.maybe("query_noise", Asked::real)?;
                made(py, &asked, laws, move |covariates, queries| {
                    let task = LinearTask::with_queries(covariates, queries)?.with_noise(noise)?;
                    let task = task.with_prior(prior)?;
                    query_noise.map_or(Ok(task.clone()), |variance| task.with_query_noise(variance))
                })
            }
            "GeneralisedTask" => {
                let link = asked.choice("link", &Link::ALL.map(|link| (link.name(), link)))?;
                made(py, &asked, laws, move |covariates, queries| {
                    let task = GeneralisedTask::with_queries(link, covariates, queries)?;
                    task.with_noise(noise)?.with_prior(prior)
                })
            }
            "SparseTask" => {
                let non_zero = asked.count("non_zero", 1)? as usize;
                made(py, &asked, laws, move |covariates, queries| {
                    let task = SparseTask::with_queries(non_zero, covariates, queries)?;
                    task.with_noise(noise)?.with_prior(prior)
                })
            }
            _ => Err(PyTypeError::new_err(format!("there is no task {class}"))),
        }
    }

    /// One prompt: tokens (L, d + 1), the query's covariates (d,), the target, and the hidden vector (d,).
    fn draw(&self, py: Python<'_>, asked: Asked<'_>) -> PyResult<(Array, Array, f64, Array)> {
        let length = asked.length("length")?.get() as usize;
        let mut stream = Stream::new(asked.seed()?, 0, 0).with_instruction_set(InstructionSet::best());
        let task = self.task.clone();
        let numbers = length.saturating_mul(task.dimension() + 1);
        let prompt = self.exceptions.by_size(py, numbers, move || -> esscher_core::Result<_> {
            let mut prompt = PromptDraw::new();
            task.draw(length, &mut stream, &mut prompt)?;
            Ok(prompt)
        });
        let prompt = self.exceptions.after(prompt)?;
        // A law that could not draw leaves NaN.
        let mut entries = prompt.tokens().iter().chain(prompt.query());
        if !(prompt.target().is_finite() && entries.all(|entry| entry.is_finite())) {
            return Err(esscher_core::Error::Overflow { what: "the drawn prompt" }).or_raise();
        }
        let dimension = prompt.dimension();
        let tokens = Array::new(prompt.tokens().to_vec(), [length, dimension + 1]);
        Ok((tokens, prompt.query()[..dimension].into(), prompt.target(), prompt.hidden().into()))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.owners.iter().try_for_each(|owner| visit.call(owner))
    }
}

getters! { PyTask, own:
    dimension: usize = own.task.dimension();
}
