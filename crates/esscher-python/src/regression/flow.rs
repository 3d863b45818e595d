//! Gradient flows: options with their limits, and trajectories as dictionaries of arrays.

use crate::arrays;
use crate::failure::choice;
use crate::whole;
use esscher_core::regression::{FlowEnding, FlowOptions, Method, Response, Trajectory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What a user may say about a flow; what is not said is chosen for the landscape.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct Wishes<'py> {
    end_time: f64,
    rows: Bound<'py, PyAny>,
    tolerance: Option<f64>,
    stationary: Option<f64>,
    largest: f64,
    method: Option<String>,
}

/// Numbers in all rows of a trajectory: a gigabyte.
const MOST_NUMBERS: usize = 1 << 27;

/// Parameters of a stiff flow: its Jacobian is their square.
const MOST_STIFF: usize = 5_000;

impl Wishes<'_> {
    /// Options of a flow of this many parameters.
    pub(super) fn options(
        &self,
        response: &Response,
        linear: bool,
        parameters: usize,
    ) -> PyResult<FlowOptions> {
        let still = linear || response.is_infinite();
        let mut options = if still { FlowOptions::without_drift() } else { FlowOptions::default() };
        options.rows = whole::count("rows", &self.rows, 1)? as usize;
        if options.rows.saturating_add(1).saturating_mul(parameters) > MOST_NUMBERS {
            return Err(PyValueError::new_err(format!(
                "rows is {}: with {parameters} parameters a trajectory may have at most {} rows",
                options.rows,
                MOST_NUMBERS / parameters.max(1)
            )));
        }
        (options.end_time, options.largest) = (self.end_time, self.largest);
        options.tolerance = self.tolerance.unwrap_or(options.tolerance);
        options.stationary = self.stationary.unwrap_or(options.stationary);
        if let Some(method) = &self.method {
            let methods = [("explicit", Method::Explicit), ("stiff", Method::Stiff)];
            options.method = choice("method", method, &methods)?;
        } else if parameters > MOST_STIFF {
            options.method = Method::Explicit;
        }
        check_stiff(options.method, parameters)?;
        Ok(options)
    }
}

/// Refuses a Jacobian that would not fit into memory.
pub(super) fn check_stiff(method: Method, parameters: usize) -> PyResult<()> {
    if method == Method::Explicit || parameters <= MOST_STIFF {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "the stiff method needs the square of {parameters} parameters, at most {MOST_STIFF} are supported: \
         take method=\"explicit\", or a start that commutes with the covariances"
    )))
}

/// A trajectory as columns, its parameters as a (rows, parameters) array, and how it ended.
pub(super) fn columns<'py>(py: Python<'py>, trajectory: &Trajectory) -> PyResult<Bound<'py, PyDict>> {
    let answer = PyDict::new(py);
    let column = |read: fn(&esscher_core::regression::FlowRow) -> f64| {
        arrays::vector(py, trajectory.rows.iter().map(read).collect())
    };
    answer.set_item("time", column(|row| row.time))?;
    answer.set_item("risk", column(|row| row.risk))?;
    answer.set_item("gradient_norm", column(|row| row.gradient_norm))?;
    answer.set_item("balance", column(|row| row.balance))?;
    let size = trajectory.rows.first().map_or(0, |row| row.parameters.len());
    let parameters = trajectory.rows.iter().flat_map(|row| row.parameters.iter().copied()).collect();
    answer.set_item("parameters", arrays::array(py, parameters, &[trajectory.rows.len(), size])?)?;
    answer.set_item("ending", trajectory.ending.to_string())?;
    answer.set_item("stationary", matches!(trajectory.ending, FlowEnding::Stationary { .. }))?;
    answer.set_item("steps", trajectory.steps)?;
    Ok(answer)
}
