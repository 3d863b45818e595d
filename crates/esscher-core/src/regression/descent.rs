//! Stochastic gradient descent with fresh prompts each step: resumable bit for bit, and why it stopped is a value.

use super::RegressionLayer;
use super::attend::Workspace;
use super::projected::Projected;
use super::tasks::{PromptDraw, Task, check_prompt};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::numerics::{InstructionSet, Stream, check, linalg};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a gradient becomes a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimiser {
    /// parameters −= rate · gradient.
    Sgd {
        /// The rate.
        rate: f64,
    },
    /// Adam (Kingma and Ba), with corrected moments.
    Adam {
        /// The rate.
        rate: f64,
        /// Decay of the mean of the gradient, in [0, 1).
        first_decay: f64,
        /// Decay of the mean of its square, in [0, 1).
        second_decay: f64,
        /// Added to the root of the second moment.
        floor: f64,
    },
}

impl Optimiser {
    /// Adam with the usual decays 0.9 and 0.999 and floor 1e-8.
    pub fn adam(rate: f64) -> Self {
        Optimiser::Adam { rate, first_decay: 0.9, second_decay: 0.999, floor: 1e-8 }
    }

    fn check(self) -> Result<()> {
        match self {
            Optimiser::Sgd { rate } => check::positive("the rate of the descent", rate),
            Optimiser::Adam { rate, first_decay, second_decay, floor } => {
                check::positive("the rate of the descent", rate)?;
                check::positive("the floor of Adam", floor)?;
                for value in [first_decay, second_decay] {
                    if !(0.0..1.0).contains(&value) {
                        let expected = "a number from 0 up to but not 1";
                        return Err(Error::OutOfRange { what: "a decay of Adam", value, expected });
                    }
                }
                Ok(())
            }
        }
    }
}

/// What is descended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// ½ · mean of (prediction − target)²: the risk of the theory.
    HalfMeanSquare,
    /// The mean of (prediction − target)², as in the authors' experiments: twice the loss and twice the gradient.
    MeanSquare,
}

impl Loss {
    /// This many times the halved mean square.
    fn scale(self) -> f64 {
        match self {
            Loss::HalfMeanSquare => 1.0,
            Loss::MeanSquare => 2.0,
        }
    }
}

/// What is drawn of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Every token.
    Prompts,
    /// Where the layer has one head and the task is a [`LinearTask`](super::tasks::LinearTask) whose covariates are one
    /// centred Gaussian of full rank, made by `gaussian` or from a law that says so
    /// ([`Measure::as_gaussian_mixture`](crate::measure::Measure::as_gaussian_mixture)); queries of any law. Then of
    /// every token only its projections on tilt and value are drawn, and the rest of the gradient from its exact law
    /// given those. Loss and gradient have the same law as with prompts, though not the same numbers, and cost several
    /// times less. Elsewhere as [`Draws::Prompts`].
    Projections,
}

/// How to descend.
#[derive(Debug, Clone, PartialEq)]
pub struct DescentOptions {
    /// How a gradient becomes a step.
    pub optimiser: Optimiser,
    /// What is descended.
    pub loss: Loss,
    /// Prompts of a step, from 1 to 2²⁴.
    pub batch: u32,
    /// What is drawn of a prompt; part of the identity of the result.
    pub draws: Draws,
    /// Steps in all.
    pub steps: u32,
    /// Which prompts: prompt `i` of step `t` stands at the address (seed, t, i).
    pub seed: u64,
    /// Weight of a new batch in the smoothed loss, in (0, 1].
    pub smoothing: f64,
    /// After which numbers of steps a row is recorded; 0 is the start.
    pub record: Vec<u32>,
    /// Instructions of the inner loop; part of the identity of the result.
    pub instruction_set: InstructionSet,
}

impl Default for DescentOptions {
    fn default() -> Self {
        DescentOptions {
            optimiser: Optimiser::Sgd { rate: 1e-2 },
            loss: Loss::HalfMeanSquare,
            batch: 128,
            draws: Draws::Prompts,
            steps: 1000,
            seed: 0,
            smoothing: 0.02,
            record: Vec::new(),
            instruction_set: InstructionSet::best(),
        }
    }
}

