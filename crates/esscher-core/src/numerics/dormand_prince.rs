//! Ordinary differential equations with error control: the explicit pair of Dormand and Prince, of orders 5 and 4.
//!
//! [`init`] prepares a state, [`step`] advances it by one accepted step, [`integrate`] strings steps
//! together and reads the solution at the times asked for. Time runs forwards. A right-hand side is a
//! closure `(time, value, slope) -> Result<()>` that writes dy/dt into `slope`.
//!
//! Method, step control and continuous extension: Hairer, Nørsett and Wanner 1993, sections II.4–II.6
//! (keys `dormand1980`, `hairer1993`).

use super::integration::{
    SAFETY, SMALLEST_FACTOR, Stepped, Stepper, drive, evaluate, first_slope, first_step, resolution,
};
use crate::ending::Ending;
use crate::error::Result;
use crate::monitor::Monitor;
use crate::numerics::check;
use std::ops::ControlFlow;

pub use super::integration::{Settings, Solution, State};

/// What a step tells its reader.
#[derive(Debug, Clone)]
pub struct StepInfo {
    /// Length of the step.
    pub step_size: f64,
    /// Estimated error of the step in units of the tolerance, at most 1.
    pub error: f64,
    /// Attempts that were thrown away before this step was accepted.
    pub rejected: usize,
    /// The solution inside the step.
    pub interpolant: Interpolant,
}

/// How an attempt to advance ended.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "lives for one step, and is almost always the large variant")]
pub enum Advance {
    /// A step was accepted.
    Stepped {
        /// The state after the step.
        state: State,
        /// How the step went.
        info: StepInfo,
    },
    /// Only steps below the resolution of time would be accurate: a singularity or extreme stiffness.
    Stuck {
        /// The step that was still too long.
        step_size: f64,
    },
}

/// y inside one step, to fourth order: y(t₀ + s h) = r₀ + s(r₁ + (1−s)(r₂ + s(r₃ + (1−s) r₄))).
///
/// It agrees with value and slope at both ends of the step. Its local error is O(h⁵), so values read
/// inside steps converge as fast as the steps themselves.
#[derive(Debug, Clone)]
pub struct Interpolant {
    start_time: f64,
    step_size: f64,
    terms: [Vec<f64>; 5],
}

impl Interpolant {
    /// The solution at a time of the step; a time outside the step is an extrapolation.
    pub fn at(&self, time: f64) -> Vec<f64> {
        let s = (time - self.start_time) / self.step_size;
        let [r0, r1, r2, r3, r4] = &self.terms;
        (0..r0.len())
            .map(|i| r0[i] + s * (r1[i] + (1.0 - s) * (r2[i] + s * (r3[i] + (1.0 - s) * r4[i]))))
            .collect()
    }

    /// The time at which the step begins.
    pub fn start_time(&self) -> f64 {
        self.start_time
    }
}

/// Prepares the state at the start: first slope, first step.
///
/// # Errors
/// `Error::NotFinite` for the start, `Error::OutOfRange` for tolerances that make no sense,
/// `Error::Overflow` and what `system` itself returns if it fails at the start.
pub fn init(
    settings: &Settings,
    system: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    time: f64,
    value: &[f64],
) -> Result<State> {
    let slope = first_slope(settings, time, value, |slope| system(time, value, slope))?;
    let next_step = first_step(settings, system, time, value, &slope)?;
    Ok(State { time, value: value.to_vec(), slope, next_step, previous_error: 1e-4 })
}

