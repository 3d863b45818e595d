//! How long prompts must be for training to reach the noise floor: the L(ε) of the in-context theorem, measured.

use super::{FlowEnding, FlowOptions, Method, Response, SpectralLandscape, SpectralTask, flow, settle};
use crate::concentration::{Horizon, horizon};
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
    let start = task.initial(scale)?;
    let mut search = Search {
        task,
        start,
        options: FlowOptions {
            end_time: 1e15,
            // The risk errs by the square of the gradient over the curvature, which is of the order of the excess.
            stationary: (1e-4 * excess).min(1e-8),
            rows: 1,
            // Loose steps: the limit of a flow at finite length does not remember them.
            tolerance: 1e-5,
            largest: 1e6,
            method: Method::Stiff,
        },
        monitor,
        settled: Vec::new(),
        newton: true,
    };
    let found = search.run(excess)?;
    let Horizon::Found { length, error, .. } = found else {
        return Ok(found);
    };
    match search.flowed(length)? {
        None => Ok(Horizon::Stopped { above: None, within: Some(length) }),
        Some(flowed) if (flowed - error).abs() <= 1e-6 * excess => Ok(found),
        Some(_) => {
            search.newton = false;
            search.run(excess)
        }
    }
}

struct Search<'a> {
    task: &'a SpectralTask,
    start: Vec<f64>,
    options: FlowOptions,
    monitor: &'a dyn Monitor,
    /// Stationary points found so far, and the excess risk there.
    settled: Vec<(PromptLength, Vec<f64>, f64)>,
    newton: bool,
}

impl Search<'_> {
    fn run(&mut self, excess: f64) -> Result<Horizon> {
        self.settled.clear();
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
                .filter(move |(_, _, risk)| (*risk <= excess) == within)
                .map(|(length, ..)| *length)
        };
        Ok(Horizon::Stopped { above: lengths(false).max(), within: lengths(true).min() })
    }

    /// The excess risk where training ends; none if the monitor asked to stop.
    fn excess_at(&mut self, length: PromptLength) -> Result<Option<f64>> {
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

    fn flowed(&self, length: PromptLength) -> Result<Option<f64>> {
        let landscape = self.landscape(length);
        self.limit_of_flow(&landscape)?.map(|limit| self.excess_of(&landscape, &limit)).transpose()
    }

    fn landscape(&self, length: PromptLength) -> SpectralLandscape {
        SpectralLandscape { task: self.task.clone(), response: Response::softmax(length) }
    }

    fn limit_of_flow(&self, landscape: &SpectralLandscape) -> Result<Option<Vec<f64>>> {
        let trajectory = flow(landscape, &self.start, &self.options, self.monitor)?;
        match trajectory.ending {
            FlowEnding::Stationary { .. } => Ok(Some(trajectory.last()?.parameters.clone())),
            FlowEnding::Stopped { .. } => Ok(None),
            _ => Err(Error::Empty { what: "the limit of the flow (it did not become stationary)" }),
        }
    }

    fn excess_of(&self, landscape: &SpectralLandscape, parameters: &[f64]) -> Result<f64> {
        let (entries, gain) = parameters.split_at(self.task.groups().len());
        let risk = self.task.risk_and_gradient(entries, gain[0], &landscape.response)?.risk;
        Ok(risk - self.task.noise_floor())
    }
}
