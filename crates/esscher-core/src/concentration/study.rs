//! A concentration study: errors of finite prompts averaged over queries, on a grid of lengths, by either engine.

use super::horizon::horizon_until_stopped;
use super::{Dependence, Horizon, LocalSlope, RateFit, RatePoint, local_slopes, rate_fit};
use crate::accuracy::Estimate;
use crate::attention::{Attention, Softmax};
use crate::error::{Error, Result};
use crate::measure::{Law, Measure};
use crate::monitor::{Completion, Monitor};
use crate::numerics::statistics::Summary;
use crate::numerics::{check, linalg};
use crate::prompt::{
    AveragedErrors, FinitePrompt, PromptLength, QueryAverage, RadiusRefinement, SampleOptions,
    SampledPrompts, SampledUnit, SampledUnits,
};
use crate::quantity::{PerQuantity, Quantity};
use crate::softmax_weights::MomentTable;
use faer::Mat;

/// How to compute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Engine {
    /// By one-dimensional integrals; token laws without an exact theory are refused.
    Exact(QueryAverage),
    /// By simulation, for any law.
    Sampled(SampleOptions),
    /// Exact where the token law allows it, simulated otherwise; either way the options say whether the score gradient is
    /// measured.
    Best(QueryAverage, SampleOptions),
}

/// A head, a token law, a query law and a grid of lengths.
///
/// ```
/// use esscher_core::attention::Softmax;
/// use esscher_core::concentration::{Concentration, Engine, Quantity};
/// use esscher_core::measure::Gaussian;
/// use esscher_core::prompt::{PromptLength, QueryAverage};
/// use esscher_core::{Unwatched, mat};
/// use std::sync::Arc;
/// let head = Softmax::new(mat![[0.5]].as_ref(), mat![[1.0]].as_ref())?;
/// let law = Arc::new(Gaussian::standard(1)?);
/// let lengths = PromptLength::logarithmic(PromptLength::new(1000)?, PromptLength::MAX, 10);
/// let setting = Concentration::new(head, law.clone(), law, &lengths)?;
/// let study = setting.run(Engine::Exact(QueryAverage::default()), &Unwatched)?;
/// let rate = study.rate(Quantity::Output, 0.95)?;
/// assert!((rate.exponent - 1.0).abs() < 0.01); // H = 0.5: κ = 1
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Concentration {
    head: Softmax,
    tokens: Law,
    queries: Law,
    lengths: Vec<PromptLength>,
}

/// The errors at one length; each number carries its class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StudyRow {
    /// The prompt length L.
    pub length: PromptLength,
    /// The mean squared errors in L²(ν); that of the score gradient is absent if the options left it out.
    pub errors: PerQuantity<Option<Estimate>>,
}

/// A mean that rests on a few trials: heavy tails make its standard error optimistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeavyTail {
    /// The length at which it is.
    pub length: PromptLength,
    /// Whose error it is.
    pub quantity: Quantity,
    /// (Σ|x|)²/Σx² over the trials.
    pub effective_sample_size: f64,
}

/// The result of a study.
#[derive(Debug, Clone)]
pub struct Study {
    /// One row per length, increasing; empty if stopped before there were two trials or randomisations.
    pub rows: Vec<StudyRow>,
    /// Means that rest on few trials.
    pub warnings: Vec<HeavyTail>,
    /// Whether everything asked for was done.
    pub completion: Completion,
    /// The finished units of a simulation, to resume from; empty for the exact engine.
    pub units: SampledUnits,
    /// Joint laws of the simulated errors over the lengths.
    sampled: Option<SampledUnit>,
}

impl Study {
    /// In words, if the error of a quantity at a length rests on few trials.
    pub fn note(&self, length: PromptLength, quantity: Quantity) -> Option<String> {
        let heavy = self.warnings.iter().find(|one| one.length == length && one.quantity == quantity)?;
        Some(format!("rests on few trials: about {:.0} are effective", heavy.effective_sample_size))
    }
}

impl Concentration {
    /// Checks the pieces against each other; lengths are sorted and made unique.
    pub fn new(head: Softmax, tokens: Law, queries: Law, lengths: &[PromptLength]) -> Result<Self> {
        check::size("tokens (dimension)", head.token_dimension(), tokens.dimension())?;
        check::size("queries (dimension)", head.query_dimension(), queries.dimension())?;
        check::not_empty("the list of lengths", lengths.len())?;
        let mut lengths = lengths.to_vec();
        lengths.sort_unstable();
        lengths.dedup();
        Ok(Concentration { head, tokens, queries, lengths })
    }

