//! How long prompts must be for training to reach the noise floor: the L(ε) of the in-context theorem, measured.

use super::{FlowOptions, Method, Response, SpectralLandscape, SpectralTask, flow, settle};
use crate::accuracy::Estimate;
use crate::concentration::{Horizon, horizon};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::prompt::PromptLength;

/// The smallest L at which gradient flow from the paper's initialisation α ends with a risk of at most the noise floor
/// plus `excess`.
///
/// The limit is found by the flow itself at the first length and at the answer; between, the stationary point is
/// followed by Newton's method, and if that should lead to another valley all lengths are flowed. The risk at
/// the limit is taken to fall with L (see [`horizon`](crate::concentration::horizon)).
///
/// ```
/// use esscher_core::Unwatched;
/// use esscher_core::regression::{SpectralTask, training_horizon};
/// let task = SpectralTask::isotropic(5, 0.1, 1.0)?;
/// let length = training_horizon(&task, 0.6, 0.3, &Unwatched)?.length();
/// assert_eq!(length.map(|length| length.get()), Some(132));
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// An α that is not positive, an excess below 10⁻⁹ (gradients are not known that well); [`Error::Empty`] if a flow does
/// not become stationary. A stop by the monitor is [`Horizon::Stopped`].
pub fn training_horizon(
    task: &SpectralTask,
    scale: f64,
    excess: f64,
    monitor: &dyn Monitor,
) -> Result<Horizon> {
    if !(excess >= 1e-9 && excess.is_finite()) {
        return Err(Error::OutOfRange { what: "the excess risk", value: excess, expected: "at least 1e-9" });
    }
    let mut search = Search::new(task, scale, excess, monitor)?;
    let found = search.run()?;
    let Horizon::Found { length, error, before: Some(_) } = found else {
        return Ok(found);
    };
    match search.flowed(length)? {
        None => Ok(Horizon::Stopped { above: None, within: Some(length) }),
        Some(flowed) if (flowed.value - error.value).abs() <= error.error => Ok(found),
        Some(_) => {
            search.newton = false;
            search.run()
        }
    }
}

/// The excess risk over the noise floor at which the flow at this length ends, as [`training_horizon`] with this `excess`
/// measures it; none if the monitor asked to stop.
///
/// # Errors
/// As [`training_horizon`].
pub fn training_excess(
    task: &SpectralTask,
    scale: f64,
    length: PromptLength,
    excess: f64,
    monitor: &dyn Monitor,
) -> Result<Option<Estimate>> {
    Search::new(task, scale, excess, monitor)?.flowed(length)
}

/// Excess risks of limits are known to this fraction of the excess asked for: what the search checks itself to.
const LIMIT_TOLERANCE: f64 = 1e-6;

struct Search<'a> {
    task: &'a SpectralTask,
    start: Vec<f64>,
    excess: f64,
    options: FlowOptions,
    monitor: &'a dyn Monitor,
    /// Stationary points found so far, and the excess risk there.
    settled: Vec<(PromptLength, Vec<f64>, Estimate)>,
    newton: bool,
}

impl<'a> Search<'a> {
    fn new(task: &'a SpectralTask, scale: f64, excess: f64, monitor: &'a dyn Monitor) -> Result<Self> {
        let options = FlowOptions {
            end_time: 1e15,
            // The risk errs by the square of the gradient over the curvature, which is of the order of the excess.
            stationary: (1e-4 * excess).min(1e-8),
            rows: 1,
            // Loose steps: the limit of a flow at finite length does not remember them.
            tolerance: 1e-5,
            largest: 1e6,
            method: Method::Stiff,
        };
        let start = task.initial(scale)?;
        Ok(Search { task, start, excess, options, monitor, settled: Vec::new(), newton: true })
    }

    fn run(&mut self) -> Result<Horizon> {
        self.settled.clear();
        let excess = self.excess;
        let mut stopped = false;
        let found = horizon(excess, PromptLength::MAX, |length| match self.excess_at(length)? {
            Some(excess) => Ok(excess),
            None => {
                stopped = true;
                Err(Error::Empty { what: "the limit of the flow (stopped by its monitor)" })
            }
        });
        if !stopped {
            return found;
        }
        let lengths = |within: bool| {
            self.settled
                .iter()
                .filter(move |(_, _, risk)| (risk.value <= excess) == within)
                .map(|(length, ..)| *length)
        };
        Ok(Horizon::Stopped { above: lengths(false).max(), within: lengths(true).min() })
    }

    /// The excess risk where training ends; none if the monitor asked to stop.
    fn excess_at(&mut self, length: PromptLength) -> Result<Option<Estimate>> {
        if self.monitor.should_stop() {
            return Ok(None);
        }
        let landscape = self.landscape(length);
        let gap = |other: PromptLength| (other.as_f64() / length.as_f64()).ln().abs();
        let near = self.settled.iter().min_by(|a, b| gap(a.0).total_cmp(&gap(b.0)));
        let guess = match near {
            Some((_, guess, _)) if self.newton => settle(&landscape, guess, self.options.stationary)?,
            _ => None,
        };
        let Some(limit) = guess.map_or_else(|| self.limit_of_flow(&landscape), |limit| Ok(Some(limit)))?
        else {
            return Ok(None);
        };
        let excess = self.excess_of(&landscape, &limit)?;
        self.settled.push((length, limit, excess));
        Ok(Some(excess))
    }

    fn flowed(&self, length: PromptLength) -> Result<Option<Estimate>> {
        let landscape = self.landscape(length);
        self.limit_of_flow(&landscape)?.map(|limit| self.excess_of(&landscape, &limit)).transpose()
    }

    fn landscape(&self, length: PromptLength) -> SpectralLandscape {
        SpectralLandscape { task: self.task.clone(), response: Response::softmax(length) }
    }

    fn limit_of_flow(&self, landscape: &SpectralLandscape) -> Result<Option<Vec<f64>>> {
        let trajectory = flow(landscape, &self.start, &self.options, self.monitor)?;
        match trajectory.ending {
            Ending::Stationary => Ok(Some(trajectory.last()?.parameters.clone())),
            Ending::Stopped => Ok(None),
            _ => Err(Error::Empty { what: "the limit of the flow (it did not become stationary)" }),
        }
    }

    fn excess_of(&self, landscape: &SpectralLandscape, parameters: &[f64]) -> Result<Estimate> {
        let (entries, gain) = parameters.split_at(self.task.groups().len());
        let risk = self.task.risk_and_gradient(entries, gain[0], &landscape.response)?.risk;
        Ok(Estimate::exact(risk - self.task.noise_floor(), LIMIT_TOLERANCE * self.excess))
    }
}
