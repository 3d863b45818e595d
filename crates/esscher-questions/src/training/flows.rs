//! Runs one flow: exactly, or on drawn covariates.

use super::answer::{Quantity, Row};
use super::ask::Model;
use super::compute::{Job, Training};
use crate::measured::Measured;
use crate::seeds::part_seed;
use esscher_core::measure::Law;
use esscher_core::numerics::linalg;
use esscher_core::prompt::PromptLength;
use esscher_core::regression::{
    Block, BlockLandscape, ContextLength, DrawnCovariates, FlowOptions, FlowRow, Landscape, LinearAttention,
    Response, SpectralLandscape, SpectralTask, Trajectory, flow_through,
};
use esscher_core::{Accuracy, Ending, Monitor};
use esscher_lab::{Failure, Named};

impl Training {
    pub(super) fn run_exact(&self, job: &Job, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let task = &self.ask.task.tasks.0[job.task];
        let (spectral, vectors) = SpectralTask::new(task)?;
        let scale = self.ask.initial.at(&spectral);
        let start = spectral.initial(scale)?;
        let response = match (job.model, job.length) {
            (Model::Softmax, Some(length)) => Response::softmax(length),
            (Model::Linear, Some(length)) => Response::linear(length),
            (Model::OppositeHeads, Some(length)) => Response::opposite_heads(length),
            _ => Response::infinite(),
        };
        let drifts = matches!(job.model, Model::Softmax | Model::OppositeHeads);
        let landscape = SpectralLandscape { task: spectral.clone(), response };
        let follow = |looser| {
            let options = self.options(drifts, looser);
            finished(flow_through(&landscape, &start, &self.times, &options, monitor))
        };
        // The same with looser steps: the difference bounds the error of the finer one.
        let (Some(trajectory), Some(loose)) = (follow(1.0)?, follow(100.0)?) else { return Ok(None) };
        let infinite = SpectralLandscape { task: spectral.clone(), response: Response::infinite() };
        let times = self.times_of(&trajectory);
        let options = FlowOptions { stationary: 1e-13, ..FlowOptions::without_drift() };
        let beside = match times.as_slice() {
            [] => Some(trajectory.clone()),
            times => finished(flow_through(&infinite, &start, times, &options, monitor))?,
        };
        let Some(beside) = beside else { return Ok(None) };
        let balance = landscape.balance(&start);
        let (entries, gain) = spectral.infinite_limit(balance)?;
        let limit: Vec<f64> = entries.into_iter().chain([gain]).collect();
        let context =
            job.length.filter(|_| job.model == Model::Linear).map_or(ContextLength::Infinite, Into::into);
        let linear = LinearAttention::new(task, context)?;
        let has_own_limit = matches!(job.model, Model::Infinite | Model::Linear);
        let own_limit = has_own_limit.then(|| linear.flow_limit(balance)).transpose()?;
        let own_distance = |row: &FlowRow| -> esscher_core::Result<Option<f64>> {
            let Some(limit) = &own_limit else { return Ok(None) };
            let (gain, entries) = row.parameters.split_last().unwrap_or((&0.0, &[]));
            let block = spectral.block(vectors.as_ref(), entries, *gain)?;
            let offset = block.matrix() - limit.matrix();
            Ok(Some((linalg::squared_frobenius(offset.as_ref()) + (gain - limit.gain()).powi(2)).sqrt()))
        };
        let predicted = match job.length {
            Some(length) if job.model == Model::Softmax && !times.is_empty() => {
                // As far as the flow moves: far beyond, the drift is a standstill that integrates badly.
                let moving = trajectory.rows[1..].iter().map(|row| row.time);
                let scaled: Vec<f64> = moving.map(|time| time / length.as_f64()).collect();
                spectral.valley_drift(gain, &scaled, monitor)?
            }
            _ => None,
        };
        // How far a point of the valley is from the infinite limit.
        let along_valley = |gain: f64| -> esscher_core::Result<f64> {
            let point: Vec<f64> = spectral.valley(gain)?.into_iter().chain([gain]).collect();
            Ok(landscape.distance(&point, &limit))
        };

        let mut rows = Rows::new(job, task.dimension(), scale, trajectory.ending);
        let mut largest: Option<(f64, Measured)> = None;
        let mut beside_infinite = |rows: &mut Rows, time: f64, row: &FlowRow, error: Option<f64>| {
            let Some(there) = row_at(&beside, time) else { return };
            let distance = bounded(landscape.distance(&row.parameters, &there.parameters), error);
            if largest.is_none_or(|(_, found)| distance.value > found.value) {
                largest = Some((time, distance));
            }
            rows.push(time, Quantity::DistanceToInfinite, distance);
        };
        let error_of = |row: &FlowRow, other: &FlowRow| {
            landscape.distance(&row.parameters, &other.parameters) + 1e-12 * landscape.norm(&row.parameters)
        };
        for (index, row) in trajectory.rows.iter().enumerate() {
            let other = counterpart(&loose, row, index + 1 == trajectory.rows.len());
            let step_error = other.map(|other| error_of(row, other));
            let balance_error = other.map(|other| (row.balance - other.balance).abs() + 1e-12);
            let gain = row.parameters.last().copied().unwrap_or_default();
            rows.push(row.time, Quantity::Risk, risk_of(row, other));
            rows.push(row.time, Quantity::Gain, bounded(gain, step_error));
            rows.push(row.time, Quantity::Balance, bounded(row.balance, balance_error));
            beside_infinite(&mut rows, row.time, row, step_error);
            let distance = landscape.distance(&row.parameters, &limit);
            rows.push(row.time, Quantity::DistanceToInfiniteLimit, bounded(distance, step_error));
            if let Some(distance) = own_distance(row)? {
                rows.push(row.time, Quantity::DistanceToOwnLimit, bounded(distance, step_error));
            }
        }
        for (time, gain) in times.iter().zip(predicted.iter().flatten()) {
            rows.push(*time, Quantity::PredictedGain, Measured::exact(*gain, 1e-6 * gain.abs()));
            let distance = along_valley(*gain)?;
            rows.push(*time, Quantity::PredictedDistance, Measured::exact(distance, 1e-6 * gain.abs()));
        }
        let last = trajectory.last()?;
        let end = counterpart(&loose, last, true);
        let end_error = end.map(|other| error_of(last, other));
        // Where this flow stands, the other may still move.
        for time in times.iter().filter(|time| **time > last.time) {
            beside_infinite(&mut rows, *time, last, end_error);
        }
        if let Some((time, distance)) = largest
            && is_followed(&trajectory)
            && is_followed(&beside)
        {
            rows.push(time, Quantity::LargestDistanceToInfinite, distance);
        }
        let (_, entries) = last.parameters.split_last().unwrap_or((&0.0, &[]));
        for (index, entry) in entries.iter().enumerate() {
            let Some(quantity) = Quantity::named(&format!("entry-{}", index + 1)) else { break };
            rows.push(last.time, quantity, bounded(*entry, end_error));
        }
        rows.push(last.time, Quantity::FinalRisk, risk_of(last, end));
        rows.push(last.time, Quantity::NoiseFloor, Measured::exact(task.noise_floor(), 0.0));
        if job.model == Model::Softmax {
            let (gain, coefficient) = spectral.valley_minimum()?;
            rows.push(last.time, Quantity::FirstOrderGain, Measured::exact(gain, 1e-6 * gain));
            let distance = along_valley(gain)?;
            rows.push(last.time, Quantity::FirstOrderDistance, Measured::exact(distance, 1e-6 * gain));
            let coefficient = Measured::exact(coefficient, 1e-9 * coefficient);
            rows.push(last.time, Quantity::FirstOrderCoefficient, coefficient);
        }
        let bounds = linear.initial_scale(scale)?;
        let known = |bound: f64| Measured::exact(bound, 1e-12 * bound);
        rows.push(0.0, Quantity::PaperBound, known(bounds.paper_bound));
        rows.push(0.0, Quantity::SufficientBound, known(bounds.sufficient_bound));
        Ok(Some(rows.rows))
    }

