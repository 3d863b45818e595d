//! Rates of decay: the exponent κ of c·L^{−κ} fitted on logarithmic axes, with an interval, and local slopes.

use crate::accuracy::Estimate;
use crate::error::{Error, Result};
use crate::numerics::{check, linalg, normal, student};
use crate::prompt::PromptLength;
use faer::{Mat, MatRef};

/// A positive error at a length, with the uncertainty of that number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// L.
    pub length: PromptLength,
    /// The error at L, positive.
    pub value: f64,
    /// One standard error of the value, or the tolerance of an exact one, in the unit of the value.
    pub absolute_error: f64,
}

impl RatePoint {
    /// A labelled number at a length.
    pub fn new(length: PromptLength, estimate: Estimate) -> Self {
        RatePoint { length, value: estimate.value, absolute_error: estimate.absolute_error() }
    }
}

/// How the errors of several points hang together.
#[derive(Debug, Clone, Copy)]
pub enum Dependence<'a> {
    /// Points from different prompts, or exact ones.
    Independent,
    /// The covariance matrix of the **logarithms** of the values, a row per point: Cov(vᵢ, vⱼ)/(vᵢ vⱼ) to first
    /// order. It takes the place of the points' own errors.
    ///
    /// Lengths that are prefixes of the same prompts have positively correlated errors. Treating them
    /// as independent overstates the error of slopes between neighbours and misstates that of the fit.
    /// If the matrix is itself estimated from N draws of n points, its inverse is too large by about
    /// N/(N − n): take N many times n, or the interval is too narrow.
    LogCovariance(MatRef<'a, f64>),
}

/// value ≈ c·L^{−κ}, fitted by weighted least squares to ln value = ln c − κ ln L.
#[derive(Debug, Clone, PartialEq)]
pub struct RateFit {
    /// κ.
    pub exponent: f64,
    /// c.
    pub constant: f64,
    /// Standard error of κ, on the basis named by `basis`.
    pub standard_error: f64,
    /// Standard error of ln c, on the same basis.
    pub log_constant_standard_error: f64,
    /// Confidence interval of κ.
    pub interval: RateInterval,
    /// Where standard errors and interval come from.
    pub basis: SpreadBasis,
    /// χ² = rᵀ Σ⁻¹ r, the squared residuals in units of their stated errors; n − 2 is expected if these errors
    /// explain them.
    pub chi_square: f64,
    /// n − 2.
    pub degrees_of_freedom: usize,
    /// r: ln value minus the fitted line, one per point kept, in the order given.
    pub residuals: Vec<f64>,
    /// Positions of points left out because they are not three standard errors above zero.
    pub dropped: Vec<usize>,
}

/// An interval for κ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateInterval {
    /// Its lower end.
    pub lower: f64,
    /// Its upper end.
    pub upper: f64,
    /// The level that was asked for, such as 0.95.
    pub level: f64,
}

impl RateInterval {
    /// Whether an exponent lies in the interval.
    pub fn contains(&self, exponent: f64) -> bool {
        (self.lower..=self.upper).contains(&exponent)
    }
}

/// What the stated spread of a fit rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadBasis {
    /// The errors of the points, propagated: the residuals are no larger than these explain (χ² ≤ n − 2).
    StatedErrors,
    /// The residuals: they are larger than the errors explain, so the points do not lie on a power law to
    /// within their errors, and errors are scaled by (χ²/(n − 2))^{1/2}.
    Residuals,
}

/// κ between two neighbouring lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalSlope {
    /// The shorter length.
    pub from: PromptLength,
    /// The longer length.
    pub to: PromptLength,
    /// κ = −ln(v_to/v_from) / ln(L_to/L_from).
    pub slope: f64,
    /// Its standard error, from the errors of both values.
    pub standard_error: f64,
}

/// A point with a larger relative error tells nothing on a logarithmic axis: it is less than three standard
/// errors above zero, and the logarithm of the next draw may not exist.
const LARGEST_RELATIVE_ERROR: f64 = 1.0 / 3.0;

/// No logarithm of a stored number is known better than this, whatever its stated error.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Curvature shows from three different lengths on.
const LEAST_LENGTHS: usize = 3;

