//! The continuous flow of a Gaussian through infinitely many infinitesimal residual layers.
//!
//! The state is the mean m and a root R of the covariance, S = RRᵀ, which obeys dR/dt = BR. Evolving
//! the root rather than S keeps S symmetric and positive semi-definite whatever the step does, allows a
//! singular start (R has rank(S) columns), and resolves a collapsing eigenvalue of S down to the square of
//! the relative error at which S itself would lose it.

use super::Layer;
use super::layer::gaussian_from_root;
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::measure::Gaussian;
use crate::monitor::Monitor;
use crate::numerics::dormand_prince::{self, Interpolant, Settings, State};
use crate::numerics::{check, linalg};
use faer::MatRef;
use std::ops::ControlFlow;

/// What to do when the covariance collapses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtCollapse {
    /// End the flow with [`Ending::Collapsed`].
    #[default]
    Stop,
    /// Note it in [`Flow::collapses`] and go on.
    Continue,
}

/// When to look at the flow, how accurate it must be, and what counts as collapse.
#[derive(Debug, Clone)]
pub struct FlowOptions {
    /// Times at which to keep the Gaussian, increasing, from 0 on; the flow ends at the last.
    pub save_times: Vec<f64>,
    /// Allowed relative error of a step in mean and root.
    pub relative_tolerance: f64,
    /// Allowed error of a step in entries near zero, in units of √tr S(0).
    pub absolute_tolerance: f64,
    /// An eigenvalue of S(t) below this fraction of the largest of S(0) has collapsed.
    pub collapse_threshold: f64,
    /// Whether to end there.
    pub at_collapse: AtCollapse,
    /// Accepted steps that may be taken.
    pub max_steps: usize,
}

/// Intervals that [`FlowOptions::evenly`] makes at most.
const MAX_INTERVALS: usize = 1_000_000;

impl FlowOptions {
    /// Keeps these times; tolerances 10⁻¹⁰ and 10⁻¹³, collapse at 10⁻⁶, at most 100 000 steps.
    pub fn at(save_times: &[f64]) -> Self {
        FlowOptions {
            save_times: save_times.to_vec(),
            relative_tolerance: 1e-10,
            absolute_tolerance: 1e-13,
            collapse_threshold: 1e-6,
            at_collapse: AtCollapse::Stop,
            max_steps: 100_000,
        }
    }

    /// Keeps `intervals` + 1 evenly spaced times from 0 to `end_time`; at least one interval, at most 10⁶, since
    /// each holds a Gaussian.
    ///
    /// An end time that is not positive is kept alone, for [`flow()`] to refuse it by its name.
    pub fn evenly(end_time: f64, intervals: usize) -> Self {
        if check::positive("the end time", end_time).is_err() {
            return FlowOptions::at(&[end_time]);
        }
        let count = intervals.clamp(1, MAX_INTERVALS);
        let times: Vec<f64> = (0..=count)
            .map(|i| if i == count { end_time } else { end_time * (i as f64 / count as f64) })
            .collect();
        FlowOptions::at(&times)
    }

    fn settings(&self, start: &Gaussian) -> Result<Settings> {
        if !(self.collapse_threshold > 0.0 && self.collapse_threshold < 1.0) {
            return Err(Error::OutOfRange {
                what: "the collapse threshold",
                value: self.collapse_threshold,
                expected: "a fraction between 0 and 1",
            });
        }
        check::positive("the absolute tolerance", self.absolute_tolerance)?;
        if let Some(&end_time) = self.save_times.last()
            && end_time < 0.0
        {
            let expected = "a time from 0 on";
            return Err(Error::OutOfRange { what: "the end time", value: end_time, expected });
        }
        let spread = linalg::trace(start.covariance_matrix()).sqrt();
        let length = linalg::squared_norm(start.mean_vector()).sqrt();
        let unit = [spread, length].into_iter().find(|&unit| unit > 0.0 && unit.is_finite()).unwrap_or(1.0);
        Ok(Settings {
            relative_tolerance: self.relative_tolerance,
            absolute_tolerance: (self.absolute_tolerance * unit).clamp(f64::MIN_POSITIVE, f64::MAX),
            max_steps: self.max_steps,
        })
    }
}