    pub(super) fn run_drawn(
        &self,
        job: &Job,
        draw: u32,
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<Row>>, Failure> {
        let task = &self.ask.task.tasks.0[job.task];
        let (spectral, _) = SpectralTask::new(task)?;
        let scale = self.ask.initial.at(&spectral);
        let law: Law = job.covariates.law(task)?;
        // All lengths share their draws, whose queries and prefixes make distances far better known than flows.
        let longest = self.ask.lengths.iter().flatten().last().copied().unwrap_or(PromptLength::MIN);
        let seed = part_seed(self.seed, u64::from(draw));
        let draws = DrawnCovariates::new(
            law,
            task.noise(),
            task.prior_scale(),
            self.sampling.prompts as u32,
            longest,
            seed,
        )?;
        let dimension = task.dimension();
        let block = Block::initial(linalg::identity(dimension).as_ref(), scale)?;
        let start = BlockLandscape::parameters(&block);
        let landscape = draws.landscape(job.length)?;
        let options = self.options(true, 1.0);
        let follow = |landscape| finished(flow_through(landscape, &start, &self.times, &options, monitor));
        let Some(trajectory) = follow(&landscape)? else { return Ok(None) };
        let beside = match job.model {
            Model::Infinite => Some(trajectory.clone()),
            _ => follow(&draws.landscape(None)?)?,
        };
        let Some(beside) = beside else { return Ok(None) };
        let mut rows = Rows::new(job, dimension, scale, trajectory.ending);
        let one = |value: f64| Measured { value, error: None, accuracy: Accuracy::Sampled };
        let mut largest = 0.0_f64;
        // At the times asked for, where all draws meet; a flow that stands still stays where it stands.
        for time in std::iter::once(&0.0).chain(&self.times) {
            let Some(row) = row_at(&trajectory, *time) else { continue };
            rows.push(*time, Quantity::Risk, one(row.risk));
            rows.push(*time, Quantity::Gain, one(row.parameters.last().copied().unwrap_or_default()));
            rows.push(*time, Quantity::Balance, one(row.balance));
            if let Some(there) = row_at(&beside, *time) {
                let distance = landscape.distance(&row.parameters, &there.parameters);
                rows.push(*time, Quantity::DistanceToInfinite, one(distance));
                largest = largest.max(distance);
            }
        }
        let end = self.times.last().copied().unwrap_or_default();
        if is_followed(&trajectory) && is_followed(&beside) {
            rows.push(end, Quantity::LargestDistanceToInfinite, one(largest));
        }
        rows.push(end, Quantity::FinalRisk, one(trajectory.last()?.risk));
        Ok(Some(rows.rows))
    }

    /// The times of this flow's rows after the start, and those that were asked for after it stood still.
    fn times_of(&self, trajectory: &Trajectory) -> Vec<f64> {
        let mut times: Vec<f64> = trajectory.rows[1..].iter().map(|row| row.time).collect();
        if trajectory.ending == Ending::Stationary {
            let end = times.last().copied().unwrap_or(0.0);
            times.extend(self.times.iter().filter(|time| **time > end));
        }
        times
    }

    fn options(&self, drifts: bool, factor: f64) -> FlowOptions {
        if drifts {
            FlowOptions {
                method: self.ask.method,
                tolerance: factor * self.ask.tolerance,
                stationary: self.ask.stationary,
                ..FlowOptions::default()
            }
        } else {
            let tight = FlowOptions::without_drift();
            FlowOptions { tolerance: factor * tight.tolerance, stationary: self.ask.stationary, ..tight }
        }
    }
}

/// The rows of a unit while they are written.
struct Rows {
    rows: Vec<Row>,
    job: Job,
    dimension: usize,
    initial_scale: f64,
    ending: Ending,
}

impl Rows {
    fn new(job: &Job, dimension: usize, initial_scale: f64, ending: Ending) -> Self {
        Rows { rows: Vec::new(), job: *job, dimension, initial_scale, ending }
    }