/// Fits value = c·L^{−κ} to points, with an interval for κ at this level (0.95, say).
///
/// The weight of a point is the inverse square of its relative error, the standard error of its logarithm;
/// with [`Dependence::LogCovariance`] the fit is generalised least squares.
///
/// # What the interval promises
/// - If the power law holds and the logarithms are normal with the stated errors, it covers κ with at least
///   the stated probability. For κ̂ and χ² are then independent; where χ² ≤ n − 2 the normal interval is used,
///   which covers with exactly that probability, and elsewhere one that is wider in both of its factors: the
///   quantile of Student's law exceeds the normal one, and the scale exceeds 1.
/// - Exact points have almost no noise, and a finite range of lengths almost never obeys a power law exactly.
///   The interval then has the width of the residuals (Student, n − 2 degrees). Curvature is not random:
///   the interval says how well **one** exponent describes **these** lengths, and says nothing about
///   the exponent at longer ones. Look at [`local_slopes`] for its trend.
///
/// A point whose value is not three standard errors above zero is left out and listed in `dropped`. If that
/// befalls the longest lengths only, the draws of those that stay are high by chance, and κ is low.
///
/// # Errors
/// A value that is not positive, a negative error, fewer than three different lengths left, a level
/// outside (0, 1), and a covariance of the wrong size, not symmetric or not positive definite.
///
/// ```
/// use esscher_core::concentration::{Dependence, RatePoint, rate_fit};
/// use esscher_core::prompt::PromptLength;
/// let points = [(10, 0.21), (100, 0.0205), (1000, 0.00198)].map(|(tokens, value)| RatePoint {
///     length: PromptLength::new(tokens).unwrap(),
///     value,
///     absolute_error: 0.03 * value,
/// });
/// let fit = rate_fit(&points, Dependence::Independent, 0.95)?;
/// assert!(fit.interval.contains(1.0));
/// # Ok::<(), esscher_core::Error>(())
/// ```
pub fn rate_fit(points: &[RatePoint], dependence: Dependence<'_>, level: f64) -> Result<RateFit> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::OutOfRange {
            what: "the level of the interval",
            value: level,
            expected: "a number strictly between 0 and 1, such as 0.95",
        });
    }
    let errors = LogErrors::new(points, dependence)?;
    let (kept, dropped): (Vec<usize>, Vec<usize>) =
        (0..points.len()).partition(|&index| errors.deviations[index] <= LARGEST_RELATIVE_ERROR);
    let mut lengths: Vec<_> = kept.iter().map(|&index| points[index].length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    if lengths.len() < LEAST_LENGTHS {
        return Err(Error::OutOfRange {
            what: "the number of different lengths known to better than a third",
            value: lengths.len() as f64,
            expected: "at least 3 for a rate with an interval; add lengths or trials",
        });
    }
    // Logarithms relative to the first point, so that the fit does not lose digits to its size.
    let origin = points[kept[0]].value.ln();
    let log_lengths: Vec<f64> = kept.iter().map(|&index| points[index].length.as_f64().ln()).collect();
    let log_values: Vec<f64> = kept.iter().map(|&index| points[index].value.ln() - origin).collect();
    let whitener = errors.whitener(&kept)?;
    let ones = linalg::apply(whitener.as_ref(), &vec![1.0; kept.len()]);
    let regressor = linalg::apply(whitener.as_ref(), &log_lengths);
    let response = linalg::apply(whitener.as_ref(), &log_values);
    // Gram–Schmidt: the part of ln L that a constant does not explain.
    let level_weight = linalg::squared_norm(&ones);
    let centre = linalg::dot(&ones, &regressor) / level_weight;
    let mut steepness = regressor;
    linalg::add_scaled(&mut steepness, -centre, &ones);
    let slope_weight = linalg::squared_norm(&steepness);
    let slope = linalg::dot(&steepness, &response) / slope_weight;
    let intercept = linalg::dot(&ones, &response) / level_weight - slope * centre;
    let residuals: Vec<f64> =
        log_values.iter().zip(&log_lengths).map(|(y, x)| y - intercept - slope * x).collect();
    let chi_square = linalg::squared_norm(&linalg::apply(whitener.as_ref(), &residuals));
    let degrees_of_freedom = kept.len() - 2;
    let excess = chi_square / degrees_of_freedom as f64;
    let upper = 0.5 + 0.5 * level;
    let (basis, scale, quantile) = if excess > 1.0 {
        (SpreadBasis::Residuals, excess.sqrt(), student::quantile(upper, degrees_of_freedom as f64)?)
    } else {
        (SpreadBasis::StatedErrors, 1.0, normal::quantile(upper))
    };
    let standard_error = scale / slope_weight.sqrt();
    let exponent = check::finite_number("the exponent of a rate fit", -slope)?;
    let half_width = check::finite_number("the interval of a rate fit", quantile * standard_error)?;
    Ok(RateFit {
        exponent,
        constant: check::finite_number("the constant of a rate fit", (intercept + origin).exp())?,
        standard_error,
        log_constant_standard_error: scale * (1.0 / level_weight + centre * centre / slope_weight).sqrt(),
        interval: RateInterval { lower: exponent - half_width, upper: exponent + half_width, level },
        basis,
        chi_square,
        degrees_of_freedom,
        residuals,
        dropped,
    })
}

