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
/// The tilted mean and covariance are central differences of the log-partition, extrapolated once, unless the
/// user hands in the exact ones. Steps are fractions of the scale on which the function bends along each axis,
/// found first: 1/σ, σ the tilted standard deviation, or less where σ itself changes sooner. Near the edge of the
/// domain they shrink. For a law whose cumulants are of order σⁿ the error of the mean is about 10⁻¹⁰σ and that
/// of the covariance 10⁻⁹σ², plus what rounding of the function adds, about 10⁻¹³|Λ|σ and 10⁻¹²|Λ|σ², more where
/// the step had to be short. Sampling needs a sampler. A law known through samples is an [`super::Empirical`]
/// measure instead.
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

/// Steps of the central differences in units of 1/σ: they balance truncation (h⁴/480 and h⁴/1440 after one
/// extrapolation) against rounding (ε/h and ε/h²).
const GRADIENT_STEP: f64 = 1e-2;
const HESSIAN_STEP: f64 = 3e-2;

/// The second difference that finds σ begins at this step, relative to the tilt, and ends at this many units
/// of 1/σ.
const PROBE_STEP: f64 = 1e-2;

/// Rounds of that search: enough for tokens of any size between 10⁻⁸ and 10⁸.
const PROBE_ROUNDS: usize = 20;

/// A second difference above this part of Λ is known to a few units in a thousand in spite of rounding.
const STANDS_OUT: f64 = 4096.0 * f64::EPSILON;

/// σ counts as constant over a step if it changes by no more than this part.
const CONSTANT: f64 = 1e-2;

/// Where the search stops for another reason, the scale is this many of the last good steps: differences then
/// reach an eighth of it.
const WIDENING: f64 = 4.0;

/// How much a step shrinks when a neighbour lies outside the domain, and how often.
const SHRINK: f64 = 0.125;
const SHRINKS: usize = 4;

impl Custom {
    /// The law in dimension d with this log-partition; return infinity or NaN where it does not exist.
    ///
    /// # Errors
    /// d = 0, or a function with Λ(0) ≠ 0, which no probability measure has.
    pub fn new(
        dimension: usize,
        log_partition: impl Fn(&[f64]) -> f64 + Send + Sync + 'static,
    ) -> Result<Self> {
        check::at_least_one("the dimension of the measure", dimension)?;
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

    /// The scale on which Λ bends along an axis: 1/σ, or less where the curvature itself changes sooner.
    ///
    /// A second difference is widened until it stands out of rounding, then until its step is a hundredth of 1/σ or
    /// its curvature changes; it is narrowed where its step turns out too wide or leaves the domain. The steps taken
    /// in units of the answer stay inside the range where the curvature was seen not to change.
    fn bending_scale(&self, tilt: &[f64], axis: usize) -> Result<f64> {
        let centre = self.value(tilt)?;
        let unit = tilt[axis].abs().max(1.0);
        let mut step = PROBE_STEP * unit;
        let mut at_the_edge = false;
        // The widest step without a bend, and step and 1/σ of the last difference with one.
        let mut flat: Option<f64> = None;
        let mut bent: Option<(f64, f64)> = None;
        let trusted =
            |flat: Option<f64>, (step, scale): (f64, f64)| scale.min(WIDENING * flat.unwrap_or(step));
        for _ in 0..PROBE_ROUNDS {
            let at = |offset: f64| self.near(tilt, (axis, offset), (axis, 0.0));
            let (Ok(up), Ok(down)) = (at(step), at(-step)) else {
                match (bent, flat) {
                    (Some(bent), _) => return Ok(trusted(flat, bent)),
                    (None, Some(flat)) => return Ok(WIDENING * flat),
                    (None, None) => (at_the_edge, step) = (true, step * SHRINK),
                }
                continue;
            };
            let bend = (up - centre) + (down - centre);
            let largest = up.abs().max(down.abs()).max(centre.abs()).max(1.0);
            if bend <= STANDS_OUT * largest {
                if at_the_edge {
                    return Ok(step);
                }
                flat = Some(step);
                step /= SHRINK;
                continue;
            }
            let scale = step / bend.sqrt();
            if let Some(inner) = bent {
                if (scale / inner.1 - 1.0).abs() > CONSTANT {
                    return Ok(trusted(flat, inner));
                }
                // Two differences agree: what looked flat before was only lost in rounding.
                flat = None;
            }
            let target = PROBE_STEP * scale;
            if target < 0.2 * step && flat.is_none() && bent.is_none() {
                step = target;
            } else if target <= 5.0 * step && flat.is_none() {
                let inner = step * SHRINK;
                let inner_bend = (at(inner)? - centre) + (at(-inner)? - centre);
                if bent.is_some() || (inner / inner_bend.sqrt() / scale - 1.0).abs() <= CONSTANT {
                    return Ok(scale.min(step / PROBE_STEP));
                }
                if inner_bend <= STANDS_OUT * largest {
                    return Ok(scale.min(WIDENING * inner));
                }
                step = inner;
            } else if at_the_edge {
                return Ok(scale.min(WIDENING * step));
            } else {
                bent = Some((step, scale));
                step = if flat.is_some() { step / SHRINK } else { target.min(step / SHRINK) };
            }
        }
        // A function that never bends is that of an atom: any step will do.
        Ok(bent.map_or(unit, |bent| trusted(flat, bent)))
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Custom").field("dimension", &self.dimension).finish_non_exhaustive()
    }
}

/// Removes the h² error of a central difference: (4 D(h/2) − D(h)) / 3. The step shrinks if a neighbour does not
/// exist.
fn extrapolated(difference: impl Fn(f64) -> Result<f64>, step: f64) -> Result<f64> {
    let at = |h: f64| Ok((4.0 * difference(0.5 * h)? - difference(h)?) / 3.0);
    let (mut step, mut value) = (step, at(step));
    for _ in 0..SHRINKS {
        if value.is_ok() {
            break;
        }
        step *= SHRINK;
        value = at(step);
    }
    value
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
            let at = |offset: f64| self.near(tilt, (i, offset), (i, 0.0));
            Ok((at(h)? - at(-h)?) / (2.0 * h))
        };
        let mean = (0..self.dimension)
            .map(|i| extrapolated(|h| central(i, h), GRADIENT_STEP * self.bending_scale(tilt, i)?))
            .collect::<Result<_>>()?;
        check::finite_result("a difference of the user's log-partition", mean)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check_tilt(self.dimension, tilt)?;
        self.value(tilt)?;
        if let Some(covariance) = &self.tilted_covariance {
            let covariance = covariance(tilt);
            check::size("the user's tilted covariance (rows)", self.dimension, covariance.nrows())?;
            check::size("the user's tilted covariance (columns)", self.dimension, covariance.ncols())?;
            return check::symmetric("the user's tilted covariance", covariance.as_ref());
        }
        let scales: Vec<f64> =
            (0..self.dimension).map(|i| self.bending_scale(tilt, i)).collect::<Result<_>>()?;
        let mut covariance = Mat::zeros(self.dimension, self.dimension);
        for i in 0..self.dimension {
            for j in 0..=i {
                let difference =
                    |h: f64| self.second_difference(tilt, (i, h * scales[i]), (j, h * scales[j]));
                let entry = extrapolated(difference, HESSIAN_STEP)?;
                covariance[(i, j)] = entry;
                covariance[(j, i)] = entry;
            }
        }
        check::finite_matrix_result("a difference of the user's log-partition", covariance)
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