/// A descent of one layer on one task at one prompt length.
///
/// ```
/// use esscher_core::regression::tasks::LinearTask;
/// use esscher_core::regression::{AttentionKind, LinearRegression, RegressionHead, RegressionLayer};
/// use esscher_core::regression::{Descent, DescentOptions, Optimiser};
/// use esscher_core::{Ending, Unwatched, mat};
/// use std::sync::Arc;
///
/// let task = Arc::new(LinearTask::gaussian(&LinearRegression::isotropic(1)?)?);
/// let head = RegressionHead::block(mat![[0.1]].as_ref(), 0.1)?;
/// let layer = RegressionLayer::heads(AttentionKind::Softmax, &[head])?;
/// let options = DescentOptions { optimiser: Optimiser::adam(0.02), steps: 200, record: vec![1], ..Default::default() };
/// let descent = Descent::new(task, layer, 20, options)?;
/// let run = descent.run(descent.start(), &Unwatched)?;
/// assert_eq!(run.end.ending, Ending::Completed);
/// assert!(run.state.smoothed_loss.unwrap() < run.state.rows[0].smoothed_loss.unwrap());
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Descent {
    task: Arc<dyn Task>,
    layer: RegressionLayer,
    length: usize,
    options: DescentOptions,
}

/// Everything that the next step depends on, and what has been recorded: save it, and resume bit for bit.
#[derive(Debug, Clone, PartialEq)]
pub struct DescentState {
    /// Steps taken.
    pub step: u32,
    /// The parameters after them, always finite.
    pub parameters: Vec<f64>,
    /// Adam's mean of the gradient; empty for SGD.
    pub first_moment: Vec<f64>,
    /// Adam's mean of its square; empty for SGD.
    pub second_moment: Vec<f64>,
    /// The exponentially smoothed loss of the batches, none before the first.
    pub smoothed_loss: Option<f64>,
    /// The rows recorded so far.
    pub rows: Vec<DescentRow>,
}

/// One recorded moment of a descent.
#[derive(Debug, Clone, PartialEq)]
pub struct DescentRow {
    /// Steps taken.
    pub step: u32,
    /// The smoothed training loss, none before the first step: an estimate of the risk, or of twice the risk with
    /// [`Loss::MeanSquare`], that lags by about 1/smoothing steps. For the risk of this very moment hand
    /// `parameters` to [`RiskSimulation`](super::RiskSimulation).
    pub smoothed_loss: Option<f64>,
    /// ‖scores‖² − ‖values‖² ([`RegressionLayer::balance`]), which gradient flow of linear attention conserves; none
    /// where squares of the parameters exceed double precision.
    pub balance: Option<f64>,
    /// The parameters.
    pub parameters: Vec<f64>,
}

/// How a descent ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DescentEnd {
    /// Completed: all steps were taken. Stopped: the monitor asked for it, resume from the state. Diverged: the next step
    /// would have left the numbers or lost all sense, because the loss of its batch was more than a million times
    /// that of predicting zero, or something overflowed; the state holds the last sound parameters, try a smaller rate.
    pub ending: Ending,
    /// Steps taken.
    pub step: u32,
    /// After divergence: the loss of the bad batch if that is a number, else the smoothed loss before it if there is one.
    pub loss: Option<f64>,
}

/// What a descent reached, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct DescentRun {
    /// The state that was reached.
    pub state: DescentState,
    /// How it ended.
    pub end: DescentEnd,
}

impl DescentRun {
    fn new(state: DescentState, ending: Ending, loss: Option<f64>) -> Self {
        DescentRun { end: DescentEnd { ending, step: state.step, loss }, state }
    }
}

/// A loss beyond this multiple of the loss of predicting zero on the same batch is divergence.
const DIVERGED: f64 = 1e6;

/// Tokens worth a task of the thread pool: fewer cost more to hand over than to compute.
const TOKENS_PER_SHARE: usize = 1 << 12;

/// Shares of a large batch between two looks at the monitor: some hundredths of a second.
const SHARES_PER_LOOK: usize = 64;

/// Prompts of a step at most: a step is not interrupted, and this many take minutes.
const LARGEST_BATCH: u32 = 1 << 24;

/// Numbers in the sums of shares that run together, unless the threads ask for more.
const NUMBERS_IN_SUMS: usize = 1 << 20;

/// Steps between two reports of progress.
const STEPS_PER_REPORT: u32 = 64;

/// Training has prompts of its own, which no simulation of the same seed will test on.
const DESCENT_STREAM: u64 = 0x4445_5343_454E_5431;