/// The covariance lost a direction.
///
/// The rank of S is the same at all finite times, so a threshold must be named: collapsed are the
/// eigenvalues of S(t) below [`FlowOptions::collapse_threshold`] times the largest of S(0). The measure
/// is the start, not the largest of S(t), for otherwise the blow-up of one direction would read as the
/// collapse of all others, and the shrinking of all directions to a point would go unseen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collapse {
    /// When the threshold was passed.
    pub time: f64,
    /// Eigenvalues above the threshold afterwards; 0 if the tokens gather in a point.
    pub rank: usize,
    /// The largest collapsed eigenvalue, as a fraction of the largest of S(0), at the end of the step.
    pub eigenvalue_ratio: f64,
}

/// A Gaussian along the flow, as far as it got.
#[derive(Debug, Clone)]
pub struct Flow {
    /// The save times that were reached.
    pub times: Vec<f64>,
    /// The token law at those times.
    pub laws: Vec<Gaussian>,
    /// The time of the last step.
    pub last_time: f64,
    /// The token law at the last step.
    pub last_law: Gaussian,
    /// Each loss of a direction that was met.
    pub collapses: Vec<Collapse>,
    /// Accepted steps.
    pub steps: usize,
    /// Why the flow ended.
    ///
    /// [`Ending::Completed`]: the last save time was reached. [`Ending::Collapsed`]: the covariance lost a direction and
    /// [`AtCollapse::Stop`] was asked for.
    ///
    /// [`Ending::BlownUp`]: mean or covariance become infinite in finite time. With q = E|x|² = tr S + |m|² and
    /// doubling time q/q′, reported once q has grown tenfold and the doubling time is below 10⁻¹⁰ of the elapsed
    /// time: exponential growth at that pace would have left double precision long before.
    ///
    /// [`Ending::Diverged`]: q passed 10¹⁰⁰ without the marks of a blow-up in finite time, such as exponential growth; a
    /// flow that starts near that size may get there before a blow-up can be told.
    ///
    /// [`Ending::Stuck`], [`Ending::OutOfSteps`] and [`Ending::Stopped`] as for every integration.
    pub ending: Ending,
    /// When: the time of the collapse or of the blow-up, else that of the last step. Near a blow-up q ~ (t* − t)^−p, so
    /// the doubling time falls linearly to zero; t* is its zero, from the last two steps.
    pub ending_time: f64,
    /// The ending in words, with its numbers and what to do.
    pub sentence: String,
}

