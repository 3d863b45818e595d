//! Stiff ordinary differential equations with error control: the Rosenbrock method RODAS, of orders 4 and 3.
//!
//! Six stages, each one linear system with the same matrix 1/(γh) − f′(y), so one factorisation per attempt and
//! no iteration. L-stable and stiffly accurate: components that decay in far less than a step are damped to
//! nothing, and the step follows what is left. For dy/dt = f(y), time not entering; a problem with time in it
//! takes time as one more entry of y, with slope one.
//!
//! On problems that are not stiff, [`dormand_prince`](super::dormand_prince) is cheaper and of higher order;
//! its [`Settings`] and [`Solution`] serve here too.
//!
//! Method and step control: Hairer and Wanner 1996, sections IV.7 and IV.8 (key `hairer1996`).

use super::integration::{
    SAFETY, SMALLEST_FACTOR, Settings, Solution, State, Stepped, Stepper, drive, first_slope, first_step,
    resolution,
};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::numerics::check;
use faer::Mat;
use faer::linalg::solvers::{PartialPivLu, Solve};
use std::ops::ControlFlow;

/// γ, the diagonal of the method.
const GAMMA: f64 = 0.25;

/// Stages of a step.
const STAGES: usize = 6;

/// Coefficients a: stage i is evaluated at y + Σ aᵢⱼkⱼ. The last row leads to the third-order solution, and the
/// fourth-order one is that plus k₆.
const VALUES: [[f64; 5]; STAGES] = [
    [0.0; 5],
    [1.544, 0.0, 0.0, 0.0, 0.0],
    [0.9466785280815826, 0.2557011698983284, 0.0, 0.0, 0.0],
    [3.314825187068521, 2.896124015972201, 0.9986419139977817, 0.0, 0.0],
    [1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 0.0],
    [1.221224509226641, 6.019134481288629, 12.53708332932087, -0.687886036105895, 1.0],
];

/// Coefficients c: (1/(γh) − f′) kᵢ = f(y + Σ aᵢⱼkⱼ) + Σ cᵢⱼkⱼ/h.
const SLOPES: [[f64; 5]; STAGES] = [
    [0.0; 5],
    [-5.6688, 0.0, 0.0, 0.0, 0.0],
    [-2.430093356833875, -0.2063599157091915, 0.0, 0.0, 0.0],
    [-0.1073529058151375, -9.594562251023355, -20.47028614809616, 0.0, 0.0],
    [7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616, 0.0],
    [8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054],
];

/// Errors of a step shrink like h⁴, by the third-order solution inside.
const ERROR_EXPONENT: f64 = 0.25;

const LARGEST_FACTOR: f64 = 6.0;

/// The observer that watches nothing.
pub fn unobserved(_state: &State) -> Result<ControlFlow<Ending>> {
    Ok(ControlFlow::Continue(()))
}

