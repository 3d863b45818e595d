//! What the integrators of ordinary differential equations share: tolerances, states, and the loop over steps.

use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::numerics::check;
use std::ops::ControlFlow;

/// How accurate each step must be and how many steps may be spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Allowed error of a step relative to the size of each entry.
    pub relative_tolerance: f64,
    /// Allowed error of a step in entries near zero, in the units of the entries.
    pub absolute_tolerance: f64,
    /// Accepted steps that an integration may take.
    pub max_steps: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { relative_tolerance: 1e-9, absolute_tolerance: 1e-12, max_steps: 100_000 }
    }
}

impl Settings {
    /// Tolerances below rounding can never be met, whatever the step.
    const FINEST: f64 = 1e-15;

    pub(super) fn check(&self) -> Result<()> {
        check::positive("the absolute tolerance", self.absolute_tolerance)?;
        if !(self.relative_tolerance >= Self::FINEST && self.relative_tolerance < 1.0) {
            return Err(Error::OutOfRange {
                what: "the relative tolerance",
                value: self.relative_tolerance,
                expected: "a number from 1e-15 to 1",
            });
        }
        Ok(())
    }

    /// Root mean square of the error, each entry in units of what is allowed: at most 1 is accepted.
    pub(super) fn norm(&self, error: impl Iterator<Item = f64>, before: &[f64], after: &[f64]) -> f64 {
        let mut total = 0.0;
        for ((error, left), right) in error.zip(before).zip(after) {
            let allowed = self.absolute_tolerance + self.relative_tolerance * left.abs().max(right.abs());
            total += (error / allowed).powi(2);
        }
        (total / before.len() as f64).sqrt()
    }
}

/// Where the solution stands, with what the next step needs.
#[derive(Debug, Clone)]
pub struct State {
    /// The time t.
    pub(super) time: f64,
    /// y(t), as long as the slope.
    pub(super) value: Vec<f64>,
    /// dy/dt at t: the last stage of a step is the first of the next.
    pub(super) slope: Vec<f64>,
    /// What step control proposes.
    pub(super) next_step: f64,
    /// Error of the step before, for the integral part of step control.
    pub(super) previous_error: f64,
}

impl State {
    /// The time t.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// y(t).
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// dy/dt at the time of the state.
    pub fn slope(&self) -> &[f64] {
        &self.slope
    }

    /// The step that step control proposes next.
    pub fn next_step(&self) -> f64 {
        self.next_step
    }
}

/// A solution at the times asked for, as far as it got.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The times asked for that were reached.
    pub times: Vec<f64>,
    /// y at those times.
    pub values: Vec<Vec<f64>>,
    /// The last state, from which an integration can go on; where it is stuck, its next step is one that was too long.
    pub last: State,
    /// Accepted steps.
    pub steps: usize,
    /// Attempts that were thrown away.
    pub rejected: usize,
    /// Why the integration ended: completed, stopped, stuck, out of steps, or what the observer said.
    pub ending: Ending,
}

/// A method that advances a solution step by step.
pub(super) trait Stepper {
    /// What is known of a step beside the state after it.
    type Info;

    /// One accepted step, not past `towards` and exactly onto it if it is within reach.
    fn step(&mut self, state: &State, towards: f64) -> Result<Stepped<Self::Info>>;

    /// The solution at a time inside the step that began at `before`.
    fn inside(&mut self, before: &State, info: &Self::Info, time: f64) -> Result<Vec<f64>>;
}

/// How an attempt to advance ended.
pub(super) enum Stepped<I> {
    /// A step was accepted, after so many that were not.
    To { state: State, rejected: usize, info: I },
    /// The step that was still too long.
    Stuck { step_size: f64 },
}

