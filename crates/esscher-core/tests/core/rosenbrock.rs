//! The stiff integrator: its order, stiff problems in few steps, exact decay, every ending, requests that make no sense.

use esscher_core::numerics::dormand_prince::{Settings, Solution};
use esscher_core::numerics::rosenbrock::{integrate, unobserved};
use esscher_core::{Ending, Error, Mat, Monitor, Result, Unwatched, mat};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

fn settings(relative_tolerance: f64) -> Settings {
    Settings { relative_tolerance, absolute_tolerance: 1e-2 * relative_tolerance, max_steps: 100_000 }
}

fn solve(
    settings: &Settings,
    mut system: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    mut jacobian: impl FnMut(&[f64]) -> Result<Mat<f64>>,
    start: &[f64],
    save_times: &[f64],
) -> Result<Solution> {
    integrate(settings, &mut system, &mut jacobian, 0.0, start, save_times, &Unwatched, unobserved)
}

fn decay(y: &[f64], slope: &mut [f64]) -> Result<()> {
    slope[0] = -y[0];
    Ok(())
}

fn decay_jacobian(_: &[f64]) -> Result<Mat<f64>> {
    Ok(mat![[-1.0]])
}

/// y″ = μ(1 − y²)y′ − y.
fn van_der_pol(mu: f64) -> impl FnMut(&[f64], &mut [f64]) -> Result<()> {
    move |y, slope| {
        slope.copy_from_slice(&[y[1], mu * (1.0 - y[0] * y[0]) * y[1] - y[0]]);
        Ok(())
    }
}

fn van_der_pol_jacobian(mu: f64) -> impl FnMut(&[f64]) -> Result<Mat<f64>> {
    move |y| Ok(mat![[0.0, 1.0], [-2.0 * mu * y[0] * y[1] - 1.0, mu * (1.0 - y[0] * y[0])]])
}

#[test]
fn doubling_the_steps_of_a_nonlinear_problem_divides_the_error_by_sixteen() {
    let run = |tolerance: f64| {
        let settings = settings(tolerance);
        let run = solve(&settings, van_der_pol(1.0), van_der_pol_jacobian(1.0), &[2.0, 0.0], &[5.0]).unwrap();
        assert_eq!(run.ending, Ending::Completed);
        (run.steps as f64, run.values[0][0])
    };
    let exact = run(1e-13).1;
    let (coarse, fine) = (run(1e-6), run(1e-9));
    let order = ((coarse.1 - exact) / (fine.1 - exact)).abs().ln() / (fine.0 / coarse.0).ln();
    assert!((order - 4.0).abs() < 0.4, "order {order}");
}

#[test]
fn decay_is_exponential_at_every_saved_time_and_the_last_time_is_landed_on() {
    let times: Vec<f64> = (0..=50).map(|i| 0.1 * f64::from(i)).collect();
    let solution = solve(&settings(1e-10), decay, decay_jacobian, &[1.0], &times).unwrap();
    assert_eq!(solution.times, times);
    assert_eq!(solution.last.time(), times[50]);
    assert_eq!(solution.last.value(), solution.values[50].as_slice());
    assert_eq!(solution.last.slope()[0], -solution.values[50][0]);
    for (time, value) in times.iter().zip(&solution.values) {
        assert!((value[0] - (-time).exp()).abs() < 1e-9, "{} at {time}", value[0]);
    }
}

#[test]
fn an_eigenvalue_of_minus_a_hundred_million_costs_few_steps_and_spoils_no_saved_value() {
    // y₂ relaxes to cos y₁ at the rate 10⁸; the exact solution is (cos t + ε sin t)/(1 + ε²), ε = 10⁻⁸,
    // plus what is left of the start. The clock is y₁.
    let stiff = |y: &[f64], slope: &mut [f64]| {
        slope.copy_from_slice(&[1.0, -1e8 * (y[1] - y[0].cos())]);
        Ok(())
    };
    let jacobian = |y: &[f64]| Ok(mat![[0.0, 0.0], [-1e8 * y[0].sin(), -1e8]]);
    let times: Vec<f64> = (1..=40).map(|i| 0.25 * f64::from(i)).collect();
    let solution = solve(&settings(1e-8), stiff, jacobian, &[0.0, 3.0], &times).unwrap();
    assert_eq!(solution.ending, Ending::Completed);
    assert!(solution.steps < 500, "{} steps", solution.steps);
    for (time, value) in times.iter().zip(&solution.values) {
        let exact = time.cos() + 1e-8 * time.sin();
        assert!((value[1] - exact).abs() < 1e-7, "{} at {time}", value[1] - exact);
    }
}

