//! The theory's task by its eigenvalues: any dimension, one parameter per distinct eigenvalue.

use super::answers::{Attending, attending, context_length, response_of};
use super::flow::{Wishes, columns};
use super::predictors::PyBlock;
use crate::arrays::{self, Reals};
use crate::failure::OrRaise;
use crate::threads;
use crate::watch::watched;
use esscher_core::concentration::Horizon;
use esscher_core::regression::{
    Landscape, SpectralGroup, SpectralLandscape, SpectralTask, flow, settle, train, training_horizon,
};
use esscher_core::{Error, Mat};
use numpy::{PyArray1, PyArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Distinct eigenvalues: gradients hold the weights of all their pairs.
const MOST_GROUPS: usize = 1024;

/// A task whose covariances commute, by groups of equal eigenvalues.
#[pyclass(name = "SpectralTask", module = "esscher._native", frozen)]
pub(crate) struct PySpectralTask {
    pub(super) task: SpectralTask,
    /// The eigenvectors, where the task was given by matrices.
    pub(super) vectors: Option<Mat<f64>>,
}

impl PySpectralTask {
    pub(super) fn of(task: SpectralTask, vectors: Option<Mat<f64>>) -> PyResult<Self> {
        check_groups(task.groups().len())?;
        Ok(PySpectralTask { task, vectors })
    }

    fn landscape(
        &self,
        attention: Attending,
        length: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<SpectralLandscape> {
        let response = response_of(attention, context_length(length)?);
        Ok(SpectralLandscape { task: self.task.clone(), response })
    }

    fn by_group<'py>(&self, py: Python<'py>, read: fn(&SpectralGroup) -> f64) -> Bound<'py, PyArray1<f64>> {
        arrays::vector(py, self.task.groups().iter().map(read).collect())
    }
}

pub(super) fn check_groups(groups: usize) -> PyResult<()> {
    if groups <= MOST_GROUPS {
        return Ok(());
    }
    let message = format!("{groups} distinct eigenvalues: at most {MOST_GROUPS} are supported");
    Err(PyValueError::new_err(message))
}