/// Advances by one accepted step, not past `towards` and exactly onto it if it is within reach.
///
/// An attempt at which `system` overflows, leaves its domain or hands back something not finite counts
/// as too long; any other error of `system` is passed on.
pub fn step(
    settings: &Settings,
    system: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    state: &State,
    towards: f64,
) -> Result<Advance> {
    let remaining = towards - state.time;
    check::positive("the time left to go", remaining)?;
    let proposed = state.next_step;
    let mut step_size = proposed;
    let mut rejected = 0;
    loop {
        // A step that nearly arrives is stretched by up to 1 %, so that no splinter is left over.
        let lands = 1.01 * step_size >= remaining;
        if lands {
            step_size = remaining;
        } else if step_size <= resolution(state.time) {
            return Ok(Advance::Stuck { step_size });
        }
        let shrink = match stages(settings, system, state, step_size)? {
            Some(attempt) if attempt.error <= 1.0 => {
                let mut next_step = step_size * growth(attempt.error, state.previous_error);
                if rejected > 0 {
                    next_step = next_step.min(step_size);
                } else if lands {
                    // The step was cut to land; what was proposed before the cut still stands.
                    next_step = next_step.max(proposed);
                }
                let time = if lands { towards } else { state.time + step_size };
                let info = StepInfo {
                    step_size,
                    error: attempt.error,
                    rejected,
                    interpolant: interpolant(state, step_size, &attempt),
                };
                let [.., slope] = attempt.slopes;
                let previous_error = attempt.error.max(1e-4);
                let state = State { time, value: attempt.value, slope, next_step, previous_error };
                return Ok(Advance::Stepped { state, info });
            }
            Some(attempt) => (SAFETY / attempt.error.powf(PROPORTIONAL)).max(SMALLEST_FACTOR),
            None => SMALLEST_FACTOR,
        };
        rejected += 1;
        step_size *= shrink;
    }
}

const LARGEST_FACTOR: f64 = 10.0;
/// Weight of the previous error; 0.04 is Hairer's value for this pair.
const INTEGRAL: f64 = 0.04;
const PROPORTIONAL: f64 = 0.2 - 0.75 * INTEGRAL;

/// Step control with memory: smoother steps than from the last error alone.
fn growth(error: f64, previous_error: f64) -> f64 {
    let factor = SAFETY * previous_error.powf(INTEGRAL) / error.powf(PROPORTIONAL);
    factor.clamp(SMALLEST_FACTOR, LARGEST_FACTOR)
}

/// One attempt at a step: the seven slopes, the new value, the error in units of the tolerance.
struct Attempt {
    slopes: [Vec<f64>; 7],
    value: Vec<f64>,
    error: f64,
}

/// Nodes c of the seven stages.
const NODES: [f64; 7] = [0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0];