impl Descent {
    /// Checks the request; the descent starts at the layer's parameters.
    ///
    /// # Errors
    /// A layer of another dimension than the task, a batch that is empty or beyond 2²⁴, rates and weights out of range, a length of zero or
    /// one too long to store.
    pub fn new(
        task: Arc<dyn Task>,
        layer: RegressionLayer,
        length: usize,
        mut options: DescentOptions,
    ) -> Result<Self> {
        check_prompt(task.dimension(), length)?;
        check::size("the layer (dimension)", task.dimension(), layer.dimension())?;
        check::at_least_one("the batch", options.batch as usize)?;
        if options.batch > LARGEST_BATCH {
            return Err(Error::OutOfRange {
                what: "the batch",
                value: f64::from(options.batch),
                expected: "at most 2²⁴ prompts a step",
            });
        }
        options.optimiser.check()?;
        if !(options.smoothing > 0.0 && options.smoothing <= 1.0) {
            return Err(Error::OutOfRange {
                what: "the smoothing of the loss",
                value: options.smoothing,
                expected: "above 0 and at most 1",
            });
        }
        options.record.sort_unstable();
        options.record.dedup();
        Ok(Descent { task, layer, length, options })
    }

    /// How it descends.
    pub fn options(&self) -> &DescentOptions {
        &self.options
    }

    /// The state before the first step.
    pub fn start(&self) -> DescentState {
        let moments = match self.options.optimiser {
            Optimiser::Sgd { .. } => Vec::new(),
            Optimiser::Adam { .. } => vec![0.0; self.layer.parameters().len()],
        };
        DescentState {
            step: 0,
            parameters: self.layer.parameters().to_vec(),
            first_moment: moments.clone(),
            second_moment: moments,
            smoothed_loss: None,
            rows: Vec::new(),
        }
    }

    /// The layer with the parameters of a state.
    ///
    /// # Errors
    /// A state of another descent.
    pub fn layer(&self, state: &DescentState) -> Result<RegressionLayer> {
        self.layer.with_parameters(&state.parameters)
    }

    /// Descends from a state to the last step, or until divergence or the monitor ends it.
    ///
    /// The same bits for any number of threads and any interruption.
    ///
    /// # Errors
    /// A state that does not belong to this descent; what the task refuses.
    pub fn run(&self, state: DescentState, monitor: &dyn Monitor) -> Result<DescentRun> {
        self.check_state(&state)?;
        let mut state = state;
        let mut layer = self.layer(&state)?;
        let mut batch = Batch::new(self);
        self.record(&mut state, &layer);
        while state.step < self.options.steps {
            if monitor.should_stop() {
                return Ok(DescentRun::new(state, Ending::Stopped, None));
            }
            let Some(loss) = batch.run(self, &layer, state.step, monitor)? else {
                return Ok(DescentRun::new(state, Ending::Stopped, None));
            };
            if !self.advance(&mut state, &mut layer, loss, &batch.gradient) {
                let loss = Some(loss.value).filter(|loss| loss.is_finite()).or(state.smoothed_loss);
                return Ok(DescentRun::new(state, Ending::Diverged, loss));
            }
            let weight = self.options.smoothing;
            state.smoothed_loss =
                Some(state.smoothed_loss.map_or(loss.value, |old| old + weight * (loss.value - old)));
            state.step += 1;
            self.record(&mut state, &layer);
            if state.step.is_multiple_of(STEPS_PER_REPORT) || state.step == self.options.steps {
                monitor.progress(state.step as usize, self.options.steps as usize);
            }
        }
        Ok(DescentRun::new(state, Ending::Completed, None))
    }

    fn check_state(&self, state: &DescentState) -> Result<()> {
        if state.step > self.options.steps {
            return Err(Error::OutOfRange {
                what: "the step of a saved descent",
                value: f64::from(state.step),
                expected: "at most the number of steps asked for",
            });
        }
        let fresh = self.start();
        check::vector("the saved parameters", fresh.parameters.len(), &state.parameters)?;
        check::vector("the saved first moment", fresh.first_moment.len(), &state.first_moment)?;
        check::vector("the saved second moment", fresh.second_moment.len(), &state.second_moment)?;
        check::finite_vector("the saved loss", state.smoothed_loss.as_slice())
    }

    fn record(&self, state: &mut DescentState, layer: &RegressionLayer) {
        let known = state.rows.last().is_some_and(|row| row.step >= state.step);
        if !known && self.options.record.binary_search(&state.step).is_ok() {
            state.rows.push(DescentRow {
                step: state.step,
                smoothed_loss: state.smoothed_loss,
                balance: layer.balance(),
                parameters: state.parameters.clone(),
            });
        }
    }