/// Strings steps together from `state` to the last of `save_times` and reads the solution at each of them.
pub(super) fn drive<S: Stepper>(
    settings: &Settings,
    stepper: &mut S,
    state: State,
    save_times: &[f64],
    monitor: &dyn Monitor,
    mut observe: impl FnMut(&State, &S::Info) -> Result<ControlFlow<Ending>>,
) -> Result<Solution> {
    check_times(state.time, save_times)?;
    let end = save_times[save_times.len() - 1];
    let mut solution = Solution {
        times: vec![],
        values: vec![],
        last: state,
        steps: 0,
        rejected: 0,
        ending: Ending::Completed,
    };
    if save_times[0] == solution.last.time {
        solution.times.push(save_times[0]);
        solution.values.push(solution.last.value.clone());
    }
    while solution.last.time < end {
        if monitor.should_stop() {
            solution.ending = Ending::Stopped;
            break;
        }
        if solution.steps >= settings.max_steps {
            solution.ending = Ending::OutOfSteps;
            break;
        }
        let (state, info) = match stepper.step(&solution.last, end)? {
            Stepped::To { state, rejected, info } => {
                solution.rejected += rejected;
                (state, info)
            }
            Stepped::Stuck { step_size } => {
                solution.last.next_step = step_size;
                solution.ending = Ending::Stuck;
                break;
            }
        };
        solution.steps += 1;
        for &time in save_times[solution.times.len()..].iter().take_while(|&&time| time <= state.time) {
            let value = if time == state.time {
                state.value.clone()
            } else {
                stepper.inside(&solution.last, &info, time)?
            };
            solution.times.push(time);
            solution.values.push(value);
        }
        monitor.progress(solution.times.len(), save_times.len());
        let verdict = observe(&state, &info)?;
        solution.last = state;
        if let ControlFlow::Break(ending) = verdict {
            solution.ending = ending;
            break;
        }
    }
    Ok(solution)
}

fn check_times(start: f64, save_times: &[f64]) -> Result<()> {
    check::not_empty("the list of save times", save_times.len())?;
    check::finite_vector("save times", save_times)?;
    if save_times[0] < start {
        let expected = "a time not before the start";
        return Err(Error::OutOfRange { what: "the first save time", value: save_times[0], expected });
    }
    match save_times.windows(2).find(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::OutOfRange {
            what: "a save time",
            value: pair[1],
            expected: "times in increasing order",
        }),
    }
}

/// The slope at the start, once settings and start are found to make sense.
pub(super) fn first_slope(
    settings: &Settings,
    time: f64,
    value: &[f64],
    system: impl FnOnce(&mut [f64]) -> Result<()>,
) -> Result<Vec<f64>> {
    settings.check()?;
    check::not_empty("the value at the start", value.len())?;
    check::finite_vector("start", value)?;
    check::finite_vector("start time", &[time])?;
    let mut slope = vec![0.0; value.len()];
    system(&mut slope)?;
    check::finite_result("the slope at the start", slope)
}

/// Compares value, slope and change of slope, each in units of what is allowed (Hairer et al., II.4).
pub(super) fn first_step(
    settings: &Settings,
    system: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    time: f64,
    value: &[f64],
    slope: &[f64],
) -> Result<f64> {
    let size = settings.norm(value.iter().copied(), value, value);
    let speed = settings.norm(slope.iter().copied(), value, value);
    let euler_step = if size < 1e-5 || speed < 1e-5 { 1e-6 } else { 0.01 * size / speed };
    let probe: Vec<f64> = value.iter().zip(slope).map(|(y, k)| y + euler_step * k).collect();
    let mut probe_slope = vec![0.0; value.len()];
    if !evaluate(system, time + euler_step, &probe, &mut probe_slope)? {
        // The neighbourhood is already out of bounds: begin small, step control does the rest.
        return Ok(1e-3 * euler_step);
    }
    let change = probe_slope.iter().zip(slope).map(|(after, before)| after - before);
    let acceleration = settings.norm(change, value, value) / euler_step;
    let fastest = speed.max(acceleration);
    let order_step =
        if fastest <= 1e-15 { 1e-6f64.max(1e-3 * euler_step) } else { (0.01 / fastest).powf(0.2) };
    let step = order_step.min(100.0 * euler_step);
    Ok(if step.is_finite() && step > 0.0 { step } else { 1e-6 })
}

/// Below a few units in the last place of t a step no longer moves time as intended.
pub(super) fn resolution(time: f64) -> f64 {
    (16.0 * f64::EPSILON * time.abs()).max(1e3 * f64::MIN_POSITIVE)
}

/// Steps are this much shorter than the error asks for.
pub(super) const SAFETY: f64 = 0.9;
/// A step is at most five times shorter than the one before.
pub(super) const SMALLEST_FACTOR: f64 = 0.2;

/// Whether the system could be evaluated here.
pub(super) fn evaluate(
    system: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    time: f64,
    value: &[f64],
    slope: &mut [f64],
) -> Result<bool> {
    if value.iter().any(|entry| !entry.is_finite()) {
        return Ok(false);
    }
    match system(time, value, slope) {
        Ok(()) => Ok(slope.iter().all(|entry| entry.is_finite())),
        Err(Error::Overflow { .. } | Error::OutsideDomain { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