#[test]
fn van_der_pol_at_a_stiffness_of_a_million_keeps_to_its_known_values() {
    // y″ = ((1 − y²)y′ − y)/ε, ε = 10⁻⁶, from (2, 0) to t = 2, with the reference solution of the Test Set for IVP
    // Solvers (Mazzia and Magherini 2008, problem vdpol).
    let system = |y: &[f64], slope: &mut [f64]| {
        slope.copy_from_slice(&[y[1], ((1.0 - y[0] * y[0]) * y[1] - y[0]) / 1e-6]);
        Ok(())
    };
    let jacobian =
        |y: &[f64]| Ok(mat![[0.0, 1.0], [(-2.0 * y[0] * y[1] - 1.0) / 1e-6, (1.0 - y[0] * y[0]) / 1e-6]]);
    let solution = solve(&settings(1e-7), system, jacobian, &[2.0, 0.0], &[2.0]).unwrap();
    assert_eq!(solution.ending, Ending::Completed);
    assert!(solution.steps < 4000, "{} steps", solution.steps);
    assert!((solution.values[0][0] - 1.706_167_732_170_483).abs() < 1e-6, "{:?}", solution.values[0]);
    assert!((solution.values[0][1] + 0.892_809_701_024_795_7).abs() < 1e-6, "{:?}", solution.values[0]);
}

#[test]
fn a_blow_up_ends_stuck_at_the_singularity() {
    let riccati = |y: &[f64], slope: &mut [f64]| {
        slope[0] = y[0] * y[0];
        Ok(())
    };
    let jacobian = |y: &[f64]| Ok(mat![[2.0 * y[0]]]);
    let solution = solve(&settings(1e-9), riccati, jacobian, &[1.0], &[0.5, 2.0]).unwrap();
    assert_eq!(solution.times, [0.5]);
    assert!((solution.values[0][0] - 2.0).abs() < 1e-7);
    assert_eq!(solution.ending, Ending::Stuck);
    let time = solution.last.time();
    assert!((time - 1.0).abs() < 1e-7, "stuck at {time}");
}

#[test]
fn a_failing_stage_shortens_the_step_and_only_a_lasting_failure_ends_the_integration() {
    // y′ = −1/y reaches zero at t = 1/2.
    let jacobian = |y: &[f64]| Ok(mat![[1.0 / (y[0] * y[0])]]);
    let falling = |error: Error| {
        move |y: &[f64], slope: &mut [f64]| {
            if y[0] <= 0.0 {
                return Err(error.clone());
            }
            slope[0] = -1.0 / y[0];
            Ok(())
        }
    };
    let outside = Error::OutsideDomain { family: "test", bound: "y > 0".into(), found: String::new() };
    let stuck = solve(&settings(1e-9), falling(outside), jacobian, &[1.0], &[0.4, 1.0]).unwrap();
    assert!((stuck.values[0][0] - 0.2f64.sqrt()).abs() < 1e-7);
    assert!(stuck.ending == Ending::Stuck && (stuck.last.time() - 0.5).abs() < 1e-7);
    // Slow decay above a floor that a long stage overshoots: failures on the way do not matter.
    let floored = |y: &[f64], slope: &mut [f64]| {
        if y[0] <= 0.36 {
            return Err(Error::Empty { what: "the test" });
        }
        slope[0] = -y[0];
        Ok(())
    };
    let reached = solve(&settings(1e-3), floored, decay_jacobian, &[1.0], &[1.0]).unwrap();
    assert_eq!(reached.ending, Ending::Completed);
    assert!((reached.values[0][0] - (-1f64).exp()).abs() < 1e-3);
    let lasting = solve(&settings(1e-6), floored, decay_jacobian, &[1.0], &[2.0]);
    assert_eq!(lasting.err(), Some(Error::Empty { what: "the test" }));
}