    /// One step of the optimiser on state and layer; nothing moves and `false` comes back if it makes no sense.
    fn advance(
        &self,
        state: &mut DescentState,
        layer: &mut RegressionLayer,
        loss: BatchLoss,
        gradient: &[f64],
    ) -> bool {
        let bounded = !(loss.of_zero > 0.0) || loss.value <= DIVERGED * loss.of_zero;
        if !(loss.value.is_finite() && bounded) {
            return false;
        }
        let mut parameters = state.parameters.clone();
        let (mut first, mut second) = (state.first_moment.clone(), state.second_moment.clone());
        match self.options.optimiser {
            Optimiser::Sgd { rate } => linalg::add_scaled(&mut parameters, -rate, gradient),
            Optimiser::Adam { rate, first_decay, second_decay, floor } => {
                let power = f64::from(state.step) + 1.0;
                let first_share = 1.0 - first_decay.powf(power);
                let second_share = 1.0 - second_decay.powf(power);
                for (index, slope) in gradient.iter().enumerate() {
                    first[index] = first_decay * first[index] + (1.0 - first_decay) * slope;
                    second[index] = second_decay * second[index] + (1.0 - second_decay) * slope * slope;
                    let size = (second[index] / second_share).sqrt() + floor;
                    parameters[index] -= rate * (first[index] / first_share) / size;
                }
            }
        }
        layer.set_parameters(&parameters);
        let moments = first.iter().chain(&second);
        if !(layer.is_finite() && moments.chain(gradient).all(|entry| entry.is_finite())) {
            layer.set_parameters(&state.parameters);
            return false;
        }
        (state.parameters, state.first_moment, state.second_moment) = (parameters, first, second);
        true
    }
}

/// The loss of one batch and that of predicting zero on it.
#[derive(Debug, Clone, Copy)]
struct BatchLoss {
    value: f64,
    of_zero: f64,
}

/// How a batch is cut, its sums, and the buffers to draw it with.
struct Batch {
    /// Prompts of a share, fixed by batch and length and not by the machine.
    prompts_per_share: u32,
    /// Sums of the shares that run at the same time; all shares in turn.
    sums: Vec<ShareSum>,
    /// Buffers that no thread holds now: never more of them than threads.
    idle: Mutex<Vec<Buffers>>,
    effective: Vec<f64>,
    gradient: Vec<f64>,
}

/// What one share adds to loss and gradient.
struct ShareSum {
    gradient: Vec<f64>,
    squares: f64,
    squares_of_zero: f64,
}

/// What a thread needs to draw prompts and see the layer on them; their past does not show.
#[derive(Default)]
struct Buffers {
    prompt: PromptDraw,
    workspace: Workspace,
    projected: Projected,
    of_prompt: Vec<f64>,
}

impl Batch {
    fn new(descent: &Descent) -> Self {
        let batch = descent.options.batch;
        let prompts_per_share = TOKENS_PER_SHARE.div_ceil(descent.length).min(batch as usize) as u32;
        let numbers = descent.layer.effective_length();
        // Shares are summed in their order, so that how many run together does not show.
        let together = (NUMBERS_IN_SUMS / numbers).max(4 * rayon::current_num_threads());
        let together = together.min(batch.div_ceil(prompts_per_share) as usize);
        let sum = || ShareSum { gradient: vec![0.0; numbers], squares: 0.0, squares_of_zero: 0.0 };
        Batch {
            prompts_per_share,
            sums: (0..together).map(|_| sum()).collect(),
            idle: Mutex::default(),
            effective: vec![0.0; numbers],
            gradient: vec![0.0; descent.layer.parameters().len()],
        }
    }

