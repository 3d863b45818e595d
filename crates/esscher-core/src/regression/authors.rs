//! The authors' experiment: softmax against linear attention, trained by SGD at each prompt length (`boursier2025`).
//!
//! d = 5, one head in separate Q, K, V, O, label noise of variance 0.1, w ~ N(0, I/d), SGD on the mean squared error at
//! rate 1e-3 with 128 fresh prompts a step. Isotropic covariates, or Toeplitz with Σ_ij = 0.5^|i − j|.

use super::tasks::LinearTask;
use super::{
    AttentionKind, Descent, DescentEnd, DescentOptions, DescentState, Draws, LinearRegression, Loss,
    Optimiser, RegressionHead, RegressionLayer, RiskOptions, RiskSimulation,
};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::monitor::{Completion, Monitor, Quiet, Unwatched};
use crate::numerics::{InstructionSet, Stream, check};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

/// The dimension d of the covariates.
pub const DIMENSION: usize = 5;

/// The variance of the label noise: no predictor has a smaller mean squared error.
pub const NOISE: f64 = 0.1;

/// The covariance of the covariates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorsCovariance {
    /// The identity I.
    Isotropic,
    /// 0.5^|i − j|.
    Toeplitz,
}

/// How a layer is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthorsOptimiser {
    /// Stochastic gradient descent, as the authors do.
    Sgd,
    /// Adam with its usual decays: it leaves the plateau at the start, and arrives, in far fewer steps.
    Adam,
}

impl AuthorsOptimiser {
    fn at(self, rate: f64) -> Optimiser {
        match self {
            AuthorsOptimiser::Sgd => Optimiser::Sgd { rate },
            AuthorsOptimiser::Adam => Optimiser::adam(rate),
        }
    }
}

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorsOptions {
    /// The covariance of the covariates.
    pub covariance: AuthorsCovariance,
    /// The Toeplitz case as the authors' public code draws it: their Cholesky factor C is applied twice to the prompt's
    /// covariates, x = C C g, and never to the query's, x_q = g. Without effect on isotropic covariates.
    pub covariance_bug: bool,
    /// Prompt lengths, for training and test.
    pub lengths: Vec<usize>,
    /// How layers are trained.
    pub optimiser: AuthorsOptimiser,
    /// Steps of training.
    pub steps: u32,
    /// The learning rate.
    pub rate: f64,
    /// What is drawn of a training prompt; tests draw every token.
    pub draws: Draws,
    /// Test prompts.
    pub test_prompts: u32,
    /// Initial layers, training and test prompts. Softmax and linear attention start from the same matrices and see
    /// the same prompts.
    pub seed: u64,
    /// Instructions of the inner loop; part of the identity of the result.
    pub instruction_set: InstructionSet,
}

impl Default for AuthorsOptions {
    fn default() -> Self {
        AuthorsOptions {
            covariance: AuthorsCovariance::Isotropic,
            covariance_bug: false,
            lengths: vec![10, 40, 100, 400],
            optimiser: AuthorsOptimiser::Sgd,
            steps: 3_000,
            rate: 1e-3,
            draws: Draws::Projections,
            test_prompts: 10_000,
            seed: 0,
            instruction_set: InstructionSet::best(),
        }
    }
}

/// What fixes the numbers of a training and its test at any length: all options but `lengths`, which are independent
/// of each other, and `steps`, which can be extended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuthorsIdentity {
    /// The covariance of the covariates.
    pub covariance: AuthorsCovariance,
    /// Whether the bug has an effect.
    pub covariance_bug: bool,
    /// How layers are trained.
    pub optimiser: AuthorsOptimiser,
    /// The learning rate.
    pub rate: f64,
    /// What is drawn of a training prompt.
    pub draws: Draws,
    /// Test prompts.
    pub test_prompts: u32,
    /// Layers and prompts.
    pub seed: u64,
    /// Instructions of the inner loop.
    pub instruction_set: InstructionSet,
}

impl AuthorsIdentity {
    /// # Errors
    /// [`Error::OtherRun`] with the first thing that differs from `found`.
    fn check(&self, found: &AuthorsIdentity) -> Result<()> {
        let same = |what: &'static str, expected: &dyn Debug, found: &dyn Debug| {
            let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
            if expected == found { Ok(()) } else { Err(Error::OtherRun { what, expected, found }) }
        };
        same("covariance", &self.covariance, &found.covariance)?;
        same("covariance bug", &self.covariance_bug, &found.covariance_bug)?;
        same("optimiser", &self.optimiser, &found.optimiser)?;
        same("rate", &self.rate, &found.rate)?;
        same("kind of draws", &self.draws, &found.draws)?;
        same("number of test prompts", &self.test_prompts, &found.test_prompts)?;
        same("seed", &self.seed, &found.seed)?;
        same("instruction set", &self.instruction_set, &found.instruction_set)
    }
}

