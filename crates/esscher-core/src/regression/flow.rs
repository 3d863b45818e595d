//! Gradient flow on a landscape: θ′ = −∇R, from the paper's initialisation, until it stands still or something else.
//!
//! At finite length the valley of the infinite prompt has a slope of order 1/L along its floor: a slow drift beside
//! fast contraction, which is stiff. [`Method::Stiff`] is the default; [`Method::Explicit`] is more accurate per
//! unit of work where there is no drift: infinite prompts, linear attention, and short times.

use super::Landscape;
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::numerics::{check, dormand_prince, linalg, rosenbrock};
use faer::Mat;
use faer::linalg::solvers::Solve;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// How to integrate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Dormand and Prince, orders 5 and 4: cheap steps, as short as the fastest direction asks.
    Explicit,
    /// RODAS, orders 4 and 3, with a Jacobian by central differences of the gradient: steps as long as the slow
    /// directions allow.
    Stiff,
}

/// When to end, and how accurately to get there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowOptions {
    /// The flow ends here at the latest.
    pub end_time: f64,
    /// Stationary means: the gradient's norm over all entries of the layer is at most this.
    pub stationary: f64,
    /// Rows of the trajectory, spread evenly in ln(1 + time).
    pub rows: usize,
    /// Error per step relative to the size of each parameter.
    pub tolerance: f64,
    /// Diverged means: the norm of the parameters exceeds this.
    pub largest: f64,
    /// The integrator.
    pub method: Method,
}

impl Default for FlowOptions {
    fn default() -> Self {
        FlowOptions {
            end_time: 1e9,
            stationary: 1e-9,
            rows: 100,
            tolerance: 1e-8,
            largest: 1e6,
            method: Method::Stiff,
        }
    }
}

impl FlowOptions {
    /// For infinite prompts and linear attention, where nothing drifts: the explicit method with tight steps.
    ///
    /// Errors of steps move the flow along the floor of the valley, where nothing brings it back: the limit is as
    /// accurate as the steps were.
    pub fn without_drift() -> Self {
        FlowOptions {
            method: Method::Explicit,
            tolerance: 1e-12,
            stationary: 1e-10,
            ..FlowOptions::default()
        }
    }
}

/// A moment of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowRow {
    /// The time of this moment.
    pub time: f64,
    /// Parameters, as the landscape orders them.
    pub parameters: Vec<f64>,
    /// Risk, of the class of the landscape: exact for spectral and block forms and linear attention, the average over
    /// its fixed points or draws for the others.
    pub risk: f64,
    /// Norm of the gradient.
    pub gradient_norm: f64,
    /// ‖scores‖² − ‖values‖², conserved on infinite prompts.
    pub balance: f64,
}

/// A flow as far as it got: rows at the times asked for, and one where it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// In the order of time; the last is the end.
    pub rows: Vec<FlowRow>,
    /// Why it ended: stationary, completed (the last time was reached), diverged, stuck, out of steps or stopped.
    pub ending: Ending,
    /// The ending in words, with its numbers.
    pub sentence: String,
    /// Accepted steps.
    pub steps: usize,
}

impl Trajectory {
    /// Where the flow ended.
    pub fn last(&self) -> Result<&FlowRow> {
        self.rows.last().ok_or(Error::Empty { what: "the rows of the trajectory" })
    }

    /// Distance of every row from a point, such as the limit of the infinite prompt.
    pub fn distances_to(&self, landscape: &dyn Landscape, point: &[f64]) -> Result<Vec<f64>> {
        check::vector("the point", landscape.size(), point)?;
        Ok(self.rows.iter().map(|row| landscape.distance(&row.parameters, point)).collect())
    }

    /// Distance from another trajectory at the times that both have, such as the infinite prompt's: (time, distance).
    pub fn distances(&self, landscape: &dyn Landscape, other: &Trajectory) -> Vec<(f64, f64)> {
        self.rows
            .iter()
            .filter_map(|row| {
                let there = other.rows.iter().find(|there| there.time == row.time)?;
                Some((row.time, landscape.distance(&row.parameters, &there.parameters)))
            })
            .collect()
    }
}

/// Rows that a trajectory may have.
const MOST_ROWS: usize = 1_000_000;