    /// Draws the batch of a step; leaves its gradient in `gradient`. Nothing if the monitor asks to stop meanwhile.
    fn run(
        &mut self,
        descent: &Descent,
        layer: &RegressionLayer,
        step: u32,
        monitor: &dyn Monitor,
    ) -> Result<Option<BatchLoss>> {
        let batch = descent.options.batch;
        let scale = descent.options.loss.scale() / f64::from(batch);
        self.effective.fill(0.0);
        let mut loss = BatchLoss { value: 0.0, of_zero: 0.0 };
        let shares = batch.div_ceil(self.prompts_per_share);
        let stopped = AtomicBool::new(false);
        for first in (0..shares).step_by(self.sums.len()) {
            let running = self.sums.len().min((shares - first) as usize);
            let sums = &mut self.sums[..running];
            let run = |(offset, sum): (usize, &mut ShareSum)| {
                // The caller has looked before the first share.
                if offset > 0 && offset.is_multiple_of(SHARES_PER_LOOK) && monitor.should_stop() {
                    stopped.store(true, Ordering::Relaxed);
                }
                if stopped.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let start = (first + offset as u32) * self.prompts_per_share;
                let prompts = start..start.saturating_add(self.prompts_per_share).min(batch);
                let mut buffers = idle(&self.idle).pop().unwrap_or_default();
                let outcome = sum.run(descent, layer, step, prompts, &mut buffers);
                idle(&self.idle).push(buffers);
                outcome
            };
            if let [only] = sums {
                run((0, only))?;
            } else {
                sums.par_iter_mut().enumerate().try_for_each(run)?;
            }
            if stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            for sum in &self.sums[..running] {
                linalg::add_scaled(&mut self.effective, scale, &sum.gradient);
                loss.value += 0.5 * scale * sum.squares;
                loss.of_zero += 0.5 * scale * sum.squares_of_zero;
            }
        }
        layer.pull_back(&self.effective, &mut self.gradient);
        Ok(Some(loss))
    }
}

/// The buffers at rest, also after a panic of a task elsewhere: their past does not show.
fn idle(buffers: &Mutex<Vec<Buffers>>) -> MutexGuard<'_, Vec<Buffers>> {
    buffers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ShareSum {
    fn run(
        &mut self,
        descent: &Descent,
        layer: &RegressionLayer,
        step: u32,
        prompts: Range<u32>,
        buffers: &mut Buffers,
    ) -> Result<()> {
        let set = descent.options.instruction_set;
        let projections = descent.options.draws == Draws::Projections && layer.has_one_head();
        let gaussian = if projections { descent.task.as_gaussian_linear() } else { None };
        let Buffers { prompt, workspace, projected, of_prompt } = buffers;
        of_prompt.resize(self.gradient.len(), 0.0);
        self.gradient.fill(0.0);
        (self.squares, self.squares_of_zero) = (0.0, 0.0);
        for index in prompts {
            let mut stream =
                Stream::new(descent.options.seed ^ DESCENT_STREAM, step, index).with_instruction_set(set);
            let prediction = if let Some(task) = gaussian {
                projected.forward_with_gradient(
                    task,
                    layer,
                    descent.length,
                    &mut stream,
                    set,
                    prompt,
                    workspace,
                    of_prompt,
                )?
            } else {
                descent.task.draw(descent.length, &mut stream, prompt)?;
                check::size("the drawn prompt (dimension)", layer.dimension(), prompt.dimension())?;
                layer.forward_with_gradient(prompt, set, workspace, of_prompt)
            };
            let residual = prediction - prompt.target();
            linalg::add_scaled(&mut self.gradient, residual, of_prompt);
            self.squares += residual * residual;
            self.squares_of_zero += prompt.target() * prompt.target();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regression::tasks::LinearTask;
    use crate::regression::{AttentionKind, LinearRegression};

    /// Every share once kept a prompt and a workspace of its own: 4.5 GB for 128 prompts of 10⁵ tokens at d = 20.
    #[test]
    fn a_batch_keeps_buffers_for_threads_and_not_for_shares() {
        let task = LinearTask::gaussian(&LinearRegression::isotropic(2).unwrap()).unwrap();
        let mut stream = Stream::new(0, 0, 0);
        let layer = RegressionLayer::projections_at_random(AttentionKind::Softmax, 2, &mut stream).unwrap();
        let options = DescentOptions { batch: 500, ..DescentOptions::default() };
        let descent = Descent::new(Arc::new(task), layer.clone(), TOKENS_PER_SHARE, options).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let mut whole = Batch::new(&descent);
        assert_eq!(whole.sums.len(), 500);
        pool.install(|| whole.run(&descent, &layer, 0, &crate::Unwatched)).unwrap();
        assert!((1..=3).contains(&idle(&whole.idle).len()));
        // Fewer sums at a time give the same bits.
        let mut narrow = Batch::new(&descent);
        narrow.sums.truncate(7);
        pool.install(|| narrow.run(&descent, &layer, 0, &crate::Unwatched)).unwrap();
        assert_eq!(narrow.gradient, whole.gradient);
    }
}