impl AuthorsOptions {
    /// What a progress must have in common with these options to be continued.
    pub fn identity(&self) -> AuthorsIdentity {
        AuthorsIdentity {
            covariance: self.covariance,
            covariance_bug: self.covariance_bug && self.covariance == AuthorsCovariance::Toeplitz,
            optimiser: self.optimiser,
            rate: self.rate,
            draws: self.draws,
            test_prompts: self.test_prompts,
            seed: self.seed,
            instruction_set: self.instruction_set,
        }
    }

    /// The authors' own grid: lengths 10, 20, …, 90, 100, 200, …, 1000 and 300,000 steps. Ask
    /// [`AuthorsExperiment::estimate`] before running it.
    pub fn authors_grid(covariance: AuthorsCovariance) -> Self {
        let lengths = (1..10).map(|k| 10 * k).chain((1..=10).map(|k| 100 * k)).collect();
        AuthorsOptions { covariance, lengths, steps: 300_000, ..AuthorsOptions::default() }
    }

    /// 3,000 steps at a hundred times the rate: as far along the gradient flow as the authors' 300,000 steps, where the
    /// default's 3,000 steps at their rate hardly leave the start.
    pub fn same_flow_time(covariance: AuthorsCovariance) -> Self {
        AuthorsOptions { covariance, rate: 0.1, ..AuthorsOptions::default() }
    }
}

/// The experiment, checked and ready to run.
///
/// ```
/// use esscher_core::Unwatched;
/// use esscher_core::regression::authors::{AuthorsExperiment, AuthorsOptions, AuthorsProgress};
///
/// let options = AuthorsOptions { lengths: vec![10], steps: 20, test_prompts: 500, ..Default::default() };
/// let experiment = AuthorsExperiment::new(options)?;
/// let mut progress = AuthorsProgress::default();
/// experiment.run(&mut progress, &Unwatched)?;
/// let points = experiment.points(&progress)?;
/// assert!(points[0].softmax.test_error.mean > 0.1); // the noise
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AuthorsExperiment {
    options: AuthorsOptions,
    law: LinearRegression,
    task: Arc<LinearTask>,
}

/// How far every training and test has come: save it, and resume bit for bit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AuthorsProgress {
    /// Whose progress this is; none as long as there are no legs.
    pub identity: Option<AuthorsIdentity>,
    /// By prompt length and kind of attention.
    pub legs: BTreeMap<(usize, AttentionKind), AuthorsLeg>,
}

/// One training at one length, and its test.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorsLeg {
    /// Where the descent is.
    pub state: DescentState,
    /// How it ended, once it has.
    pub end: Option<DescentEnd>,
    /// The error of the trained layer, once it is measured.
    pub test_error: Option<TestError>,
}

/// A mean squared error on fresh prompts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestError {
    /// The mean of (prediction − target)²; its floor is the noise.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Number of prompts.
    pub prompts: u64,
}

/// A trained layer.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedLayer {
    /// Q, K, V, O.
    pub layer: RegressionLayer,
    /// U = KᵀQ / √(d + 1), v = last row of O V.
    pub head: RegressionHead,
    /// How training ended; after divergence the layer is the last sound one.
    pub end: DescentEnd,
    /// Its error on fresh prompts of the same length.
    pub test_error: TestError,
}

/// Both layers at one length.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorsPoint {
    /// The prompt length L.
    pub length: usize,
    /// Softmax attention.
    pub softmax: TrainedLayer,
    /// Linear attention.
    pub linear: TrainedLayer,
}

/// Initial matrices come from a stream of their own.
const LAYER_STREAM: u64 = 0x4C41_5945_525F_494E;

/// Steps that are timed for an estimate.
const TIMED_STEPS: u32 = 20;

const KINDS: [AttentionKind; 2] = [AttentionKind::Softmax, AttentionKind::Linear];

impl AuthorsExperiment {
    /// Checks the request; lengths are sorted and made unique.
    ///
    /// # Errors
    /// No lengths, a length of zero or one too long to store, fewer than two test prompts.
    pub fn new(mut options: AuthorsOptions) -> Result<Self> {
        check::not_empty("the list of lengths", options.lengths.len())?;
        options.lengths.sort_unstable();
        options.lengths.dedup();
        for &length in &options.lengths {
            super::tasks::check_prompt(DIMENSION, length)?;
        }
        if options.test_prompts < 2 {
            return Err(Error::OutOfRange {
                what: "the number of test prompts",
                value: f64::from(options.test_prompts),
                expected: "at least 2, for a standard error",
            });
        }
        check::positive("the rate of the descent", options.rate)?;
        let law = law(&options)?;
        Ok(AuthorsExperiment { task: Arc::new(LinearTask::gaussian(&law)?), law, options })
    }