/// Runs the flow from these parameters.
///
/// ```
/// use esscher_core::Unwatched;
/// use esscher_core::regression::{FlowOptions, Response, SpectralLandscape, SpectralTask, flow};
/// let landscape = SpectralLandscape { task: SpectralTask::isotropic(4, 0.0, 1.0)?, response: Response::infinite() };
/// let trajectory = flow(&landscape, &[0.3, 0.6], &FlowOptions::default(), &Unwatched)?;
/// let end = trajectory.last()?;
/// assert!((end.parameters[0] * end.parameters[1] - 1.0).abs() < 1e-8); // A b = Σ⁻¹
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// Options or parameters that make no sense. Divergence, or a stop, is an ending and not an error.
pub fn flow(
    landscape: &dyn Landscape,
    start: &[f64],
    options: &FlowOptions,
    monitor: &dyn Monitor,
) -> Result<Trajectory> {
    if !(1..=MOST_ROWS).contains(&options.rows) {
        return Err(Error::OutOfRange {
            what: "the rows of the trajectory",
            value: options.rows as f64,
            expected: "a whole number from 1 to 1000000",
        });
    }
    check::positive("the end time", options.end_time)?;
    let times: Vec<f64> = (0..options.rows)
        .map(|row| {
            let fraction = (row + 1) as f64 / options.rows as f64;
            if row + 1 == options.rows {
                options.end_time
            } else {
                (fraction * options.end_time.ln_1p()).exp_m1()
            }
        })
        .collect();
    flow_through(landscape, start, &times, options, monitor)
}

