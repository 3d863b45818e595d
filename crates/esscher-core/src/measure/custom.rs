//! A user's own law, known through its log-partition: the rest is differentiated from it or handed in.

use super::{Law, Measure, SubGaussian, Tilted, check_sampling, check_tilt};
use crate::error::{Error, Result};
use crate::numerics::{Stream, check};
use faer::Mat;
use std::fmt;
use std::sync::Arc;

type LogPartition = dyn Fn(&[f64]) -> f64 + Send + Sync;
type TiltedMean = dyn Fn(&[f64]) -> Vec<f64> + Send + Sync;
type TiltedCovariance = dyn Fn(&[f64]) -> Mat<f64> + Send + Sync;
type Sampler = dyn Fn(&[f64], &mut Stream, &mut [f64]) + Send + Sync;

/// A law given by its log-partition function.
///
/// The tilted mean and covariance are central differences of the log-partition, extrapolated once
/// (relative errors about 10⁻¹⁰ and 10⁻⁷ for a function evaluated to full precision), unless the user
/// hands in the exact ones. Sampling needs a sampler. A law known through samples is an
/// [`super::Empirical`] measure instead.
///
/// ```
/// use esscher_core::measure::{Custom, Measure};
/// // Poisson(3) tokens on the line: Λ(θ) = 3 (e^θ − 1).
/// let tokens = Custom::new(1, |tilt| 3.0 * tilt[0].exp_m1())?;
/// assert!((tokens.tilted_mean(&[0.5])?[0] - 3.0 * 0.5f64.exp()).abs() < 1e-8);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Custom {
    dimension: usize,
    log_partition: Arc<LogPartition>,
    tilted_mean: Option<Arc<TiltedMean>>,
    tilted_covariance: Option<Arc<TiltedCovariance>>,
    sampler: Option<Arc<Sampler>>,
    sub_gaussian: Option<SubGaussian>,
}

/// Steps of the central differences, relative to the size of the tilt: they balance truncation
/// (h⁴ after one extrapolation) against rounding (ε/h and ε/h²).
const GRADIENT_STEP: f64 = 2e-3;
const HESSIAN_STEP: f64 = 1e-2;

impl Custom {
    /// The law in dimension d with this log-partition; return infinity or NaN where it does not exist.
    ///
    /// # Errors
    /// d = 0, or a function with Λ(0) ≠ 0, which no probability measure has.
    pub fn new(
        dimension: usize,
        log_partition: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Result<Self> {
        check::not_empty("the dimension of the measure", dimension)?;
        let origin = vec![0.0; dimension];
        let value = log_partition(&origin);
        if value.is_nan() || value.abs() > 1e-9 {
            return Err(Error::OutOfRange {
                what: "the user's log-partition at tilt 0",
                value,
                expected: "0, since a probability measure has total mass one",
            });
        }
        Ok(Custom {
            dimension,
            log_partition: Arc::new(log_partition),
            tilted_mean: None,
            tilted_covariance: None,
            sampler: None,
            sub_gaussian: None,
        })
    }

    /// Uses this function for ∇Λ instead of differences.
    pub fn with_tilted_mean(mut self, mean: impl Fn(&[f64]) -> Vec<f64> + Send + Sync + 'static) -> Self {
        self.tilted_mean = Some(Arc::new(mean));
        self
    }

    /// Uses this function for ∇²Λ instead of differences.
    pub fn with_tilted_covariance(
        mut self,
        covariance: impl Fn(&[f64]) -> Mat<f64> + Send + Sync + 'static,
    ) -> Self {
        self.tilted_covariance = Some(Arc::new(covariance));
        self
    }

    /// Draws tokens of the tilted law with this function: (tilt, stream, tokens to fill).
    pub fn with_sampler(
        mut self,
        sampler: impl Fn(&[f64], &mut Stream, &mut [f64]) + Send + Sync + 'static,
    ) -> Self {
        self.sampler = Some(Arc::new(sampler));
        self
    }

    /// States a sub-Gaussian parameter that the user has proved for this law; it is taken on trust.
    pub fn with_sub_gaussian(mut self, sub_gaussian: SubGaussian) -> Self {
        self.sub_gaussian = Some(sub_gaussian);
        self
    }

    fn value(&self, tilt: &[f64]) -> Result<f64> {
        let value = (self.log_partition)(tilt);
        if value.is_finite() {
            return Ok(value);
        }
        Err(Error::UserFunction { what: "log-partition", value, tilt: tilt.to_vec() })
    }

    /// A mixed central difference along axes i and j with steps h (i = j allowed).
    fn second_difference(&self, tilt: &[f64], i: usize, j: usize, h: f64) -> Result<f64> {
        let at = |a: f64, b: f64| {
            let mut moved = tilt.to_vec();
            moved[i] += a;
            moved[j] += b;
            self.value(&moved)
        };
        let h = 0.5 * h;
        Ok((at(h, h)? - at(h, -h)? - at(-h, h)? + at(-h, -h)?) / (4.0 * h * h))
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Custom").field("dimension", &self.dimension).finish_non_exhaustive()
    }
}

/// Removes the h² error of a central difference: (4 D(h/2) − D(h)) / 3.
fn extrapolated(difference: impl Fn(f64) -> Result<f64>, step: f64) -> Result<f64> {
    Ok((4.0 * difference(0.5 * step)? - difference(step)?) / 3.0)
}

impl Measure for Custom {
    fn family(&self) -> &'static str {
        "user's law"
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension, tilt)?;
        self.value(tilt)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension, tilt)?;
        // Asked first so that a tilt outside the domain is reported as such.
        self.value(tilt)?;
        if let Some(mean) = &self.tilted_mean {
            let mean = mean(tilt);
            check::size("the user's tilted mean", self.dimension, mean.len())?;
            return check::finite_result("the user's tilted mean", mean);
        }
        let central = |i: usize, h: f64| {
            let at = |offset: f64| {
                let mut moved = tilt.to_vec();
                moved[i] += offset;
                self.value(&moved)
            };
            Ok((at(h)? - at(-h)?) / (2.0 * h))
        };
        (0..self.dimension)
            .map(|i| extrapolated(|h| central(i, h), GRADIENT_STEP * tilt[i].abs().max(1.0)))
            .collect()
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check_tilt(self.dimension, tilt)?;
        self.value(tilt)?;
        if let Some(covariance) = &self.tilted_covariance {
            let covariance = covariance(tilt);
            check::size("the user's tilted covariance (rows)", self.dimension, covariance.nrows())?;
            return check::symmetric("the user's tilted covariance", covariance.as_ref());
        }
        let step = HESSIAN_STEP * tilt.iter().fold(1.0, |size: f64, entry| size.max(entry.abs()));
        let mut covariance = Mat::zeros(self.dimension, self.dimension);
        for i in 0..self.dimension {
            for j in 0..=i {
                let entry = extrapolated(|h| self.second_difference(tilt, i, j, h), step)?;
                covariance[(i, j)] = entry;
                covariance[(j, i)] = entry;
            }
        }
        Ok(covariance)
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension, tilt, tokens)?;
        let Some(sampler) = &self.sampler else {
            return Err(Error::Unsupported {
                family: self.family(),
                operation: "sampling",
                remedy: "hand in a sampler with `with_sampler`, or build an Empirical measure from samples",
            });
        };
        sampler(tilt, stream, tokens);
        check::finite_vector("the user's tokens", tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        Ok(Arc::new(Tilted::new(Arc::new(self.clone()), tilt)?))
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        self.sub_gaussian
    }
}