#[pymethods]
impl PySpectralTask {
    #[new]
    fn new(
        eigenvalues: &Bound<'_, PyAny>,
        multiplicities: &Bound<'_, PyAny>,
        query_eigenvalues: Option<&Bound<'_, PyAny>>,
        noise: f64,
        prior: f64,
    ) -> PyResult<Self> {
        let values = arrays::owned_vector("eigenvalues", eigenvalues)?;
        let counts = Reals::read("multiplicities", multiplicities)?;
        let counts = counts.vector()?;
        let query =
            query_eigenvalues.map(|query| arrays::owned_vector("query_eigenvalues", query)).transpose()?;
        let query = query.unwrap_or_else(|| values.clone());
        for (what, found) in [("multiplicities", counts.len()), ("query_eigenvalues", query.len())] {
            if found != values.len() {
                return Err(Error::Size { what, expected: values.len(), found }).or_raise();
            }
        }
        check_groups(values.len())?;
        let mut groups = Vec::with_capacity(values.len());
        for ((eigenvalue, query_eigenvalue), &count) in values.into_iter().zip(query).zip(counts) {
            if !(count.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&count)) {
                let message = format!("multiplicities: {count} is not a whole number from 1 to {}", u32::MAX);
                return Err(PyValueError::new_err(message));
            }
            groups.push(SpectralGroup { eigenvalue, query_eigenvalue, multiplicity: count as u32 });
        }
        PySpectralTask::of(SpectralTask::from_groups(&groups, noise, prior).or_raise()?, None)
    }

    #[getter]
    fn dimension(&self) -> u64 {
        self.task.dimension()
    }

    #[getter]
    fn eigenvalues<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.by_group(py, |group| group.eigenvalue)
    }

    #[getter]
    fn query_eigenvalues<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.by_group(py, |group| group.query_eigenvalue)
    }

    #[getter]
    fn multiplicities<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.by_group(py, |group| f64::from(group.multiplicity))
    }

    /// The eigenvectors, columns in the order of the groups; None for a task given by eigenvalues.
    #[getter]
    fn eigenvectors<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArrayDyn<f64>>>> {
        self.vectors.as_ref().map(|vectors| arrays::matrix(py, vectors.as_ref())).transpose()
    }

    #[getter]
    fn noise_floor(&self) -> f64 {
        self.task.noise_floor()
    }

    #[getter]
    fn proved_scale(&self) -> f64 {
        self.task.proved_scale()
    }

    /// The entries and the gain of the paper's initialisation, one vector.
    fn initial<'py>(&self, py: Python<'py>, scale: f64) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(arrays::vector(py, self.task.initial(scale).or_raise()?))
    }

    fn valley<'py>(&self, py: Python<'py>, gain: f64) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(arrays::vector(py, self.task.valley(gain).or_raise()?))
    }

    fn infinite_limit<'py>(
        &self,
        py: Python<'py>,
        conserved: f64,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
        let (entries, gain) = self.task.infinite_limit(conserved).or_raise()?;
        Ok((arrays::vector(py, entries), gain))
    }

    /// The block with these entries in the eigenvectors.
    fn block(&self, entries: &Bound<'_, PyAny>, gain: f64) -> PyResult<PyBlock> {
        let entries = arrays::owned_vector("entries", entries)?;
        let Some(vectors) = &self.vectors else {
            let message = "the task was given by its eigenvalues: it has no eigenvectors to make a block of";
            return Err(PyValueError::new_err(message));
        };
        Ok(PyBlock { block: self.task.block(vectors.as_ref(), &entries, gain).or_raise()? })
    }

    /// The entries of a block in the eigenvectors; None if it is not of that form.
    fn entries_of<'py>(&self, py: Python<'py>, block: &PyBlock) -> Option<Bound<'py, PyArray1<f64>>> {
        let entries = self.task.entries_of(self.vectors.as_ref()?.as_ref(), &block.block)?;
        Some(arrays::vector(py, entries))
    }

    fn first_order(&self, entries: &Bound<'_, PyAny>, gain: f64) -> PyResult<Option<f64>> {
        self.task.first_order(&arrays::owned_vector("entries", entries)?, gain).or_raise()
    }

    /// The risk, its gradient in the entries, and in the gain.
    fn risk_and_gradient<'py>(
        &self,
        py: Python<'py>,
        entries: &Bound<'py, PyAny>,
        gain: f64,
        prompt_length: Option<&Bound<'py, PyAny>>,
        attention: &str,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>, f64)> {
        let entries = arrays::owned_vector("entries", entries)?;
        let landscape = self.landscape(attending(attention)?, prompt_length)?;
        let found = py
            .detach(|| {
                threads::on_all(|| landscape.task.risk_and_gradient(&entries, gain, &landscape.response))
            })
            .or_raise()?;
        Ok((found.risk, arrays::vector(py, found.entries), found.gain))
    }

    /// A gradient flow from entries and gain, one vector.
    fn flow<'py>(
        &self,
        py: Python<'py>,
        start: &Bound<'py, PyAny>,
        prompt_length: Option<&Bound<'py, PyAny>>,
        attention: &str,
        wishes: Wishes<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let start = arrays::owned_vector("initial", start)?;
        let attention = attending(attention)?;
        let landscape = self.landscape(attention, prompt_length)?;
        let linear = attention == Attending::Linear;
        let options = wishes.options(&landscape.response, linear, landscape.size())?;
        let found = watched(py, progress, |watch| flow(&landscape, &start, &options, watch))?.or_raise()?;
        columns(py, &found)
    }

    /// Training from the paper's initialisation, with its distances from the infinite prompt's flow and limit.
    fn train<'py>(
        &self,
        py: Python<'py>,
        scale: Option<f64>,
        prompt_length: Option<&Bound<'py, PyAny>>,
        attention: &str,
        wishes: Wishes<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let attention = attending(attention)?;
        let landscape = self.landscape(attention, prompt_length)?;
        let linear = attention == Attending::Linear;
        let options = wishes.options(&landscape.response, linear, landscape.size())?;
        let work =
            |watch: &crate::watch::Watch| train(&self.task, &landscape.response, scale, &options, watch);
        let found = watched(py, progress, work)?.or_raise()?;
        let answer = columns(py, &found.trajectory)?;
        let beside = found.trajectory.rows.iter().map(|row| {
            let same = found.distance_to_infinite.iter().find(|(time, _)| *time == row.time);
            // Both start at the same point.
            same.map_or(if row.time == 0.0 { 0.0 } else { f64::NAN }, |(_, distance)| *distance)
        });
        answer.set_item("distance_to_infinite", arrays::vector(py, beside.collect()))?;
        answer.set_item("distance_to_limit", arrays::vector(py, found.distance_to_limit))?;
        answer.set_item("scale", found.scale)?;
        answer.set_item("within_theorem", found.within_theorem)?;
        Ok(answer)
    }

    /// The stationary point next to a guess, entries and gain; None if Newton's method finds none.
    fn settle<'py>(
        &self,
        py: Python<'py>,
        guess: &Bound<'py, PyAny>,
        prompt_length: Option<&Bound<'py, PyAny>>,
        attention: &str,
        stationary: f64,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let guess = arrays::owned_vector("guess", guess)?;
        let landscape = self.landscape(attending(attention)?, prompt_length)?;
        let found = watched(py, None, |_| settle(&landscape, &guess, stationary))?.or_raise()?;
        Ok(found.map(|point| arrays::vector(py, point)))
    }

    /// The smallest length, the excess risk there and one token earlier, and how the search ended.
    #[allow(clippy::type_complexity)]
    fn horizon(
        &self,
        py: Python<'_>,
        scale: Option<f64>,
        tolerance: f64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Option<u64>, Option<f64>, Option<f64>, &'static str)> {
        let scale = scale.unwrap_or(0.5 * self.task.proved_scale());
        let found = watched(py, progress, |watch| training_horizon(&self.task, scale, tolerance, watch))?
            .or_raise()?;
        Ok(match found {
            Horizon::Found { length, error, error_before } => {
                (Some(length.get()), Some(error), Some(error_before), "found")
            }
            Horizon::AlreadyBelow { error } => (Some(1), Some(error), None, "one token is enough"),
            Horizon::BeyondLongest { error, .. } => {
                (None, Some(error), None, "the longest prompt, 10¹² tokens, is not enough")
            }
            Horizon::Stopped { .. } => (None, None, None, "stopped"),
        })
    }
}