/// Coefficients a of the stages; the last row is the fifth-order solution.
const STAGES: [[f64; 6]; 7] = [
    [0.0; 6],
    [1.0 / 5.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0, 0.0],
    [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0, 0.0],
    [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0, 0.0],
    [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0, 0.0],
    [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
];

/// Fifth-order weights minus fourth-order weights.
const ERROR: [f64; 7] =
    [71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0];

/// Weights of the last term of the interpolant.
const DENSE: [f64; 7] = [
    -12715105075.0 / 11282082432.0,
    0.0,
    87487479700.0 / 32700410799.0,
    -10690763975.0 / 1880347072.0,
    701980252875.0 / 199316789632.0,
    -1453857185.0 / 822651844.0,
    69997945.0 / 29380423.0,
];

/// The seven stages of a step; `None` where the system could not be evaluated or the result is not finite.
fn stages(
    settings: &Settings,
    system: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    state: &State,
    step_size: f64,
) -> Result<Option<Attempt>> {
    let size = state.value.len();
    let mut slopes: [Vec<f64>; 7] = std::array::from_fn(|_| vec![0.0; size]);
    slopes[0].copy_from_slice(&state.slope);
    let mut value = state.value.clone();
    for stage in 1..7 {
        for (i, entry) in value.iter_mut().enumerate() {
            *entry = state.value[i] + step_size * weighted(&STAGES[stage], &slopes, i);
        }
        if !evaluate(system, state.time + NODES[stage] * step_size, &value, &mut slopes[stage])? {
            return Ok(None);
        }
    }
    let errors = (0..size).map(|i| step_size * weighted(&ERROR, &slopes, i));
    let error = settings.norm(errors, &state.value, &value);
    Ok(error.is_finite().then_some(Attempt { slopes, value, error }))
}

fn weighted(weights: &[f64], slopes: &[Vec<f64>; 7], entry: usize) -> f64 {
    weights.iter().zip(slopes).map(|(weight, slope)| weight * slope[entry]).sum()
}

fn interpolant(state: &State, step_size: f64, attempt: &Attempt) -> Interpolant {
    let terms = |term: fn(f64, f64, f64, f64) -> f64| -> Vec<f64> {
        let [first, .., last] = &attempt.slopes;
        let ends = state.value.iter().zip(&attempt.value);
        let slopes = first.iter().zip(last).map(|(first, last)| (step_size * first, step_size * last));
        ends.zip(slopes).map(|((&left, &right), (first, last))| term(left, right, first, last)).collect()
    };
    let terms = [
        state.value.clone(),
        terms(|left, right, _, _| right - left),
        terms(|left, right, first, _| first - (right - left)),
        terms(|left, right, first, last| 2.0 * (right - left) - first - last),
        (0..state.value.len()).map(|i| step_size * weighted(&DENSE, &attempt.slopes, i)).collect(),
    ];
    Interpolant { start_time: state.time, step_size, terms }
}

/// The observer that watches nothing.
pub fn unobserved(_state: &State, _info: &StepInfo) -> Result<ControlFlow<Ending>> {
    Ok(ControlFlow::Continue(()))
}

/// Integrates from `state` to the last of `save_times` and reads the solution at each of them.
///
/// The last time is landed on exactly; times inside a step are read from its [`Interpolant`]. The
/// observer sees each accepted step and may end the integration with an ending of its own; what was
/// asked for within that step is saved first. Progress counts saved times.
///
/// ```
/// use esscher_core::numerics::dormand_prince::{Settings, init, integrate, unobserved};
/// use esscher_core::{Ending, Unwatched};
/// let mut decay = |_time: f64, value: &[f64], slope: &mut [f64]| {
///     slope[0] = -value[0];
///     Ok(())
/// };
/// let settings = Settings::default();
/// let start = init(&settings, &mut decay, 0.0, &[1.0])?;
/// let solution = integrate(&settings, &mut decay, start, &[0.5, 1.0], &Unwatched, unobserved)?;
/// assert_eq!(solution.ending, Ending::Completed);
/// assert!((solution.values[1][0] - (-1f64).exp()).abs() < 1e-9);
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// `Error::Empty`, `Error::NotFinite` or `Error::OutOfRange` if the times are missing, not finite,
/// not increasing or before the state; errors of `system` as in [`step`], and of `observe`.
pub fn integrate(
    settings: &Settings,
    system: &mut impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
    state: State,
    save_times: &[f64],
    monitor: &dyn Monitor,
    observe: impl FnMut(&State, &StepInfo) -> Result<ControlFlow<Ending>>,
) -> Result<Solution> {
    settings.check()?;
    drive(settings, &mut Explicit { settings, system }, state, save_times, monitor, observe)
}

/// The pair as the loop over steps sees it.
struct Explicit<'a, S> {
    settings: &'a Settings,
    system: &'a mut S,
}