#[test]
fn the_allowance_of_steps_the_monitor_and_the_observer_can_end_an_integration() {
    struct StopAfter(AtomicUsize);
    impl Monitor for StopAfter {
        fn progress(&self, _completed: usize, _total: usize) {}
        fn should_stop(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) >= 5
        }
    }
    let few = Settings { max_steps: 3, ..settings(1e-10) };
    let spent = solve(&few, decay, decay_jacobian, &[1.0], &[50.0]).unwrap();
    assert_eq!((spent.ending, spent.steps), (Ending::OutOfSteps, 3));
    let (fine, start) = (settings(1e-10), [1.0]);
    let monitor = StopAfter(AtomicUsize::new(0));
    let stopped =
        integrate(&fine, &mut decay, &mut decay_jacobian, 0.0, &start, &[0.0, 50.0], &monitor, unobserved)
            .unwrap();
    assert_eq!((stopped.steps, stopped.times.as_slice()), (5, [0.0].as_slice()));
    assert_eq!(stopped.ending, Ending::Stopped);
    let (mut seen, mut halved) = (0, 0.0);
    let observed =
        integrate(&fine, &mut decay, &mut decay_jacobian, 0.0, &start, &[50.0], &Unwatched, |state| {
            seen += 1;
            assert_eq!(state.slope()[0], -state.value()[0]);
            Ok(if state.value()[0] < 0.5 {
                halved = state.time();
                ControlFlow::Break(Ending::GoalReached)
            } else {
                ControlFlow::Continue(())
            })
        })
        .unwrap();
    assert_eq!((observed.steps, observed.ending), (seen, Ending::GoalReached));
    assert_eq!(halved, observed.last.time());
}

#[test]
fn requests_that_make_no_sense_are_errors() {
    let times = |save_times: &[f64]| solve(&settings(1e-6), decay, decay_jacobian, &[1.0], save_times).err();
    assert!(matches!(times(&[]), Some(Error::Empty { .. })));
    assert!(matches!(times(&[-1.0]), Some(Error::OutOfRange { .. })));
    assert!(matches!(times(&[1.0, 1.0]), Some(Error::OutOfRange { .. })));
    assert!(matches!(times(&[1.0, f64::NAN]), Some(Error::NotFinite { .. })));
    let start = |start: &[f64]| solve(&settings(1e-6), decay, decay_jacobian, start, &[1.0]).err();
    assert!(matches!(start(&[]), Some(Error::Empty { .. })));
    assert!(matches!(start(&[f64::INFINITY]), Some(Error::NotFinite { .. })));
    for tolerance in [0.0, f64::NAN, 1e-17, 2.0] {
        let rubbish = Settings { relative_tolerance: tolerance, ..Settings::default() };
        let result = solve(&rubbish, decay, decay_jacobian, &[1.0], &[1.0]);
        assert!(matches!(result, Err(Error::OutOfRange { .. })));
    }
    let jacobian = |matrix: Mat<f64>| {
        solve(&settings(1e-6), decay, |_: &[f64]| Ok(matrix.clone()), &[1.0], &[1.0]).err()
    };
    assert!(matches!(jacobian(mat![[1.0, 2.0]]), Some(Error::Size { .. })));
    assert!(matches!(jacobian(mat![[f64::NAN]]), Some(Error::Overflow { .. })));
    let broken = |_: &[f64]| Err(Error::Empty { what: "the Jacobian" });
    let result = solve(&settings(1e-6), decay, broken, &[1.0], &[1.0]);
    assert_eq!(result.err(), Some(Error::Empty { what: "the Jacobian" }));
    let hostile = |_: &[f64], slope: &mut [f64]| {
        slope[0] = f64::NAN;
        Ok(())
    };
    let result = solve(&settings(1e-6), hostile, decay_jacobian, &[1.0], &[1.0]);
    assert!(matches!(result, Err(Error::Overflow { .. })));
    // A Jacobian that makes the matrix of the step singular only shortens the step.
    let result = solve(&settings(1e-6), decay, |_: &[f64]| Ok(mat![[4e3]]), &[1.0], &[1e-3]).unwrap();
    assert_eq!(result.ending, Ending::Completed);
}