    /// H = ‖G^{1/2} U S^{1/2}‖ for tokens of covariance G and queries of covariance S: the deviation of the scores
    /// along the worst direction of the queries, on which alone the rate of Gaussian tokens depends. The scores of a
    /// typical query have the Frobenius norm as their deviation, up to √d times H.
    pub fn operator_norm(&self) -> Result<f64> {
        let root = |law: &dyn Measure| -> Result<Mat<f64>> {
            let covariance = law.covariance()?;
            Ok(linalg::SymmetricEigen::new("the covariance", covariance.as_ref())?
                .map(|value| value.max(0.0).sqrt()))
        };
        let product = root(self.tokens.as_ref())? * self.head.score() * root(self.queries.as_ref())?;
        // On the scale of its largest entry, so that the squares neither overflow nor vanish.
        let product = check::finite_matrix_result("the deviation of the scores, H,", product)?;
        let exponent = linalg::matrix_exponent(product.as_ref());
        let scaled = linalg::matrix_times_power_of_two(product.as_ref(), -exponent);
        let squares = linalg::SymmetricEigen::new("H²", (&scaled * scaled.transpose()).as_ref())?;
        let largest = squares.values.last().copied().unwrap_or(0.0).max(0.0).sqrt();
        check::finite_number("the deviation of the scores, H,", libm::ldexp(largest, exponent))
    }

    /// Runs the study.
    pub fn run(&self, engine: Engine, monitor: &dyn Monitor) -> Result<Study> {
        match engine {
            Engine::Exact(average) => self.run_exact(average, |_| true, monitor),
            Engine::Sampled(options) => self.resume(options, SampledUnits::default(), monitor),
            Engine::Best(average, options) => {
                if self.tokens.as_gaussian_mixture().is_some() {
                    self.run_exact(average, |quantity| options.measures(quantity), monitor)
                } else {
                    self.resume(options, SampledUnits::default(), monitor)
                }
            }
        }
    }

    fn run_exact(
        &self,
        average: QueryAverage,
        measures: impl Fn(Quantity) -> bool,
        monitor: &dyn Monitor,
    ) -> Result<Study> {
        let prompt = FinitePrompt::exact(&self.head, self.tokens.as_ref())?;
        let (queries, radius) = (self.queries.as_ref(), &mut RadiusRefinement::default());
        let averaged = prompt.over_queries_refined(queries, &self.lengths, average, monitor, radius)?;
        let row = |found: &AveragedErrors| -> Result<StudyRow> {
            let error = |quantity| found.errors[quantity].clone().map(stated);
            let errors =
                PerQuantity::try_from_fn(|quantity| measures(quantity).then(|| error(quantity)).transpose())?;
            Ok(StudyRow { length: found.length, errors })
        };
        let rows = averaged.deviations.iter().map(row).collect::<Result<_>>()?;
        let (warnings, units) = (Vec::new(), SampledUnits::default());
        Ok(Study { rows, warnings, completion: averaged.completion, units, sampled: None })
    }

    /// The simulation behind [`Engine::Sampled`], for callers that spread its units over machines.
    pub fn simulation(&self, options: SampleOptions) -> Result<SampledPrompts> {
        SampledPrompts::new(&self.head, self.tokens.clone(), self.queries.clone(), &self.lengths, options)
    }

    /// Runs the units of a simulation that are not done yet: resumes a stopped study, or merges shards.
    ///
    /// # Errors
    /// Fewer than two trials, which have no standard error; units of another simulation; [`Error::Overflow`] where an
    /// error or its spread exceeds double precision.
    pub fn resume(
        &self,
        options: SampleOptions,
        mut units: SampledUnits,
        monitor: &dyn Monitor,
    ) -> Result<Study> {
        if options.trials < 2 {
            return Err(Error::OutOfRange {
                what: "the number of trials",
                value: f64::from(options.trials),
                expected: "at least 2: their spread is the standard error",
            });
        }
        let simulation = self.simulation(options)?;
        let completion = simulation.run(&mut units, monitor)?;
        let folded = simulation.fold(&units)?;
        let estimate = |summary: &Summary| -> Result<Estimate> {
            let number = |found: Option<f64>| found.ok_or(Error::Overflow { what: "a simulated error" });
            Ok(Estimate::sampled(number(summary.mean())?, number(summary.standard_error())?))
        };
        let mut rows = Vec::new();
        let mut warnings = Vec::new();
        for found in &folded.lengths {
            if found.errors.output.count() < 2 {
                // Stopped too early for a standard error.
                continue;
            }
            let errors = PerQuantity::try_from_fn(|quantity| {
                options.measures(quantity).then(|| estimate(&found.errors[quantity])).transpose()
            })?;
            rows.push(StudyRow { length: found.length, errors });
            for quantity in Quantity::ALL {
                let summary = &found.errors[quantity];
                if let Some(effective_sample_size) = summary.effective_sample_size()
                    && summary.rests_on_few()
                {
                    warnings.push(HeavyTail { length: found.length, quantity, effective_sample_size });
                }
            }
        }
        Ok(Study { rows, warnings, completion, units, sampled: Some(folded) })
    }

