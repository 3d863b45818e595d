//! The theory's task by its eigenvalues: any dimension, one parameter per distinct eigenvalue.

use super::answers::{Answering, Estimated, response_asked};
use super::flow;
use super::predictors::PyBlock;
use crate::prelude::*;
use crate::watch::Watch;
use esscher_core::concentration::Horizon;
use esscher_core::regression::{
    SpectralGroup, SpectralLandscape, SpectralTask, settle, train, training_horizon,
};
use esscher_core::{Error, Mat};

export!(class PySpectralTask);
compared!(PySpectralTask);

/// Distinct eigenvalues: gradients hold the weights of all their pairs.
const MOST_GROUPS: usize = 1024;

/// A task whose covariances commute, by groups of equal eigenvalues; `esscher.SpectralTask` adds flows.
#[pyclass(name = "SpectralTask", module = "esscher._native", subclass, frozen)]
#[derive(Clone)]
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

    pub(super) fn block_of(&self, entries: &[f64], gain: f64) -> PyResult<PyBlock> {
        let Some(vectors) = &self.vectors else {
            let message = "the task was given by its eigenvalues: it has no eigenvectors to make a block of";
            return Err(PyValueError::new_err(message));
        };
        Ok(PyBlock { block: self.task.block(vectors.as_ref(), entries, gain).or_raise()? })
    }

    /// The landscape at the attention and length of a call.
    fn landscape(&self, asked: &Asked<'_>) -> PyResult<SpectralLandscape> {
        Ok(SpectralLandscape { task: self.task.clone(), response: response_asked(asked)?.response })
    }
}

fn check_groups(groups: usize) -> PyResult<()> {
    if groups <= MOST_GROUPS {
        return Ok(());
    }
    let message = format!("{groups} distinct eigenvalues: at most {MOST_GROUPS} are supported");
    Err(PyValueError::new_err(message))
}