    /// What is run.
    pub fn options(&self) -> &AuthorsOptions {
        &self.options
    }

    /// The task as a law, for exact engines.
    pub fn law(&self) -> &LinearRegression {
        &self.law
    }

    /// About how many seconds what is missing from `progress` takes on this machine now, from timing a few steps at
    /// every length.
    ///
    /// # Errors
    /// [`Error::OtherRun`] for a progress of another experiment.
    pub fn estimate(&self, progress: &AuthorsProgress) -> Result<f64> {
        self.check(progress)?;
        let mut seconds = 0.0;
        for &length in &self.options.lengths {
            for kind in KINDS {
                let leg = progress.legs.get(&(length, kind));
                let trained = leg.is_some_and(|leg| self.is_trained(leg));
                if trained && leg.is_some_and(|leg| leg.test_error.is_some()) {
                    continue;
                }
                let taken = if trained { self.options.steps } else { leg.map_or(0, |leg| leg.state.step) };
                let descent = self.descent(length, kind, TIMED_STEPS)?;
                let start = Instant::now();
                descent.run(descent.start(), &Unwatched)?;
                let step = start.elapsed().as_secs_f64() / f64::from(TIMED_STEPS);
                // Testing a prompt costs no more than training on it.
                let test = f64::from(self.options.test_prompts) / f64::from(descent.options().batch);
                seconds += step * (f64::from(self.options.steps.saturating_sub(taken)) + test);
            }
        }
        Ok(seconds)
    }

    /// Trains and tests what `progress` lacks, until finished or stopped. Steps of the completion are those of training.
    ///
    /// A progress that was finished with fewer steps is trained on.
    ///
    /// # Errors
    /// [`Error::OtherRun`] for a progress of another experiment, which is left as it was.
    pub fn run(&self, progress: &mut AuthorsProgress, monitor: &dyn Monitor) -> Result<Completion> {
        self.check(progress)?;
        progress.identity = Some(self.options.identity());
        let total = self.options.lengths.len() * KINDS.len() * self.options.steps as usize;
        let mut before = 0;
        for &length in &self.options.lengths {
            for kind in KINDS {
                let descent = self.descent(length, kind, self.options.steps)?;
                let leg = progress.legs.entry((length, kind)).or_insert_with(|| AuthorsLeg {
                    state: descent.start(),
                    end: None,
                    test_error: None,
                });
                if !self.is_trained(leg) {
                    leg.test_error = None;
                    let run = descent.run(leg.state.clone(), &Shifted { monitor, before, total })?;
                    leg.state = run.state;
                    if run.end.ending == Ending::Stopped {
                        let completed = before + run.end.step as usize;
                        return Ok(Completion::Stopped { completed, total });
                    }
                    leg.end = Some(run.end);
                }
                if leg.test_error.is_none() {
                    leg.test_error = self.test(length, descent.layer(&leg.state)?, monitor)?;
                    if leg.test_error.is_none() {
                        let completed = before + leg.state.step as usize;
                        return Ok(Completion::Stopped { completed, total });
                    }
                }
                before += self.options.steps as usize;
            }
        }
        Ok(Completion::Finished)
    }

    /// Trains and tests one layer at one length, from its start; none if the monitor stopped it.
    ///
    /// The same bits as [`Self::run`], for those who split the experiment.
    ///
    /// # Errors
    /// A length of zero or one too long to store.
    pub fn train(
        &self,
        length: usize,
        kind: AttentionKind,
        monitor: &dyn Monitor,
    ) -> Result<Option<TrainedLayer>> {
        super::tasks::check_prompt(DIMENSION, length)?;
        let descent = self.descent(length, kind, self.options.steps)?;
        let run = descent.run(descent.start(), monitor)?;
        if run.end.ending == Ending::Stopped {
            return Ok(None);
        }
        let layer = descent.layer(&run.state)?;
        let Some(test_error) = self.test(length, layer.clone(), monitor)? else { return Ok(None) };
        let Some(head) = layer.effective_heads()?.pop() else { return Ok(None) };
        Ok(Some(TrainedLayer { layer, head, end: run.end, test_error }))
    }