/// The flow dx/dt = T\[μ_t\](x), x ~ μ_t, from the Gaussian `start` at time 0.
///
/// dm/dt = b + Bm and dS/dt = BS + SBᵀ, by the method of [`dormand_prince`]. How it ended is
/// [`Flow::ending`]; the laws at the save times reached before that are kept in any case.
///
/// ```
/// use esscher_core::layers::{FlowOptions, Layer, flow};
/// use esscher_core::measure::Gaussian;
/// use esscher_core::{Ending, Unwatched, mat};
/// let layer = Layer::softmax(mat![[-1.0]].as_ref(), mat![[1.0]].as_ref())?;
/// let path = flow(&layer, &Gaussian::standard(1)?, &FlowOptions::at(&[2.0]), &Unwatched)?;
/// assert_eq!((path.ending, path.ending_time), (Ending::Completed, 2.0));
/// // S(t)⁻¹ = 1 + 2t.
/// assert!((path.laws[0].covariance_matrix()[(0, 0)] - 0.2).abs() < 1e-10);
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Size`] if the layer lives in another dimension, [`Error::OutOfRange`], [`Error::Empty`] or
/// [`Error::NotFinite`] for options that make no sense, [`Error::Overflow`] if the layer exceeds double
/// precision at the start. What goes wrong later is an [`Ending`].
pub fn flow(layer: &Layer, start: &Gaussian, options: &FlowOptions, monitor: &dyn Monitor) -> Result<Flow> {
    let dimension = layer.dimension();
    check::size("the dimension of the start", dimension, start.mean_vector().len())?;
    let settings = options.settings(start)?;
    let second_moment = linalg::trace(start.covariance_matrix()) + linalg::squared_norm(start.mean_vector());
    let what = "E|x|² at the start";
    if check::finite_number(what, second_moment)? > TOO_LARGE {
        let expected = "at most 1e100; scale the tokens down";
        return Err(Error::OutOfRange { what, value: second_moment, expected });
    }
    let mut system = |_time: f64, value: &[f64], slope: &mut [f64]| {
        // Trial stages beyond this could be accepted and then have no covariance in double precision.
        if linalg::squared_norm(value) > TOO_LARGE * TOO_LARGE {
            return Err(Error::Overflow { what: "the flow" });
        }
        let (mean, root) = split(dimension, value);
        let form = layer.affine_form_from_root(mean, root)?;
        slope[..dimension]
            .copy_from_slice(&linalg::sum(&form.offset, &linalg::apply(form.matrix.as_ref(), mean)));
        let change = &form.matrix * root;
        for (column, target) in slope[dimension..].chunks_exact_mut(dimension).enumerate() {
            for (row, entry) in target.iter_mut().enumerate() {
                *entry = change[(row, column)];
            }
        }
        Ok(())
    };
    let mut value = start.mean_vector().to_vec();
    for column in 0..start.root().ncols() {
        value.extend((0..dimension).map(|row| start.root()[(row, column)]));
    }
    let state = dormand_prince::init(&settings, &mut system, 0.0, &value)?;
    let mut watch = Watch::new(layer, options, &state)?;
    let solution = dormand_prince::integrate(
        &settings,
        &mut system,
        state,
        &options.save_times,
        monitor,
        |state, info| watch.observe(state, &info.interpolant),
    )?;
    let law = |value: &[f64]| {
        let (mean, root) = split(dimension, value);
        gaussian_from_root(mean, root)
    };
    let last_time = solution.last.time();
    let ending_time = watch.event_time.unwrap_or(last_time);
    let sentence = sentence(solution.ending, ending_time, &solution, &watch.collapses);
    Ok(Flow {
        laws: solution.values.iter().map(|value| law(value)).collect::<Result<_>>()?,
        last_law: law(solution.last.value())?,
        last_time,
        times: solution.times,
        collapses: watch.collapses,
        steps: solution.steps,
        ending: solution.ending,
        ending_time,
        sentence,
    })
}

/// An ending at a time in words.
fn sentence(
    ending: Ending,
    time: f64,
    solution: &dormand_prince::Solution,
    collapses: &[Collapse],
) -> String {
    let second_moment = linalg::squared_norm(solution.last.value());
    match (ending, collapses.last()) {
        (Ending::Completed, _) => format!("reached time {time}"),
        (Ending::BlownUp, _) => format!(
            "blows up at time {time} (E|x|² = {second_moment:e} just before); end earlier, or make the scores smaller: \
             halving the score matrix of softmax attention doubles the time"
        ),
        (Ending::Diverged, _) => format!(
            "tokens grew too large to go on (E|x|² = {second_moment:e} at time {time}), and no blow-up in finite time \
             was seen before; end earlier, or scale the value matrix or the tokens down"
        ),
        (Ending::Collapsed, Some(collapse)) => format!(
            "the covariance collapsed to rank {} at time {time} (next eigenvalue {:e} of the largest at the start); \
             go on with AtCollapse::Continue, or lower collapse_threshold",
            collapse.rank, collapse.eigenvalue_ratio
        ),
        (Ending::Stuck, _) => format!(
            "stuck at time {time}: a step of {:e} is still too long; loosen the tolerances, end earlier (a blow-up may \
             be near), or rescale tokens whose entries differ by many orders of magnitude",
            solution.last.next_step()
        ),
        (Ending::OutOfSteps, _) => format!(
            "{} steps were spent by time {time}; raise max_steps, loosen the tolerances, or end earlier",
            solution.steps
        ),
        (Ending::Stopped, _) => {
            format!("stopped by the monitor at time {time}; start again from the last Gaussian")
        }
        (Ending::Stationary | Ending::GoalReached | Ending::Collapsed, _) => {
            format!("{} at time {time}", ending.name())
        }
    }
}

/// Mean and root inside the vector that is integrated: m, then the columns of R.
fn split(dimension: usize, value: &[f64]) -> (&[f64], MatRef<'_, f64>) {
    let (mean, root) = value.split_at(dimension);
    (mean, MatRef::from_column_major_slice(root, dimension, root.len() / dimension))
}

/// The elapsed time in units of the doubling time from which on a flow is said to blow up.
const BLOW_UP: f64 = 1e10;

/// A blow-up is at hand if it lies within this fraction of the elapsed time. With E|x|² ~ (t* − t)^−p the
/// time left is p doubling times, so 10⁻¹⁰ would do, and 10⁻⁷ leaves room for p up to 1000.
const IMMINENT: f64 = 1e-7;

/// E|x|² must also have grown by this factor: a jump of the velocity from zero is short-lived growth too.
const GROWN: f64 = 10.0;

/// E|x|² beyond which the flow ends: its square, which trial stages may reach, must be a double.
const TOO_LARGE: f64 = 1e100;

/// E|x|² over its derivative, up to a factor ln 2; infinite or negative where nothing grows.
///
/// The vector that is integrated has squared norm |m|² + tr RRᵀ = E|x|².
fn doubling_time(state: &State) -> f64 {
    linalg::squared_norm(state.value()) / (2.0 * linalg::dot(state.value(), state.slope()))
}

/// Looks for blow-up and collapse after each step.
struct Watch<'a> {
    layer: &'a Layer,
    at_collapse: AtCollapse,
    /// Eigenvalues up to this have collapsed.
    collapsed: f64,
    /// The largest eigenvalue at the start.
    largest: f64,
    /// The lowest rank seen so far.
    rank: usize,
    collapses: Vec<Collapse>,
    /// E|x|² at the start.
    second_moment: f64,
    /// Time and doubling time at the step before.
    previous: (f64, f64),
    /// When the blow-up or collapse that ended the flow was.
    event_time: Option<f64>,
}

impl<'a> Watch<'a> {
    fn new(layer: &'a Layer, options: &FlowOptions, start: &State) -> Result<Self> {
        let mut watch = Watch {
            layer,
            at_collapse: options.at_collapse,
            collapsed: 0.0,
            largest: 0.0,
            rank: 0,
            collapses: vec![],
            second_moment: linalg::squared_norm(start.value()),
            previous: (start.time(), doubling_time(start)),
            event_time: None,
        };
        let spectrum = watch.spectrum(start.value())?;
        watch.largest = spectrum.first().copied().unwrap_or(0.0);
        watch.collapsed = options.collapse_threshold * watch.largest;
        watch.rank = watch.rank_of(&spectrum);
        Ok(watch)
    }

    fn observe(&mut self, state: &State, interpolant: &Interpolant) -> Result<ControlFlow<Ending>> {
        // Blow-up first: what happens beyond it is not a collapse.
        if let Some(ending) = self.growth(state) {
            return Ok(ControlFlow::Break(ending));
        }
        if let Some(collapse) = self.collapse(state, interpolant)? {
            self.collapses.push(collapse);
            if self.at_collapse == AtCollapse::Stop {
                self.event_time = Some(collapse.time);
                return Ok(ControlFlow::Break(Ending::Collapsed));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn growth(&mut self, state: &State) -> Option<Ending> {
        let second_moment = linalg::squared_norm(state.value());
        let (time, doubling) = (state.time(), doubling_time(state));
        let (previous_time, previous_doubling) = std::mem::replace(&mut self.previous, (time, doubling));
        if second_moment > TOO_LARGE {
            return Some(Ending::Diverged);
        }
        let remaining = doubling * (time - previous_time) / (previous_doubling - doubling);
        let grown = second_moment > GROWN * self.second_moment;
        let imminent = BLOW_UP * doubling <= time && (0.0..=IMMINENT * time).contains(&remaining);
        (grown && imminent).then(|| {
            self.event_time = Some(time + remaining);
            Ending::BlownUp
        })
    }

    fn collapse(&mut self, state: &State, interpolant: &Interpolant) -> Result<Option<Collapse>> {
        let spectrum = self.spectrum(state.value())?;
        let rank = self.rank_of(&spectrum);
        if rank >= self.rank {
            return Ok(None);
        }
        let (mut before, mut after) = (interpolant.start_time(), state.time());
        for _ in 0..50 {
            let middle = 0.5 * (before + after);
            if self.rank_of(&self.spectrum(&interpolant.at(middle))?) < self.rank {
                after = middle;
            } else {
                before = middle;
            }
        }
        self.rank = rank;
        Ok(Some(Collapse { time: after, rank, eigenvalue_ratio: spectrum[rank] / self.largest }))
    }

    /// Eigenvalues of S, decreasing: the squared singular values of the root.
    fn spectrum(&self, value: &[f64]) -> Result<Vec<f64>> {
        let (_, root) = split(self.layer.dimension(), value);
        if root.ncols() == 0 {
            return Ok(vec![]);
        }
        let values =
            root.singular_values().map_err(|_| Error::Overflow { what: "the root of the covariance" })?;
        Ok(values.into_iter().map(|value| value * value).collect())
    }

    fn rank_of(&self, spectrum: &[f64]) -> usize {
        spectrum.iter().filter(|&&eigenvalue| eigenvalue > self.collapsed).count()
    }
}