impl<S: FnMut(f64, &[f64], &mut [f64]) -> Result<()>> Stepper for Explicit<'_, S> {
    type Info = StepInfo;

    fn step(&mut self, state: &State, towards: f64) -> Result<Stepped<StepInfo>> {
        Ok(match step(self.settings, self.system, state, towards)? {
            Advance::Stepped { state, info } => Stepped::To { state, rejected: info.rejected, info },
            Advance::Stuck { step_size } => Stepped::Stuck { step_size },
        })
    }

    fn inside(&mut self, _before: &State, info: &StepInfo, time: f64) -> Result<Vec<f64>> {
        Ok(info.interpolant.at(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::monitor::Unwatched;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn oscillator(_time: f64, value: &[f64], slope: &mut [f64]) -> Result<()> {
        slope.copy_from_slice(&[value[1], -value[0]]);
        Ok(())
    }

    fn solve(
        settings: &Settings,
        mut system: impl FnMut(f64, &[f64], &mut [f64]) -> Result<()>,
        start: &[f64],
        save_times: &[f64],
    ) -> Result<Solution> {
        let state = init(settings, &mut system, 0.0, start)?;
        integrate(settings, &mut system, state, save_times, &Unwatched, unobserved)
    }

    /// Largest error of the oscillator over [0, 3] with fixed steps: (at the nodes, inside the steps).
    fn fixed_step_errors(steps: usize) -> (f64, f64) {
        let settings = Settings::default();
        let mut state = init(&settings, &mut oscillator, 0.0, &[1.0, 0.0]).unwrap();
        let h = 3.0 / steps as f64;
        let (mut at_nodes, mut inside): (f64, f64) = (0.0, 0.0);
        for _ in 0..steps {
            let attempt = stages(&settings, &mut oscillator, &state, h).unwrap().unwrap();
            let curve = interpolant(&state, h, &attempt);
            for part in 1..10 {
                let time = state.time + h * f64::from(part) / 10.0;
                inside = inside.max((curve.at(time)[0] - time.cos()).abs());
            }
            let [.., slope] = attempt.slopes;
            state = State { time: state.time + h, value: attempt.value, slope, ..state };
            at_nodes = at_nodes.max((state.value[0] - state.time.cos()).abs());
        }
        (at_nodes, inside)
    }

    #[test]
    fn halving_the_step_divides_the_error_by_thirty_two_at_the_nodes_and_inside_the_steps() {
        let (coarse, fine) = (fixed_step_errors(40), fixed_step_errors(80));
        let orders = ((coarse.0 / fine.0).log2(), (coarse.1 / fine.1).log2());
        assert!((orders.0 - 5.0).abs() < 0.15, "order at the nodes {}", orders.0);
        assert!((orders.1 - 5.0).abs() < 0.25, "order inside the steps {}", orders.1);
    }

    #[test]
    fn the_coefficients_are_consistent() {
        for (row, node) in STAGES.iter().zip(NODES) {
            assert!((row.iter().sum::<f64>() - node).abs() < 1e-14);
        }
        assert!(ERROR.iter().sum::<f64>().abs() < 1e-15);
        assert!(DENSE.iter().sum::<f64>().abs() < 1e-14);
    }

    #[test]
    fn a_planet_comes_back_after_ten_years_with_its_energy_and_angular_momentum() {
        let kepler = |_time: f64, value: &[f64], slope: &mut [f64]| {
            let cube = (value[0] * value[0] + value[1] * value[1]).powf(1.5);
            slope.copy_from_slice(&[value[2], value[3], -value[0] / cube, -value[1] / cube]);
            Ok(())
        };
        let eccentricity: f64 = 0.6;
        let start = [1.0 - eccentricity, 0.0, 0.0, ((1.0 + eccentricity) / (1.0 - eccentricity)).sqrt()];
        let settings = Settings { relative_tolerance: 1e-11, absolute_tolerance: 1e-13, max_steps: 100_000 };
        let years: Vec<f64> =
            (1..=40).map(|quarter| f64::from(quarter) * std::f64::consts::FRAC_PI_2).collect();
        let solution = solve(&settings, kepler, &start, &years).unwrap();
        assert_eq!(solution.ending, Ending::Completed);
        for value in &solution.values {
            let energy = 0.5 * (value[2] * value[2] + value[3] * value[3]) - 1.0 / value[0].hypot(value[1]);
            let momentum = value[0] * value[3] - value[1] * value[2];
            assert!((energy + 0.5).abs() < 1e-8, "energy {energy}");
            assert!((momentum - 0.8).abs() < 1e-8, "momentum {momentum}");
        }
        for (found, expected) in solution.values[39].iter().zip(start) {
            assert!((found - expected).abs() < 1e-7, "{found} against {expected}");
        }
    }

    #[test]
    fn saved_times_are_those_asked_for_and_saved_values_are_right_at_each_of_them() {
        let times: Vec<f64> = (0..=97).map(|i| 0.1 * f64::from(i)).collect();
        let settings = Settings { relative_tolerance: 1e-10, absolute_tolerance: 1e-12, max_steps: 10_000 };
        let solution = solve(&settings, oscillator, &[1.0, 0.0], &times).unwrap();
        assert_eq!(solution.times, times);
        assert_eq!(solution.last.time, times[97]);
        assert_eq!(solution.last.value, solution.values[97]);
        for (time, value) in times.iter().zip(&solution.values) {
            assert!((value[0] - time.cos()).abs() < 2e-9 && (value[1] + time.sin()).abs() < 2e-9);
        }
    }

    #[test]
    fn going_on_from_the_last_state_gives_the_same_solution() {
        let settings = Settings::default();
        let first = solve(&settings, oscillator, &[1.0, 0.0], &[1.0]).unwrap();
        let second =
            integrate(&settings, &mut oscillator, first.last, &[2.0], &Unwatched, unobserved).unwrap();
        assert!((second.values[0][0] - 2f64.cos()).abs() < 1e-8);
    }

    #[test]
    fn a_blow_up_ends_stuck_at_the_singularity() {
        let riccati = |_time: f64, value: &[f64], slope: &mut [f64]| {
            slope[0] = value[0] * value[0];
            Ok(())
        };
        let solution = solve(&Settings::default(), riccati, &[1.0], &[0.5, 2.0]).unwrap();
        assert_eq!(solution.times, [0.5]);
        assert!((solution.values[0][0] - 2.0).abs() < 1e-8);
        assert!(solution.last.value[0].is_finite());
        assert_eq!(solution.ending, Ending::Stuck);
        assert!((solution.last.time - 1.0).abs() < 1e-8, "stuck at {}", solution.last.time);
    }

    #[test]
    fn a_stiff_problem_ends_with_its_allowance_of_steps_spent() {
        let stiff = |time: f64, value: &[f64], slope: &mut [f64]| {
            slope[0] = -1e7 * (value[0] - time.cos());
            Ok(())
        };
        let settings = Settings { max_steps: 500, ..Settings::default() };
        let solution = solve(&settings, stiff, &[0.0], &[10.0]).unwrap();
        assert_eq!((solution.ending, solution.steps), (Ending::OutOfSteps, 500));
        assert!((solution.last.value[0] - 1.0).abs() < 1e-6);
    }

    #[test]
    fn leaving_the_domain_ends_stuck_and_other_errors_are_passed_on() {
        let falling = |_time: f64, value: &[f64], slope: &mut [f64]| {
            if value[0] <= 0.0 {
                return Err(Error::OutsideDomain {
                    family: "test",
                    bound: "y > 0".into(),
                    found: String::new(),
                });
            }
            slope[0] = -1.0 / value[0];
            Ok(())
        };
        // y² = 1 − 2t reaches zero at 1/2.
        let solution = solve(&Settings::default(), falling, &[1.0], &[1.0]).unwrap();
        assert!(solution.ending == Ending::Stuck && (solution.last.time - 0.5).abs() < 1e-8);
        let broken = |time: f64, _: &[f64], slope: &mut [f64]| {
            slope[0] = 1.0;
            if time > 0.1 { Err(Error::Empty { what: "the test" }) } else { Ok(()) }
        };
        assert_eq!(
            solve(&Settings::default(), broken, &[1.0], &[1.0]).err(),
            Some(Error::Empty { what: "the test" })
        );
    }

    #[test]
    fn times_and_tolerances_that_make_no_sense_are_errors() {
        let times =
            |save_times: &[f64]| solve(&Settings::default(), oscillator, &[1.0, 0.0], save_times).err();
        assert!(matches!(times(&[]), Some(Error::Empty { .. })));
        assert!(matches!(times(&[-1.0]), Some(Error::OutOfRange { .. })));
        assert!(matches!(times(&[1.0, 1.0]), Some(Error::OutOfRange { .. })));
        assert!(matches!(times(&[1.0, f64::NAN]), Some(Error::NotFinite { .. })));
        for relative_tolerance in [0.0, f64::NAN, 1e-17, 2.0] {
            let settings = Settings { relative_tolerance, ..Settings::default() };
            assert!(matches!(
                solve(&settings, oscillator, &[1.0, 0.0], &[1.0]),
                Err(Error::OutOfRange { .. })
            ));
        }
    }

    #[test]
    fn a_monitor_and_an_observer_can_end_an_integration_and_keep_what_was_reached() {
        struct StopAfter(AtomicUsize);
        impl Monitor for StopAfter {
            fn progress(&self, _completed: usize, _total: usize) {}
            fn should_stop(&self) -> bool {
                self.0.fetch_add(1, Ordering::Relaxed) >= 5
            }
        }
        let settings = Settings::default();
        let state = init(&settings, &mut oscillator, 0.0, &[1.0, 0.0]).unwrap();
        let monitor = StopAfter(AtomicUsize::new(0));
        let stopped =
            integrate(&settings, &mut oscillator, state.clone(), &[0.0, 50.0], &monitor, unobserved).unwrap();
        assert_eq!((stopped.steps, stopped.times.as_slice()), (5, [0.0].as_slice()));
        assert_eq!(stopped.ending, Ending::Stopped);
        let observed = integrate(&settings, &mut oscillator, state, &[50.0], &Unwatched, |state, _| {
            let negative = state.value[0] < 0.0;
            Ok(if negative { ControlFlow::Break(Ending::GoalReached) } else { ControlFlow::Continue(()) })
        })
        .unwrap();
        assert_eq!(observed.ending, Ending::GoalReached);
    }
}
