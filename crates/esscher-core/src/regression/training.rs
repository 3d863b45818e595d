//! Training as in the paper: its initialisation, the flow at one length, and the infinite prompt's flow beside it.

use super::{
    FlowOptions, Landscape, Response, SpectralLandscape, SpectralTask, Trajectory, flow, flow_through,
};
use crate::error::Result;
use crate::monitor::Monitor;

/// A training at one length beside that of the infinite prompt.
#[derive(Debug, Clone)]
pub struct Training {
    /// α, the initial scale.
    pub scale: f64,
    /// Whether α lies in the range for which the paper's theorem is proved, 0 < α < √2/(d^{1/4}‖Σ‖). Outside, training
    /// runs all the same; the theorem then says nothing about it.
    pub within_theorem: bool,
    /// The flow at this length.
    pub trajectory: Trajectory,
    /// (time, |θ_L(t) − θ_∞(t)|) at its rows, as far as both flows got.
    pub distance_to_infinite: Vec<(f64, f64)>,
    /// |θ_L(t) − (U*, V*)| at its rows, (U*, V*) the limit of the infinite prompt's flow.
    pub distance_to_limit: Vec<f64>,
}

/// Trains from the paper's initialisation: A = α I/√d, b = α, with α half of the proved bound unless given.
///
/// ```
/// use esscher_core::Unwatched;
/// use esscher_core::prompt::PromptLength;
/// use esscher_core::regression::{FlowOptions, Response, SpectralTask, train};
/// let task = SpectralTask::isotropic(6, 0.1, 1.0)?;
/// let response = Response::softmax(PromptLength::new(1_000_000)?);
/// let options = FlowOptions { end_time: 20.0, rows: 10, ..FlowOptions::default() };
/// let training = train(&task, &response, None, &options, &Unwatched)?;
/// assert!(training.within_theorem);
/// let furthest = training.distance_to_infinite.iter().fold(0.0, |far: f64, (_, distance)| far.max(*distance));
/// assert!(furthest < 0.1);
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// An α that is not positive; options that make no sense.
pub fn train(
    task: &SpectralTask,
    response: &Response,
    scale: Option<f64>,
    options: &FlowOptions,
    monitor: &dyn Monitor,
) -> Result<Training> {
    let bound = task.proved_scale();
    let scale = scale.unwrap_or(0.5 * bound);
    let start = task.initial(scale)?;
    let landscape = SpectralLandscape { task: task.clone(), response: response.clone() };
    let trajectory = flow(&landscape, &start, options, monitor)?;
    let infinite = SpectralLandscape { task: task.clone(), response: Response::infinite() };
    let times: Vec<f64> = trajectory.rows.iter().map(|row| row.time).filter(|time| *time > 0.0).collect();
    let distance_to_infinite = if times.is_empty() {
        Vec::new()
    } else {
        // To the end of the finite flow, however still the infinite one stands by then.
        let options = FlowOptions { stationary: f64::MIN_POSITIVE, ..*options };
        let beside = flow_through(&infinite, &start, &times, &options, monitor)?;
        trajectory.distances(&landscape, &beside)
    };
    let (entries, gain) = task.infinite_limit(landscape.balance(&start))?;
    let limit: Vec<f64> = entries.into_iter().chain([gain]).collect();
    let distance_to_limit = trajectory.distances_to(&landscape, &limit)?;
    Ok(Training { scale, within_theorem: scale < bound, trajectory, distance_to_infinite, distance_to_limit })
}