    fn push(&mut self, time: f64, quantity: Quantity, number: Measured) {
        self.rows.push(Row {
            covariates: self.job.covariates,
            dimension: self.dimension as i64,
            model: self.job.model,
            length: self.job.length.map(|length| length.get() as i64),
            draw: self.job.draw.map(i64::from),
            initial_scale: self.initial_scale,
            ending: Some(self.ending),
            time,
            quantity,
            number,
        });
    }
}

/// Nothing if the monitor stopped it.
fn finished(flow: esscher_core::Result<Trajectory>) -> esscher_core::Result<Option<Trajectory>> {
    Ok(Some(flow?).filter(|trajectory| trajectory.ending != Ending::Stopped))
}

/// Whether a flow was followed to the last time asked for, or until it stood still.
fn is_followed(trajectory: &Trajectory) -> bool {
    matches!(trajectory.ending, Ending::Completed | Ending::Stationary)
}

/// An exact number, with its error if another integration tells it.
fn bounded(value: f64, error: Option<f64>) -> Measured {
    Measured { value, error, accuracy: Accuracy::Exact }
}

/// The risk at a row, if another integration of the same flow tells its error: exact to 1e-9 of itself, and to rounding,
/// where the steps are.
fn risk_of(row: &FlowRow, other: Option<&FlowRow>) -> Measured {
    let steps = other.map(|other| (row.risk - other.risk).abs());
    bounded(row.risk, steps.map(|steps| steps + 1e-9 * row.risk.abs() + 1e-12))
}

/// The row of another integration of the same flow: at the same time, or where both ended.
fn counterpart<'a>(other: &'a Trajectory, row: &FlowRow, is_last: bool) -> Option<&'a FlowRow> {
    row_at(other, row.time).or_else(|| other.rows.last().filter(|_| is_last && is_followed(other)))
}

/// The row at this time; after a flow has become stationary, that where it stands.
fn row_at(trajectory: &Trajectory, time: f64) -> Option<&FlowRow> {
    let same = trajectory.rows.iter().find(|row| row.time == time);
    let standing =
        trajectory.rows.last().filter(|last| trajectory.ending == Ending::Stationary && time >= last.time);
    same.or(standing)
}
