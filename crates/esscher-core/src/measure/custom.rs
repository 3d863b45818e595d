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
/// The tilted mean and covariance are central differences of the log-partition, extrapolated by Ridders' table, unless
/// the user hands in the exact ones. The first step along an axis is at most the one over which Λ bends by one, about
/// 1/σ with σ the tilted standard deviation, or the way to the edge of the domain; the next are halves of it. Errors
/// are about 10⁻¹³σ for the mean and 10⁻¹¹σ² for the covariance, plus what rounding of the function adds, about
/// 10⁻¹⁴|Λ|σ and 10⁻¹²|Λ|σ². A mean takes some 20 values of the function for each axis, an entry of the covariance
/// some 30. Sampling needs a sampler. A law known through samples is an [`super::Empirical`] measure instead.
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

/// The step over which Λ bends by one is found to within this factor, in so many rounds: enough for tokens of any size
/// between 10⁻⁸ and 10⁸, at any tilt.
const WIDENING: f64 = 8.0;
const WIDENINGS: usize = 20;

/// Rows of Ridders' table. Further ones would be of rounding alone.
const ROWS: usize = 7;

/// A relative error that needs no further row.
const ACCURATE: f64 = 1e-12;

impl Custom {
    /// The law in dimension d with this log-partition; return infinity or NaN where it does not exist.
    ///
    /// # Errors
    /// d = 0, or a function with Λ(0) ≠ 0, which no probability measure has.
    pub fn new(
        dimension: usize,
        log_partition: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Result<Self> {
        check::dimension(dimension)?;
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

    /// Λ(θ + a eᵢ + b eⱼ).
    fn near(&self, tilt: &[f64], (i, a): (usize, f64), (j, b): (usize, f64)) -> Result<f64> {
        let mut moved = tilt.to_vec();
        moved[i] += a;
        moved[j] += b;
        self.value(&moved)
    }

    /// A mixed central difference along axes i and j with steps h, k (i = j allowed).
    fn second_difference(&self, tilt: &[f64], (i, h): (usize, f64), (j, k): (usize, f64)) -> Result<f64> {
        let (h, k) = (0.5 * h, 0.5 * k);
        let at = |a: f64, b: f64| self.near(tilt, (i, a), (j, b));
        // Divided one after the other: the product of two small steps may underflow.
        Ok((at(h, k)? - at(h, -k)? - at(-h, k)? + at(-h, -k)?) / (2.0 * h) / (2.0 * k))
    }

    /// A step along an axis over which Λ bends by less than one, and over eight times which it bends by more.
    ///
    /// What a convex function bends by, Λ(θ + h) + Λ(θ − h) − 2Λ(θ), grows with h, to infinity at the edge of its domain.
    fn bending_step(&self, tilt: &[f64], axis: usize) -> Result<f64> {
        let centre = self.value(tilt)?;
        let above = |offset: f64| {
            self.near(tilt, (axis, offset), (axis, 0.0)).map_or(f64::INFINITY, |at| at - centre)
        };
        let bends = |step: f64| above(step) + above(-step) > 1.0;
        let unit = tilt[axis].abs().max(1.0);
        let steps =
            |factor: f64| std::iter::successors(Some(unit), move |step| Some(step * factor)).take(WIDENINGS);
        Ok(if bends(unit) {
            steps(1.0 / WIDENING).find(|step| !bends(*step))
        } else {
            steps(WIDENING).find(|step| bends(*step * WIDENING))
        }
        // A function that never bends is that of an atom: any step will do.
        .unwrap_or(unit))
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Custom").field("dimension", &self.dimension).finish_non_exhaustive()
    }
}

/// A covariance whose variances are not negative: no log-partition is concave. A thousandth of the given size may be noise.
fn with_variances(covariance: Mat<f64>, size: impl Fn(usize) -> f64) -> Result<Mat<f64>> {
    match (0..covariance.nrows()).find(|&i| covariance[(i, i)] < -1e-3 * size(i)) {
        None => Ok(covariance),
        Some(i) => Err(Error::OutOfRange {
            what: "a variance of the user's law",
            value: covariance[(i, i)],
            expected: "at least 0: a log-partition is convex",
        }),
    }
}

/// The limit of a central difference for steps to zero, by Ridders' table (key `ridders1982`): each row halves the step, each
/// column removes one more even power of it, and the entry that differs least from its neighbours is taken. Steps at
/// which a neighbour does not exist are passed over.
fn extrapolated(difference: impl Fn(f64) -> Result<f64>, mut step: f64) -> Result<f64> {
    let mut best = difference(step);
    let (mut error, mut above) = (f64::INFINITY, Vec::from_iter(best.clone()));
    for _ in 1..ROWS {
        step *= 0.5;
        let Ok(entry) = difference(step) else { continue };
        best = best.or(Ok(entry));
        let (mut row, mut power) = (vec![entry], 1.0);
        for (column, old) in above.iter().enumerate() {
            power *= 4.0;
            let entry = row[column] + (row[column] - old) / (power - 1.0);
            let change = (entry - row[column]).abs().max((entry - old).abs());
            if change <= error {
                (best, error) = (Ok(entry), change);
            }
            row.push(entry);
        }
        above = row;
        if best.as_ref().is_ok_and(|best| error <= ACCURATE * best.abs()) {
            break;
        }
    }
    best
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
            return match check::first_not_finite(&mean) {
                None => Ok(mean),
                Some(index) => {
                    Err(Error::UserFunction { what: "tilted mean", value: mean[index], tilt: tilt.to_vec() })
                }
            };
        }
        let central = |i: usize, h: f64| {
            let at = |offset: f64| self.near(tilt, (i, offset), (i, 0.0));
            Ok((at(h)? - at(-h)?) / (2.0 * h))
        };
        let mean = (0..self.dimension)
            .map(|i| extrapolated(|h| central(i, h), self.bending_step(tilt, i)?))
            .collect::<Result<_>>()?;
        check::finite_result("a difference of the user's log-partition", mean)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check::matrix_dimension(self.dimension)?;
        check_tilt(self.dimension, tilt)?;
        self.value(tilt)?;
        if let Some(covariance) = &self.tilted_covariance {
            let covariance = covariance(tilt);
            check::size("the user's tilted covariance (rows)", self.dimension, covariance.nrows())?;
            check::size("the user's tilted covariance (columns)", self.dimension, covariance.ncols())?;
            let covariance = check::symmetric("the user's tilted covariance", covariance.as_ref())?;
            // Rounding may leave a trace of a variance that is zero.
            let largest = (0..self.dimension).fold(0.0, |most: f64, i| most.max(covariance[(i, i)].abs()));
            return with_variances(covariance, |_| largest);
        }
        let steps: Vec<f64> =
            (0..self.dimension).map(|i| self.bending_step(tilt, i)).collect::<Result<_>>()?;
        let mut covariance = Mat::zeros(self.dimension, self.dimension);
        for i in 0..self.dimension {
            for j in 0..=i {
                let difference = |h: f64| self.second_difference(tilt, (i, h * steps[i]), (j, h * steps[j]));
                let entry = extrapolated(difference, 1.0)?;
                covariance[(i, j)] = entry;
                covariance[(j, i)] = entry;
            }
        }
        let covariance = check::finite_matrix_result("a difference of the user's log-partition", covariance)?;
        // Over its step Λ bends by about one: differences know that to far more than the three digits asked here.
        with_variances(covariance, |i| 1.0 / (steps[i] * steps[i]))
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension, tilt, tokens)?;
        let Some(sampler) = &self.sampler else {
            return Err(Error::Unsupported {
                family: self.family(),
                operation: "sampling",
                remedy: "hand in a sampler, or build an Empirical measure from samples",
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