#[pymethods]
impl PySpectralTask {
    #[new]
    #[pyo3(signature = (eigenvalues, multiplicities = None, *, query_eigenvalues = None, noise = 0.0, prior = 1.0))]
    fn new(
        eigenvalues: &Any<'_>,
        multiplicities: Option<&Any<'_>>,
        query_eigenvalues: Option<&Any<'_>>,
        #[pyo3(from_py_with = numbers::argument::noise)] noise: f64,
        #[pyo3(from_py_with = numbers::argument::prior)] prior: f64,
    ) -> PyResult<Self> {
        if let Ok(task) = eigenvalues.cast::<PySpectralTask>() {
            return Ok(task.get().clone());
        }
        let values = arrays::owned_vector("eigenvalues", eigenvalues)?;
        let counts =
            multiplicities.map(|counts| arrays::owned_vector("multiplicities", counts)).transpose()?;
        let counts = counts.unwrap_or_else(|| vec![1.0; values.len()]);
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
        for ((eigenvalue, query_eigenvalue), count) in values.into_iter().zip(query).zip(counts) {
            if !(count.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&count)) {
                let message =
                    format!("multiplicities: {count:?} is not a whole number from 1 to {}", u32::MAX);
                return Err(PyValueError::new_err(message));
            }
            groups.push(SpectralGroup { eigenvalue, query_eigenvalue, multiplicity: count as u32 });
        }
        PySpectralTask::of(SpectralTask::from_groups(&groups, noise, prior).or_raise()?, None)
    }

    /// The paper's initialisation, one vector: every entry α/√d, then the gain b = α.
    fn initial(&self, #[pyo3(from_py_with = numbers::argument::scale)] scale: f64) -> PyResult<Array> {
        Ok(self.task.initial(scale).or_raise()?.into())
    }

    /// The floor of the infinite prompt's valley bΣA = I at gain b: the entries 1/(b sᵢ).
    fn valley(&self, #[pyo3(from_py_with = numbers::argument::gain)] gain: f64) -> PyResult<Array> {
        Ok(self.task.valley(gain).or_raise()?.into())
    }

    /// The point of the valley with ‖A‖²_F − b² = conserved and b > 0, where the infinite prompt's flow ends.
    #[pyo3(signature = (conserved = 0.0))]
    fn infinite_limit(
        &self,
        #[pyo3(from_py_with = numbers::argument::conserved)] conserved: f64,
    ) -> PyResult<(Array, f64)> {
        let (entries, gain) = self.task.infinite_limit(conserved).or_raise()?;
        Ok((entries.into(), gain))
    }

    /// The block with these entries in the eigenvectors, for tasks that have them.
    fn block(
        &self,
        entries: &Any<'_>,
        #[pyo3(from_py_with = numbers::argument::gain)] gain: f64,
    ) -> PyResult<PyBlock> {
        self.block_of(&arrays::owned_vector("entries", entries)?, gain)
    }

    /// The entries of a block in the eigenvectors; None if it is not of that form.
    fn entries_of(&self, block: &PyBlock) -> Option<Array> {
        Some(self.task.entries_of(self.vectors.as_ref()?.as_ref(), &block.block)?.into())
    }

    /// The coefficient of 1/L in the risk of softmax at long prompts; None where it is infinite.
    ///
    /// >>> import esscher as es
    /// >>> task = es.SpectralTask([1.0], [6], noise=0.5)
    /// >>> coefficient = task.first_order([0.25], 4.0)
    /// >>> gap = task.risk_and_gradient([0.25], 4.0, 1e9).risk - task.risk_and_gradient([0.25], 4.0).risk
    /// >>> bool(abs(gap * 1e9 / coefficient - 1) < 1e-3)
    /// True
    fn first_order(
        &self,
        entries: &Any<'_>,
        #[pyo3(from_py_with = numbers::argument::gain)] gain: f64,
    ) -> PyResult<Option<f64>> {
        self.task.first_order(&arrays::owned_vector("entries", entries)?, gain).or_raise()
    }

    /// The risk, its gradient in the entries, and in the gain.
    fn _risk_and_gradient<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (entries, gain) = (asked.vector("entries")?, asked.real("gain")?);
        let SpectralLandscape { task, response } = self.landscape(&asked)?;
        let work = move |_: &Watch| task.risk_and_gradient(&entries, gain, &response);
        let found = asked.left_behind(work)?.or_raise()?;
        let (risk, entries) = (Estimated::exactly(found.risk), Array::from(found.entries));
        Ok(dictionary!(py, risk: risk, entries: entries, gain: found.gain))
    }

    /// A gradient flow from entries and gain, one vector.
    fn _flow<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Answering { response, still, .. } = response_asked(&asked)?;
        let (start, landscape) =
            (asked.vector("initial")?, SpectralLandscape { task: self.task.clone(), response });
        flow::walked(py, &asked, &landscape, &start, still, &Exceptions::default())
    }

    /// Training from the paper's initialisation, with its distances from the infinite prompt's flow and limit.
    fn _train<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scale = asked.maybe("scale", Asked::real)?;
        let Answering { response, still, .. } = response_asked(&asked)?;
        let options = flow::options(&asked, still, self.task.groups().len() + 1)?;
        let task = self.task.clone();
        let work = move |watch: &Watch| train(&task, &response, scale, &options, watch);
        let found = asked.left_behind(work)?.or_raise()?;
        let answer = flow::columns(py, &found.trajectory)?;
        let beside = found.trajectory.rows.iter().map(|row| {
            let same = found.distance_to_infinite.iter().find(|(time, _)| *time == row.time);
            // Both start at the same point.
            same.map_or(if row.time == 0.0 { 0.0 } else { f64::NAN }, |(_, distance)| *distance)
        });
        let more = dictionary!(py, distance_to_infinite: beside.collect::<Array>(),
            distance_to_limit: Array::from(found.distance_to_limit), scale: found.scale,
            within_theorem: found.within_theorem);
        answer.update(more.as_mapping())?;
        Ok(answer)
    }

    /// The stationary point next to a guess, entries and gain in one vector; None if there is no minimum nearby.
    fn _settle(&self, asked: Asked<'_>) -> PyResult<Option<Array>> {
        let (guess, stationary) = (asked.vector("guess")?, asked.real("stationary")?);
        let landscape = self.landscape(&asked)?;
        let found = asked.left_behind(move |_| settle(&landscape, &guess, stationary))?.or_raise()?;
        Ok(found.map(Array::from))
    }

    /// How the search ended, the smallest length, and the excess risk there and one token earlier.
    fn _horizon<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
        let scale = asked.maybe("scale", Asked::real)?.unwrap_or(0.5 * self.task.proved_scale());
        let tolerance = asked.real("tolerance")?;
        let task = self.task.clone();
        let work = move |watch: &Watch| training_horizon(&task, scale, tolerance, watch);
        let found = asked.left_behind(work)?.or_raise()?;
        let (error, before) = match found {
            Horizon::Found { error, before, .. } => (Some(error), before),
            Horizon::Beyond { error, .. } => (Some(error), None),
            Horizon::Stopped { .. } => (None, None),
        };
        Ok(dictionary!(py, outcome: found.name(), length: found.length().map(|length| length.get()),
            excess_risk: error.map(Estimated), excess_before: before.map(Estimated)))
    }

    fn __repr__(&self) -> String {
        let (dimension, groups) = (self.task.dimension(), self.task.groups().len());
        format!("SpectralTask(dimension={dimension}, groups={groups})")
    }
}

getters! { PySpectralTask, own:
    /// The dimension d, the sum of the multiplicities.
    dimension: u64 = own.task.dimension();
    /// The eigenvalue of Σ in each group.
    eigenvalues: Array = own.task.groups().iter().map(|group| group.eigenvalue).collect();
    /// The eigenvalue of Σ_q in each group.
    query_eigenvalues: Array = own.task.groups().iter().map(|group| group.query_eigenvalue).collect();
    /// The number of directions of each group.
    multiplicities: Array<i64> = own.task.groups().iter().map(|group| i64::from(group.multiplicity)).collect();
    /// The eigenvectors, columns in the order of the groups; None for a task given by eigenvalues.
    eigenvectors: Option<Array> = own.vectors.as_ref().map(|vectors| vectors.as_ref().into());
    /// Half the variance of the query's noise.
    noise_floor: f64 = own.task.noise_floor();
    /// √2/(d^¼‖Σ‖): the paper's theorem is proved for initial scales α below this.
    proved_scale: f64 = own.task.proved_scale();
}