    /// The smallest L whose error, averaged over the queries, is at most `tolerance`; exact engine only.
    ///
    /// The average uses the same query points at every length (the first lengths asked for decide how fine the radius
    /// is), so it falls with L wherever each point's error does, and the length is exact for these points; the error
    /// found there has the class and the error that [`Self::run`] gives it with the same options. Averages that the monitor cuts short are
    /// not used: the answer is then [`Horizon::Stopped`].
    pub fn horizon(
        &self,
        quantity: Quantity,
        tolerance: f64,
        average: QueryAverage,
        monitor: &dyn Monitor,
    ) -> Result<Horizon> {
        let prompt = FinitePrompt::exact(&self.head, self.tokens.as_ref())?;
        let queries = self.queries.as_ref();
        let mut radius = RadiusRefinement::default();
        // 32 per decade first: an error that dips below the tolerance and rises again is found if its dip is wider than a step.
        horizon_until_stopped(tolerance, PromptLength::MAX, 384, 24, |lengths| {
            let found = prompt.over_queries_refined(queries, lengths, average, monitor, &mut radius)?;
            if found.completion != Completion::Finished {
                return Ok(None);
            }
            let error = |found: &AveragedErrors| found.errors[quantity].clone().map(stated);
            found.deviations.iter().map(error).collect::<Result<_>>().map(Some)
        })
    }
}

/// An average is no better than what is averaged, also where all directions of the queries agree.
fn stated(found: Estimate) -> Estimate {
    Estimate { error: found.error.max(MomentTable::TOLERANCE * found.value.abs()), ..found }
}

impl Study {
    /// The points of one quantity, where it was measured.
    pub fn points(&self, quantity: Quantity) -> Vec<RatePoint> {
        self.rows
            .iter()
            .filter_map(|row| row.errors[quantity].map(|found| RatePoint::new(row.length, found)))
            .collect()
    }

    /// The fitted exponent with its interval at this level.
    ///
    /// Simulated lengths are prefixes of the same prompts: their joint covariance over the trials enters the
    /// fit, as [`Dependence::EstimatedLogCovariance`] describes, and [`RateFit::estimator`] says which line was taken.
    pub fn rate(&self, quantity: Quantity, level: f64) -> Result<RateFit> {
        let points = self.points(quantity);
        match self.log_covariance(quantity) {
            Some((covariance, draws)) => {
                let covariance = covariance.as_ref();
                rate_fit(&points, Dependence::EstimatedLogCovariance { covariance, draws }, level)
            }
            None => rate_fit(&points, Dependence::Independent, level),
        }
    }

    /// κ between neighbouring lengths.
    pub fn local_slopes(&self, quantity: Quantity) -> Result<Vec<LocalSlope>> {
        let points = self.points(quantity);
        match self.log_covariance(quantity) {
            Some((covariance, draws)) => {
                let covariance = covariance.as_ref();
                local_slopes(&points, Dependence::EstimatedLogCovariance { covariance, draws })
            }
            None => local_slopes(&points, Dependence::Independent),
        }
    }

    /// Cov(ln vᵢ, ln vⱼ) of the simulated means, to first order, with the number of trials; nothing where nothing was
    /// simulated.
    ///
    /// With it [`fn@rate_fit`] gives what [`Study::rate`] gives, from numbers that can be kept.
    pub fn log_covariance(&self, quantity: Quantity) -> Option<(Mat<f64>, u64)> {
        let joint = &self.sampled.as_ref()?.joint[quantity];
        let (mean, covariance) = (joint.mean(), joint.mean_covariance()?);
        let relative = |i, j| covariance[(i, j)] / mean[i] / mean[j];
        Some((Mat::from_fn(mean.len(), mean.len(), relative), joint.count()))
    }
}
