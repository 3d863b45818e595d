//! Gradient flows: options with their limits, and trajectories as dictionaries of arrays.

use crate::prelude::*;
use esscher_core::Ending;
use esscher_core::regression::{FlowOptions, FlowRow, Landscape, Method, Trajectory, flow};

/// Numbers in all rows of a trajectory: a gigabyte.
const MOST_NUMBERS: usize = 1 << 27;

/// Parameters of a stiff flow: its Jacobian is their square.
const MOST_STIFF: usize = 5_000;

/// Options of a flow of this many parameters; what was not said is chosen for a landscape with or without drift.
pub(super) fn options(asked: &Asked<'_>, still: bool, parameters: usize) -> PyResult<FlowOptions> {
    let mut options = if still { FlowOptions::without_drift() } else { FlowOptions::default() };
    options.rows = asked.count("rows", 1)? as usize;
    if options.rows.saturating_add(1).saturating_mul(parameters) > MOST_NUMBERS {
        return Err(PyValueError::new_err(format!(
            "rows is {}: with {parameters} parameters a trajectory may have at most {} rows",
            options.rows,
            MOST_NUMBERS / parameters.max(1)
        )));
    }
    (options.end_time, options.largest) = (asked.real("end_time")?, asked.real("largest")?);
    options.tolerance = asked.maybe("tolerance", Asked::real)?.unwrap_or(options.tolerance);
    options.stationary = asked.maybe("stationary", Asked::real)?.unwrap_or(options.stationary);
    let methods = [("explicit", Method::Explicit), ("stiff", Method::Stiff)];
    if let Some(method) = asked.maybe("method", |asked, what| asked.choice(what, &methods))? {
        options.method = method;
    } else if parameters > MOST_STIFF {
        options.method = Method::Explicit;
    }
    check_stiff(options.method, parameters)?;
    Ok(options)
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

/// Follows the gradient from a start: [`columns`]. What a user's own law raises meanwhile is raised.
pub(super) fn walked<'py>(
    py: Python<'py>,
    asked: &Asked<'py>,
    landscape: &dyn Landscape,
    start: &[f64],
    still: bool,
    exceptions: &Exceptions,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(asked, still, start.len())?;
    columns(py, &exceptions.watched(asked, |watch| flow(landscape, start, &options, watch))?)
}

/// A trajectory as columns, its parameters as a (rows, parameters) array, and how it ended.
pub(super) fn columns<'py>(py: Python<'py>, trajectory: &Trajectory) -> PyResult<Bound<'py, PyDict>> {
    let rows = &trajectory.rows;
    let column = |read: fn(&FlowRow) -> f64| rows.iter().map(read).collect::<Array>();
    let size = rows.first().map_or(0, |row| row.parameters.len());
    let parameters = rows.iter().flat_map(|row| row.parameters.iter().copied()).collect();
    Ok(dictionary!(py,
        time: column(|row| row.time),
        risk: column(|row| row.risk),
        gradient_norm: column(|row| row.gradient_norm),
        balance: column(|row| row.balance),
        parameters: Array::new(parameters, [rows.len(), size]),
        ending: &trajectory.sentence,
        stationary: trajectory.ending == Ending::Stationary,
        steps: trajectory.steps))
}
