//! How long prompts must be for training to reach the noise floor: the L(ε) of the in-context theorem, measured.

use super::{FlowEnding, FlowOptions, Response, SpectralLandscape, SpectralTask, flow, settle};
use crate::concentration::{Horizon, horizon};
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::prompt::PromptLength;

/// The smallest L at which gradient flow from the paper's initialisation α ends with a risk of at most the noise floor
/// plus `excess`.
///
/// The limit of the flow is found by the flow itself at the first length and at the answer; between, the stationary
/// point is followed by Newton's method. The risk at the limit is taken to fall with L (see
/// [`horizon`](crate::concentration::horizon)).
///
/// ```
/// use esscher_core::Unwatched;
/// use esscher_core::regression::{SpectralTask, training_horizon};
/// let task = SpectralTask::isotropic(5, 0.1, 1.0)?;
/// let length = training_horizon(&task, 0.6, 0.3, &Unwatched)?.length();
/// assert!(length.is_some_and(|length| (50..500).contains(&length.get())));
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// An α or an excess that is not positive; [`Error::Empty`] if the monitor stops the search.
pub fn training_horizon(
    task: &SpectralTask,
    scale: f64,
    excess: f64,
    monitor: &dyn Monitor,
) -> Result<Horizon> {
    let start = task.initial(scale)?;
    let mut settled: Vec<(PromptLength, Vec<f64>)> = Vec::new();
    let found = horizon(excess, PromptLength::MAX, |length| {
        let near = settled.iter().min_by(|a, b| {
            let gap = |other: PromptLength| (other.as_f64() / length.as_f64()).ln().abs();
            gap(a.0).total_cmp(&gap(b.0))
        });
        let landscape = SpectralLandscape { task: task.clone(), response: Response::softmax(length) };
        let guess = match near {
            Some((_, guess)) => settle(&landscape, guess, FLOOR.stationary)?,
            None => None,
        };
        let limit = match guess {
            Some(limit) => limit,
            None => limit_of_flow(&landscape, &start, monitor)?,
        };
        let risk = risk_of(&landscape, &limit)?;
        settled.push((length, limit));
        Ok(risk - task.noise_floor())
    })?;
    if let Horizon::Found { length, error, .. } = found {
        let landscape = SpectralLandscape { task: task.clone(), response: Response::softmax(length) };
        let flowed = risk_of(&landscape, &limit_of_flow(&landscape, &start, monitor)?)? - task.noise_floor();
        if (flowed - error).abs() > 1e-6 * excess {
            return Err(Error::OutOfRange {
                what: "the excess risk at the limit of the flow, where Newton's method found another valley",
                value: flowed,
                expected: "the same limit from both: start nearer, with a smaller α",
            });
        }
    }
    Ok(found)
}

/// Loose steps: the limit of a flow at finite length does not remember them.
const FLOOR: FlowOptions = FlowOptions {
    end_time: 1e15,
    stationary: 1e-8,
    rows: 1,
    tolerance: 1e-5,
    largest: 1e6,
    method: super::Method::Stiff,
};

fn limit_of_flow(landscape: &SpectralLandscape, start: &[f64], monitor: &dyn Monitor) -> Result<Vec<f64>> {
    let trajectory = flow(landscape, start, &FLOOR, monitor)?;
    match trajectory.ending {
        FlowEnding::Stationary { .. } => Ok(trajectory.last()?.parameters.clone()),
        FlowEnding::Stopped { .. } => {
            Err(Error::Empty { what: "the limit of the flow (stopped by its monitor)" })
        }
        _ => Err(Error::Empty { what: "the limit of the flow (it did not become stationary)" }),
    }
}

fn risk_of(landscape: &SpectralLandscape, parameters: &[f64]) -> Result<f64> {
    let (entries, gain) = parameters.split_at(landscape.task.groups().len());
    Ok(landscape.task.risk_and_gradient(entries, gain[0], &landscape.response)?.risk)
}
