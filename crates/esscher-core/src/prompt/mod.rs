//! Finite prompts drawn from a measure: how far L independent tokens are from their law, exactly.
//!
//! For Gaussian tokens the law of the output at a query depends on L and one number, τ² = θᵀGθ; for
//! Gaussian mixtures on two numbers per component. Bias, mean squared error and covariance of the output
//! and the errors of both gradients are then one-dimensional integrals at any L up to 10¹², computed
//! centred on the limit so that small errors keep their digits.

mod asymptotics;
mod bounds;
mod gaussian;
mod mixture;
mod query_average;
mod sampled;
mod scale;

pub use asymptotics::{
    DeltaMethod, critical_score_deviation, delta_method, gaussian_gradient_constant, rate_exponent,
};
pub use bounds::{
    BoundConstants, output_bound, score_gradient_bound, trajectory_bound, value_gradient_bound,
};
pub use query_average::{AveragedDeviation, QueryAverage, QueryAveraged};
pub(crate) use query_average::{AveragedErrors, RadiusRefinement};
pub use sampled::{
    Precision, SampleIdentity, SampleOptions, SampledLength, SampledPrompts, SampledUnit, SampledUnits,
    deviations_of_draws,
};

pub use crate::prompt_length::PromptLength;

use crate::attention::{Attention, Softmax};
use crate::error::{Error, Result};
use crate::measure::Measure;
use crate::monitor::{Completion, Monitor};
use crate::numerics::{check, linalg};
use crate::quantity::{PerQuantity, Quantity};
use faer::{Mat, MatRef};
use gaussian::GaussianTokens;
use mixture::MixtureTokens;
use rayon::prelude::*;
use scale::Scale;

/// Prompts of independent tokens read by one softmax head, with the exact theory of their finite length.
///
/// ```
/// use esscher_core::attention::Softmax;
/// use esscher_core::measure::Gaussian;
/// use esscher_core::prompt::{FinitePrompt, PromptLength};
/// use esscher_core::Mat;
/// let head = Softmax::new(Mat::identity(3, 3).as_ref(), Mat::identity(3, 3).as_ref())?;
/// let prompt = FinitePrompt::exact(&head, &Gaussian::standard(3)?)?;
/// let lengths = [PromptLength::new(100)?, PromptLength::new(1_000_000_000_000)?];
/// let deviations = prompt.at_query(&[0.6, 0.0, 0.8], &lengths)?;
/// // L times the mean squared error approaches e^{τ²}(tr G + |Gθ|²) = 4e.
/// assert!((deviations[1].errors.output * 1e12 / (4.0 * 1f64.exp()) - 1.0).abs() < 1e-9);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FinitePrompt {
    head: Softmax,
    tokens: TokenTheory,
}

/// The families with an exact theory, the special one first.
#[derive(Debug, Clone)]
enum TokenTheory {
    Gaussian(GaussianTokens),
    Mixture(MixtureTokens),
}

/// How L tokens deviate from their law at one query: T_L against T, both gradients, all in expectation.
///
/// Every number is [`Accuracy::Exact`](crate::Accuracy::Exact). The tolerance is relative for the three errors and the
/// participation. The bias is good to the tolerance times the root of the output's error, the covariance to the
/// tolerance times that error: both can be much smaller than that, and then have fewer digits of their own. So may errors of mixtures below 10⁻³⁰ of the
/// squared size of the tokens, which rest on events that rare.
#[derive(Debug, Clone)]
pub struct Deviation {
    /// The prompt length L.
    pub length: PromptLength,
    /// E T_L − T.
    pub bias: Vec<f64>,
    /// Cov T_L, about its own mean.
    pub covariance: Mat<f64>,
    /// The mean squared errors, as [`Quantity`] defines them.
    pub errors: PerQuantity<f64>,
    /// E Σ pₗ², the participation of the tokens; its inverse is their effective number.
    pub participation: f64,
    /// Bound on the relative error.
    pub tolerance: f64,
}

/// Deviations at many queries: by query, then by length.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// One list per completed query, in the order of the queries.
    pub deviations: Vec<Vec<Deviation>>,
    /// Whether all queries were completed.
    pub completion: Completion,
}

/// Queries handed out between two looks at the monitor.
const QUERIES_PER_STEP: usize = 16;