/// κ between each two neighbouring lengths, in increasing order of length.
///
/// Every point is used, however uncertain: its standard error says so. Fewer than two points have no slopes.
///
/// # Errors
/// A value that is not positive, a negative error, two points of the same length, or a covariance of the
/// wrong size or not symmetric.
pub fn local_slopes(points: &[RatePoint], dependence: Dependence<'_>) -> Result<Vec<LocalSlope>> {
    let errors = LogErrors::new(points, dependence)?;
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| points[index].length);
    order
        .windows(2)
        .map(|pair| {
            let (first, second) = (&points[pair[0]], &points[pair[1]]);
            if first.length == second.length {
                return Err(Error::OutOfRange {
                    what: "the length of two points",
                    value: first.length.as_f64(),
                    expected: "different lengths: a slope needs a distance",
                });
            }
            // ln(1 + gap): the lengths may be neighbouring numbers near 10¹².
            let gap = (second.length.get() - first.length.get()) as f64 / first.length.as_f64();
            let distance = gap.ln_1p();
            let (a, b) = (errors.deviations[pair[0]], errors.deviations[pair[1]]);
            let variance = a * a + b * b - 2.0 * a * b * errors.correlation(pair[0], pair[1]);
            Ok(LocalSlope {
                from: first.length,
                to: second.length,
                slope: (first.value.ln() - second.value.ln()) / distance,
                standard_error: variance.max(0.0).sqrt() / distance,
            })
        })
        .collect()
}

/// Standard errors of the logarithms and, where given, their correlations.
struct LogErrors {
    deviations: Vec<f64>,
    correlations: Option<Mat<f64>>,
}

impl LogErrors {
    fn new(points: &[RatePoint], dependence: Dependence<'_>) -> Result<Self> {
        for point in points {
            check::positive("a value of the rate fit", point.value)?;
            if !(point.absolute_error >= 0.0 && point.absolute_error.is_finite()) {
                return Err(Error::OutOfRange {
                    what: "the absolute error of a value",
                    value: point.absolute_error,
                    expected: "a finite number from 0 up",
                });
            }
        }
        match dependence {
            Dependence::Independent => Ok(LogErrors {
                deviations: points
                    .iter()
                    .map(|point| (point.absolute_error / point.value).max(ROUNDING))
                    .collect(),
                correlations: None,
            }),
            Dependence::LogCovariance(covariance) => {
                check::size("the log-covariance (rows)", points.len(), covariance.nrows())?;
                let covariance = check::symmetric("the log-covariance", covariance)?;
                let variances: Vec<f64> = (0..points.len()).map(|i| covariance[(i, i)]).collect();
                for &variance in &variances {
                    check::positive("a variance of the log-covariance", variance)?;
                }
                let deviations: Vec<f64> = variances.iter().map(|v| v.sqrt().max(ROUNDING)).collect();
                let correlations = Mat::from_fn(points.len(), points.len(), |i, j| {
                    if i == j { 1.0 } else { covariance[(i, j)] / (deviations[i] * deviations[j]) }
                });
                Ok(LogErrors { deviations, correlations: Some(correlations) })
            }
        }
    }

    fn correlation(&self, i: usize, j: usize) -> f64 {
        self.correlations.as_ref().map_or(0.0, |correlations| correlations[(i, j)])
    }

    /// W with WᵀW = Σ⁻¹ for the covariance Σ of the kept logarithms.
    ///
    /// The correlations are decomposed, not the covariances: exact points beside sampled ones differ in
    /// variance by many orders of magnitude without being degenerate.
    fn whitener(&self, kept: &[usize]) -> Result<Mat<f64>> {
        const WHAT: &str = "the correlation matrix of the points";
        let size = kept.len();
        if self.correlations.is_none() {
            return Ok(Mat::from_fn(
                size,
                size,
                |i, j| if i == j { 1.0 / self.deviations[kept[i]] } else { 0.0 },
            ));
        }
        let correlations = Mat::from_fn(size, size, |i, j| self.correlation(kept[i], kept[j]));
        let allowance = check::eigenvalue_allowance(correlations.as_ref());
        let eigen = linalg::SymmetricEigen::new(WHAT, correlations.as_ref())?;
        if eigen.values[0] < -allowance {
            return Err(Error::Indefinite { what: WHAT, eigenvalue: eigen.values[0], allowance });
        }
        if eigen.values[0] <= allowance {
            return Err(Error::Singular { what: WHAT, eigenvalue: eigen.values[0] });
        }
        Ok(Mat::from_fn(size, size, |i, j| {
            eigen.vectors[(j, i)] / eigen.values[i].sqrt() / self.deviations[kept[j]]
        }))
    }
}