/// Integrates dy/dt = f(y) from the start to the last of `save_times` and reads the solution at each of them.
///
/// `system` writes f(y), `jacobian` returns the matrix ∂fᵢ/∂yⱼ. The Jacobian should be exact: the order of the
/// method rests on it, not only its stability.
///
/// The last time is landed on exactly; a time inside a step is reached by a side step from the start of that step,
/// which costs six slopes and no Jacobian. A polynomial through the step would be cheaper, but entries that
/// follow others within a fraction of a step are far more accurate at the ends of steps than inside: in the
/// example below cubic Hermite interpolation is wrong by 3·10⁻⁵, the method's own extension by 10⁻⁵, a side step
/// by 10⁻¹¹.
///
/// The observer sees the state after each accepted step (time, value, slope) and may end the integration with an
/// ending of its own; what was asked for within that step is saved first. Progress counts saved times.
///
/// A stage at which `system` fails or hands back something not finite counts as a step too long. If no step is
/// short enough the integration ends with [`Ending::Stuck`], or with the error itself unless that is one
/// of overflow or of the domain.
///
/// ```
/// use esscher_core::numerics::dormand_prince::Settings;
/// use esscher_core::numerics::rosenbrock::{integrate, unobserved};
/// use esscher_core::{Ending, Unwatched, mat};
/// // y₁ is slaved to cos y₀ within a time of 10⁻⁸.
/// let mut system = |y: &[f64], slope: &mut [f64]| {
///     slope.copy_from_slice(&[1.0, -1e8 * (y[1] - y[0].cos())]);
///     Ok(())
/// };
/// let mut jacobian = |y: &[f64]| Ok(mat![[0.0, 0.0], [-1e8 * y[0].sin(), -1e8]]);
/// let settings = Settings { relative_tolerance: 1e-6, ..Settings::default() };
/// let solution =
///     integrate(&settings, &mut system, &mut jacobian, 0.0, &[0.0, 2.0], &[1.0], &Unwatched, unobserved)?;
/// assert_eq!(solution.ending, Ending::Completed);
/// assert!((solution.values[0][1] - 1f64.cos()).abs() < 1e-6 && solution.steps < 100);
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Empty`], [`Error::NotFinite`] or [`Error::OutOfRange`] for a start, times or tolerances that make no
/// sense; [`Error::Size`] and [`Error::Overflow`] for a Jacobian of another size or not finite; errors of
/// `system` as said above and at the start, of `jacobian` and of `observe`.
#[expect(
    clippy::too_many_arguments,
    reason = "the problem, the request and the two who watch; no part repeats"
)]
pub fn integrate(
    settings: &Settings,
    system: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    jacobian: &mut impl FnMut(&[f64]) -> Result<Mat<f64>>,
    start_time: f64,
    start_value: &[f64],
    save_times: &[f64],
    monitor: &dyn Monitor,
    mut observe: impl FnMut(&State) -> Result<ControlFlow<Ending>>,
) -> Result<Solution> {
    let state = init(settings, system, start_time, start_value)?;
    let mut stepper = Stiff { settings, system, jacobian, previous: None };
    drive(settings, &mut stepper, state, save_times, monitor, |state, _| observe(state))
}

/// The method as the loop over steps sees it.
struct Stiff<'a, S, J> {
    settings: &'a Settings,
    system: &'a mut S,
    jacobian: &'a mut J,
    previous: Option<Previous>,
}

impl<S, J> Stepper for Stiff<'_, S, J>
where
    S: FnMut(&[f64], &mut [f64]) -> Result<()>,
    J: FnMut(&[f64]) -> Result<Mat<f64>>,
{
    /// The Jacobian at the start of the step.
    type Info = Mat<f64>;

    fn step(&mut self, state: &State, towards: f64) -> Result<Stepped<Mat<f64>>> {
        let matrix = jacobian_at(self.jacobian, &state.value)?;
        match step(self.settings, self.system, &matrix, state, self.previous, towards)? {
            Advance::Stepped(Step { state, size, rejected }) => {
                self.previous = Some(Previous { size, error: state.previous_error });
                Ok(Stepped::To { state, rejected, info: matrix })
            }
            Advance::Stuck { step_size } => Ok(Stepped::Stuck { step_size }),
        }
    }

    fn inside(&mut self, before: &State, matrix: &Mat<f64>, time: f64) -> Result<Vec<f64>> {
        Ok(attempt(self.settings, self.system, matrix, before, time - before.time)?.value)
    }
}

/// The state at the start: first slope, first step.
fn init(
    settings: &Settings,
    system: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    time: f64,
    value: &[f64],
) -> Result<State> {
    let slope = first_slope(settings, time, value, |slope| system(value, slope))?;
    // Whatever goes wrong at the probe, it only says that the first step has to be short.
    let mut probe = |_time: f64, value: &[f64], slope: &mut [f64]| {
        system(value, slope).map_err(|_| Error::Overflow { what: "the first probe" })
    };
    let next_step = first_step(settings, &mut probe, time, value, &slope)?;
    Ok(State { time, value: value.to_vec(), slope, next_step, previous_error: 1.0 })
}

fn jacobian_at(jacobian: &mut impl FnMut(&[f64]) -> Result<Mat<f64>>, value: &[f64]) -> Result<Mat<f64>> {
    let matrix = jacobian(value)?;
    check::size("the rows of the Jacobian", value.len(), matrix.nrows())?;
    check::size("the columns of the Jacobian", value.len(), matrix.ncols())?;
    check::finite_matrix_result("the Jacobian", matrix)
}

/// Size and error of the step before, for step control.
#[derive(Clone, Copy)]
struct Previous {
    size: f64,
    error: f64,
}

/// An accepted step.
struct Step {
    /// The state after it.
    state: State,
    size: f64,
    rejected: usize,
}

enum Advance {
    Stepped(Step),
    Stuck { step_size: f64 },
}

/// Advances by one accepted step, not past `towards` and exactly onto it if it is within reach.
fn step(
    settings: &Settings,
    system: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    jacobian: &Mat<f64>,
    state: &State,
    previous: Option<Previous>,
    towards: f64,
) -> Result<Advance> {
    let remaining = towards - state.time;
    let mut step_size = state.next_step;
    let mut rejected = 0;
    let mut failure = None;
    loop {
        // A step that nearly arrives is stretched by up to 1 %, so that no splinter is left over.
        let lands = 1.01 * step_size >= remaining;
        if lands {
            step_size = remaining;
        } else if step_size <= resolution(state.time) {
            return match failure {
                Some(error) => Err(error),
                None => Ok(Advance::Stuck { step_size }),
            };
        }
        let shrink = match attempt(settings, system, jacobian, state, step_size) {
            Ok(attempt) if attempt.error <= 1.0 => {
                let mut next_step = step_size * growth(step_size, attempt.error, previous);
                if rejected > 0 {
                    next_step = next_step.min(step_size);
                }
                let time = if lands { towards } else { state.time + step_size };
                let Attempt { value, slope, error } = attempt;
                let state = State { time, value, slope, next_step, previous_error: error.max(0.01) };
                return Ok(Advance::Stepped(Step { state, size: step_size, rejected }));
            }
            Ok(attempt) => {
                failure = None;
                (SAFETY / attempt.error.powf(ERROR_EXPONENT)).max(SMALLEST_FACTOR)
            }
            Err(error) => {
                failure = Some(error).filter(|error| !is_out_of_bounds(error));
                SMALLEST_FACTOR
            }
        };
        rejected += 1;
        step_size *= shrink;
    }
}

/// Errors that a solution that blows up or leaves its domain brings about: an ending, not a mistake.
fn is_out_of_bounds(error: &Error) -> bool {
    matches!(error, Error::Overflow { .. } | Error::OutsideDomain { .. })
}

/// Gustafsson's predictive control: on a smooth stiff solution errors grow steadily, and the trend of the last
/// two foretells the next, which spares rejections.
fn growth(step_size: f64, error: f64, previous: Option<Previous>) -> f64 {
    let plain = SAFETY / error.powf(ERROR_EXPONENT);
    let predicted = previous.map_or(f64::INFINITY, |previous| {
        SAFETY * step_size / previous.size * (previous.error / (error * error)).powf(ERROR_EXPONENT)
    });
    plain.min(predicted).clamp(SMALLEST_FACTOR, LARGEST_FACTOR)
}

/// One attempt at a step: the new value and slope, the error in units of the tolerance.
struct Attempt {
    value: Vec<f64>,
    slope: Vec<f64>,
    error: f64,
}

/// The six stages of a step; what is not finite is an error of overflow.
fn attempt(
    settings: &Settings,
    system: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    jacobian: &Mat<f64>,
    state: &State,
    step_size: f64,
) -> Result<Attempt> {
    let size = state.value.len();
    let diagonal = 1.0 / (GAMMA * step_size);
    let matrix = Mat::from_fn(size, size, |i, j| if i == j { diagonal } else { 0.0 } - jacobian[(i, j)]);
    let factors = PartialPivLu::new(check::finite_matrix_result("the matrix of a step", matrix)?.as_ref());
    let mut stages: [Vec<f64>; STAGES] = std::array::from_fn(|_| vec![0.0; size]);
    let mut slope = state.slope.clone();
    let mut value = state.value.clone();
    for stage in 0..STAGES {
        if stage > 0 {
            for (i, entry) in value.iter_mut().enumerate() {
                *entry = state.value[i] + weighted(&VALUES[stage], &stages, i);
            }
            evaluate(system, &value, &mut slope)?;
        }
        let mut right =
            Mat::from_fn(size, 1, |i, _| slope[i] + weighted(&SLOPES[stage], &stages, i) / step_size);
        factors.solve_in_place(right.as_mut());
        stages[stage] = (0..size).map(|i| right[(i, 0)]).collect();
    }
    for (entry, last) in value.iter_mut().zip(&stages[STAGES - 1]) {
        *entry += last;
    }
    let error = settings.norm(stages[STAGES - 1].iter().copied(), &state.value, &value);
    let error = check::finite_number("the error of a step", error)?;
    // A step that will be thrown away needs no slope at its end.
    if error <= 1.0 {
        evaluate(system, &value, &mut slope)?;
    }
    Ok(Attempt { value, slope, error })
}

fn weighted(weights: &[f64], stages: &[Vec<f64>; STAGES], entry: usize) -> f64 {
    weights.iter().zip(stages).map(|(weight, stage)| weight * stage[entry]).sum()
}

fn evaluate(
    system: &mut impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    value: &[f64],
    slope: &mut [f64],
) -> Result<()> {
    if value.iter().any(|entry| !entry.is_finite()) {
        return Err(Error::Overflow { what: "a stage of a step" });
    }
    system(value, slope)?;
    if slope.iter().all(|entry| entry.is_finite()) {
        Ok(())
    } else {
        Err(Error::Overflow { what: "the slope at a stage" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    /// y″ = −sin y.
    fn pendulum(y: &[f64], slope: &mut [f64]) -> Result<()> {
        slope.copy_from_slice(&[y[1], -y[0].sin()]);
        Ok(())
    }

    fn pendulum_jacobian(y: &[f64]) -> Mat<f64> {
        mat![[0.0, 1.0], [-y[0].cos(), 0.0]]
    }

    /// y(2) by fixed steps.
    fn fixed_steps(steps: usize) -> f64 {
        let settings = Settings { relative_tolerance: 0.1, absolute_tolerance: 1e3, max_steps: 1 };
        let mut state = init(&settings, &mut pendulum, 0.0, &[1.0, 0.5]).unwrap();
        let size = 2.0 / steps as f64;
        for _ in 0..steps {
            let jacobian = pendulum_jacobian(&state.value);
            let Attempt { value, slope, .. } =
                attempt(&settings, &mut pendulum, &jacobian, &state, size).unwrap();
            state = State { time: state.time + size, value, slope, ..state };
        }
        state.value[0]
    }

    #[test]
    fn halving_the_step_divides_the_error_by_sixteen() {
        let exact = fixed_steps(1000);
        for steps in [20, 40] {
            let order = ((fixed_steps(steps) - exact) / (fixed_steps(2 * steps) - exact)).log2();
            assert!((order - 4.0).abs() < 0.1, "order {order} from {steps} steps");
        }
    }
}