impl FinitePrompt {
    /// Prompts of independent tokens of this law, where it has an exact theory.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the law is not a finite mixture of Gaussians and atoms; [`Error::Overflow`] and
    /// [`Error::Underflow`] for components, or outputs beside their tokens, whose sizes no double can compare.
    pub fn exact(head: &Softmax, tokens: &dyn Measure) -> Result<Self> {
        check::size("tokens (dimension)", head.token_dimension(), tokens.dimension())?;
        let components = tokens.as_gaussian_mixture().ok_or(Error::Unsupported {
            family: tokens.family(),
            operation: "the exact finite-prompt theory",
            remedy: "it covers Gaussians, atoms and their mixtures of up to 4096 components (256 points of an \
                     empirical measure); simulate prompts of other laws",
        })?;
        let tokens = match <[_; 1]>::try_from(components) {
            Ok([single]) => TokenTheory::Gaussian(GaussianTokens::new(head, &single.gaussian)),
            Err(components) => TokenTheory::Mixture(MixtureTokens::new(head, &components)?),
        };
        Ok(FinitePrompt { head: head.clone(), tokens })
    }

    /// Deviations at one query for each length, in the order given.
    ///
    /// # Errors
    /// [`Error::Overflow`] and [`Error::Underflow`] where an error that is not zero has no double with all its digits.
    pub fn at_query(&self, query: &[f64], lengths: &[PromptLength]) -> Result<Vec<Deviation>> {
        let (scale, deviations) = self.on_scale(query, lengths)?;
        deviations.into_iter().map(|deviation| deviation.restored(scale)).collect()
    }

    /// One of the mean squared errors of [`at_query`](Self::at_query), also where the others are no doubles.
    pub fn errors_at_query(
        &self,
        quantity: Quantity,
        query: &[f64],
        lengths: &[PromptLength],
    ) -> Result<Vec<f64>> {
        let (scale, deviations) = self.on_scale(query, lengths)?;
        deviations.iter().map(|deviation| scale.restored(quantity, deviation.errors[quantity])).collect()
    }

    /// Deviations at one query on their scale.
    fn on_scale(&self, query: &[f64], lengths: &[PromptLength]) -> Result<(Scale, Vec<Deviation>)> {
        let tilt = self.head.tilt(query)?;
        let scale = Scale { query: linalg::exponent(query), ..self.scale() };
        let query_norm = scale::squared_norm(query, scale.query);
        let deviations = match &self.tokens {
            TokenTheory::Gaussian(tokens) => tokens.deviations(&tilt, query_norm, lengths)?,
            TokenTheory::Mixture(tokens) => tokens.deviations(&tilt, query_norm, lengths)?,
        };
        Ok((scale, deviations))
    }

    /// The scale on which the theory computes, but for that of the queries.
    fn scale(&self) -> Scale {
        match &self.tokens {
            TokenTheory::Gaussian(tokens) => tokens.scale(),
            TokenTheory::Mixture(tokens) => tokens.scale(),
        }
    }

    /// Deviations at many queries, one per row; on request of the monitor, those completed so far.
    pub fn at_queries(
        &self,
        queries: MatRef<'_, f64>,
        lengths: &[PromptLength],
        monitor: &dyn Monitor,
    ) -> Result<Sweep> {
        check::size("queries (columns)", self.head.query_dimension(), queries.ncols())?;
        let total = queries.nrows();
        let mut deviations = Vec::with_capacity(total);
        while deviations.len() < total {
            if monitor.should_stop() {
                let completed = deviations.len();
                return Ok(Sweep { deviations, completion: Completion::Stopped { completed, total } });
            }
            let rows = deviations.len()..(deviations.len() + QUERIES_PER_STEP).min(total);
            // Asked for every query: with mixtures of hundreds of components one takes seconds.
            let step: Vec<Option<_>> = rows
                .into_par_iter()
                .map(|row| {
                    if monitor.should_stop() {
                        return Ok(None);
                    }
                    let query: Vec<f64> = (0..queries.ncols()).map(|column| queries[(row, column)]).collect();
                    self.at_query(&query, lengths).map(Some)
                })
                .collect::<Result<_>>()?;
            deviations.extend(step.into_iter().map_while(|found| found));
            monitor.progress(deviations.len(), total);
        }
        Ok(Sweep { deviations, completion: Completion::Finished })
    }
}

impl Deviation {
    /// Put back on the scale of the request.
    fn restored(self, scale: Scale) -> Result<Self> {
        const WHAT: &str = "a finite-prompt deviation";
        let covariance = linalg::matrix_times_power_of_two(self.covariance.as_ref(), 2 * scale.output());
        Ok(Deviation {
            bias: check::finite_result(WHAT, linalg::times_power_of_two(&self.bias, scale.output()))?,
            covariance: check::finite_matrix_result(WHAT, covariance)?,
            errors: PerQuantity::try_from_fn(|quantity| scale.restored(quantity, self.errors[quantity]))?,
            participation: check::finite_number(WHAT, self.participation)?,
            ..self
        })
    }
}