    /// The finished lengths, in order.
    ///
    /// # Errors
    /// [`Error::OtherRun`] for a progress of another experiment.
    pub fn points(&self, progress: &AuthorsProgress) -> Result<Vec<AuthorsPoint>> {
        self.check(progress)?;
        let mut points = Vec::new();
        for &length in &self.options.lengths {
            let trained = |kind| -> Result<Option<TrainedLayer>> {
                let leg = progress.legs.get(&(length, kind)).filter(|leg| self.is_trained(leg));
                let Some(leg) = leg else { return Ok(None) };
                let (Some(end), Some(test_error)) = (leg.end, leg.test_error) else { return Ok(None) };
                let layer = self.descent(length, kind, self.options.steps)?.layer(&leg.state)?;
                let Some(head) = layer.effective_heads()?.pop() else { return Ok(None) };
                Ok(Some(TrainedLayer { layer, head, end, test_error }))
            };
            if let (Some(softmax), Some(linear)) =
                (trained(AttentionKind::Softmax)?, trained(AttentionKind::Linear)?)
            {
                points.push(AuthorsPoint { length, softmax, linear });
            }
        }
        Ok(points)
    }

    /// Legs without an identity could be of any experiment.
    fn check(&self, progress: &AuthorsProgress) -> Result<()> {
        match &progress.identity {
            Some(identity) => self.options.identity().check(identity),
            None if progress.legs.is_empty() => Ok(()),
            None => Err(Error::OtherRun {
                what: "identity",
                expected: format!("{:?}", self.options.identity()),
                found: "none".to_string(),
            }),
        }
    }

    /// Whether training has ended: a leg that finished fewer steps than are now asked for goes on.
    fn is_trained(&self, leg: &AuthorsLeg) -> bool {
        leg.end.is_some_and(|end| end.ending != Ending::Completed || leg.state.step >= self.options.steps)
    }

    /// The training of one leg.
    fn descent(&self, length: usize, kind: AttentionKind, steps: u32) -> Result<Descent> {
        let mut stream = Stream::new(self.options.seed ^ LAYER_STREAM, length as u32, 0);
        let layer = RegressionLayer::projections_at_random(kind, DIMENSION, &mut stream)?;
        let options = DescentOptions {
            optimiser: self.options.optimiser.at(self.options.rate),
            loss: Loss::MeanSquare,
            batch: 128,
            draws: self.options.draws,
            steps,
            seed: self.options.seed,
            instruction_set: self.options.instruction_set,
            ..DescentOptions::default()
        };
        Descent::new(self.task.clone(), layer, length, options)
    }

    /// None if the monitor stopped it.
    fn test(
        &self,
        length: usize,
        layer: RegressionLayer,
        monitor: &dyn Monitor,
    ) -> Result<Option<TestError>> {
        let options = RiskOptions {
            prompts: self.options.test_prompts,
            gradient: false,
            seed: self.options.seed,
            instruction_set: self.options.instruction_set,
        };
        let simulation = RiskSimulation::new(self.task.clone(), layer, length, options)?;
        // Tests are short beside training, whose steps are counted.
        let risk = simulation.finish(&Quiet(monitor))?.risk;
        if risk.count() < u64::from(self.options.test_prompts) {
            return Ok(None);
        }
        let error = risk.mean().zip(risk.standard_error());
        let (mean, standard_error) = error.ok_or(Error::Overflow { what: "the test error" })?;
        Ok(Some(TestError {
            mean: 2.0 * mean,
            standard_error: 2.0 * standard_error,
            prompts: u64::from(self.options.test_prompts),
        }))
    }
}

/// The task, with or without the treatment of the covariance in the authors' code.
fn law(options: &AuthorsOptions) -> Result<LinearRegression> {
    let law = match options.covariance {
        AuthorsCovariance::Isotropic => LinearRegression::isotropic(DIMENSION)?,
        AuthorsCovariance::Toeplitz => {
            let covariance = LinearRegression::toeplitz(DIMENSION, 0.5)?;
            if options.covariance_bug {
                let factor = super::tasks::design::root("the covariance", covariance.as_ref())?;
                // x = C C g has covariance C (C Cᵀ) Cᵀ.
                let twice = &factor * &covariance * factor.transpose();
                let identity = crate::numerics::linalg::identity(DIMENSION);
                LinearRegression::new(twice.as_ref())?.with_query_covariance(identity.as_ref())?
            } else {
                LinearRegression::new(covariance.as_ref())?
            }
        }
    };
    law.with_noise(NOISE)?.with_prior(1.0 / DIMENSION as f64)
}

/// Reports the steps of one leg as steps of the whole experiment.
struct Shifted<'a> {
    monitor: &'a dyn Monitor,
    before: usize,
    total: usize,
}

impl Monitor for Shifted<'_> {
    fn progress(&self, completed: usize, _total: usize) {
        self.monitor.progress(self.before + completed, self.total);
    }

    fn should_stop(&self) -> bool {
        self.monitor.should_stop()
    }
}