/// The same with rows at these times (increasing, the last is the end; `end_time` and `rows` are not used).
pub fn flow_through(
    landscape: &dyn Landscape,
    start: &[f64],
    times: &[f64],
    options: &FlowOptions,
    monitor: &dyn Monitor,
) -> Result<Trajectory> {
    options.check()?;
    check::vector("the parameters", landscape.size(), start)?;
    let first = row(landscape, 0.0, start)?;
    if first.gradient_norm <= options.stationary {
        let sentence = sentence(Ending::Stationary, 0.0, first.gradient_norm);
        return Ok(Trajectory { rows: vec![first], ending: Ending::Stationary, sentence, steps: 0 });
    }
    let settings = dormand_prince::Settings {
        relative_tolerance: options.tolerance,
        absolute_tolerance: 1e-3 * options.tolerance,
        max_steps: 1_000_000,
    };
    let downhill = |value: &[f64], slope: &mut [f64]| -> Result<()> {
        landscape.slope(value, slope)?;
        slope.iter_mut().for_each(|entry| *entry = -*entry);
        Ok(())
    };
    let observe = |state: &dormand_prince::State| -> ControlFlow<Ending> {
        if !(landscape.norm(state.value()) <= options.largest) {
            ControlFlow::Break(Ending::Diverged)
        } else if landscape.norm(state.slope()) <= options.stationary {
            ControlFlow::Break(Ending::Stationary)
        } else {
            ControlFlow::Continue(())
        }
    };
    let solution = match options.method {
        Method::Explicit => {
            let mut system = |_time: f64, value: &[f64], slope: &mut [f64]| downhill(value, slope);
            let state = dormand_prince::init(&settings, &mut system, 0.0, start)?;
            dormand_prince::integrate(&settings, &mut system, state, times, monitor, |state, _| {
                Ok(observe(state))
            })?
        }
        Method::Stiff => {
            let mut system = |value: &[f64], slope: &mut [f64]| downhill(value, slope);
            let mut jacobian = |value: &[f64]| curvature(landscape, value);
            rosenbrock::integrate(
                &settings,
                &mut system,
                &mut jacobian,
                0.0,
                start,
                times,
                monitor,
                |state| Ok(observe(state)),
            )?
        }
    };
    let mut rows = vec![first];
    for (&time, value) in solution.times.iter().zip(&solution.values) {
        if time > 0.0 {
            rows.push(row(landscape, time, value)?);
        }
    }
    let last = &solution.last;
    if rows.last().is_none_or(|row| row.time < last.time()) && landscape.norm(last.value()).is_finite() {
        match row(landscape, last.time(), last.value()) {
            Ok(end) => rows.push(end),
            // It diverged beyond what has a risk: the ending says so.
            Err(Error::Overflow { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let ending = solution.ending;
    let moved = if ending == Ending::Diverged { last.value() } else { last.slope() };
    let sentence = sentence(ending, last.time(), landscape.norm(moved));
    Ok(Trajectory { rows, ending, sentence, steps: solution.steps })
}

/// An ending at a time in words, with the norm of the parameters where they diverged, that of the gradient elsewhere.
fn sentence(ending: Ending, time: f64, norm: f64) -> String {
    match ending {
        Ending::Stationary => format!("stationary at time {time:.6}: the gradient's norm is {norm:.1e}"),
        Ending::Completed => "reached the end time".to_string(),
        Ending::Diverged => format!("diverged at time {time:.6}: the parameters' norm is {norm:.1e}"),
        Ending::Stuck => format!(
            "stuck at time {time:.6}: the step fell below the resolution of time; loosen the tolerance"
        ),
        Ending::OutOfSteps => {
            format!("the allowance of steps was spent by time {time:.6}; use the stiff method")
        }
        Ending::Stopped => format!("stopped by the monitor at time {time:.6}"),
        Ending::GoalReached | Ending::Collapsed | Ending::BlownUp => {
            format!("{} at time {time:.6}", ending.name())
        }
    }
}

/// The stationary point next to a guess, by Newton's method; none if the steps leave the guess's neighbourhood, do
/// not settle, or end where the risk has no minimum.
///
/// For following a limit through neighbouring lengths: a flow decides which valley, this only where its floor is.
pub fn settle(landscape: &dyn Landscape, guess: &[f64], stationary: f64) -> Result<Option<Vec<f64>>> {
    check::vector("the parameters", landscape.size(), guess)?;
    check::positive("the gradient norm called stationary", stationary)?;
    let mut value = guess.to_vec();
    let mut gradient = vec![0.0; guess.len()];
    for _ in 0..20 {
        landscape.slope(&value, &mut gradient)?;
        let hessian = curvature(landscape, &value)? * faer::Scale(-1.0);
        if landscape.norm(&gradient) <= stationary {
            // ∇² of the layer is symmetric after scaling by the weights; a minimum has no negative direction.
            let scaled = Mat::from_fn(guess.len(), guess.len(), |i, j| {
                hessian[(i, j)] * (landscape.weight(i) / landscape.weight(j)).sqrt()
            });
            let symmetric = linalg::symmetric_part(scaled.as_ref());
            let lowest = linalg::SymmetricEigen::new("the curvature", symmetric.as_ref())?.values[0];
            return Ok((lowest > 0.0).then_some(value));
        }
        let right = Mat::from_fn(guess.len(), 1, |i, _| gradient[i]);
        let step = hessian.partial_piv_lu().solve(&right);
        for (i, entry) in value.iter_mut().enumerate() {
            *entry -= step[(i, 0)];
        }
        let size = landscape.norm(guess);
        if !(landscape.distance(&value, guess) <= 0.5 * size) {
            return Ok(None);
        }
    }
    Ok(None)
}

impl FlowOptions {
    fn check(&self) -> Result<()> {
        check::positive("the gradient norm called stationary", self.stationary)?;
        check::positive("the norm called diverged", self.largest)
    }
}

fn row(landscape: &dyn Landscape, time: f64, parameters: &[f64]) -> Result<FlowRow> {
    let mut gradient = vec![0.0; parameters.len()];
    let risk = landscape.slope(parameters, &mut gradient)?;
    Ok(FlowRow {
        time,
        parameters: parameters.to_vec(),
        risk,
        gradient_norm: check::finite_number("the norm of the gradient", landscape.norm(&gradient))?,
        balance: landscape.balance(parameters),
    })
}

/// The Jacobian of the flow, −∂∇R, by differences of the gradient, its columns in parallel.
fn curvature(landscape: &dyn Landscape, parameters: &[f64]) -> Result<Mat<f64>> {
    let size = parameters.len();
    let scale = parameters.iter().fold(0.0, |largest: f64, entry| largest.max(entry.abs())).max(1e-3);
    let columns: Vec<Vec<f64>> = (0..size)
        .into_par_iter()
        .map(|index| {
            // Gradients are good to about 1e-10 where they are tabulated: this balances that with the third derivative.
            let step = 3e-4 * parameters[index].abs().max(1e-3 * scale);
            let slope_at = |offset: f64| -> Result<Vec<f64>> {
                let mut moved = parameters.to_vec();
                moved[index] += offset;
                let mut gradient = vec![0.0; size];
                landscape.slope(&moved, &mut gradient)?;
                Ok(gradient)
            };
            // Central where both sides can be computed, else one-sided.
            let (ahead, behind, width) = match (slope_at(step), slope_at(-step)) {
                (Ok(ahead), Ok(behind)) => (ahead, behind, 2.0 * step),
                (Ok(ahead), Err(_)) => (ahead, slope_at(0.0)?, step),
                (Err(_), Ok(behind)) => (slope_at(0.0)?, behind, step),
                (Err(error), Err(_)) => return Err(error),
            };
            Ok(ahead.iter().zip(&behind).map(|(ahead, behind)| (behind - ahead) / width).collect())
        })
        .collect::<Result<_>>()?;
    Ok(Mat::from_fn(size, size, |i, j| columns[j][i]))
}
