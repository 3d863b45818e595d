//! Rates of decay: the exponent κ of c·L^{−κ} fitted on logarithmic axes, with an interval, and local slopes.

use crate::accuracy::Estimate;
use crate::error::{Error, Result};
use crate::numerics::{check, linalg, normal, student};
use crate::prompt::PromptLength;
use faer::{Mat, MatRef};

/// A positive error at a length, with the uncertainty of that number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// The prompt length L.
    pub length: PromptLength,
    /// The error at L, positive.
    pub value: f64,
    /// One standard error of the value, or the tolerance of an exact one, in the unit of the value.
    pub absolute_error: f64,
}

impl RatePoint {
    /// A labelled number at a length.
    pub fn new(length: PromptLength, estimate: Estimate) -> Self {
        RatePoint { length, value: estimate.value, absolute_error: estimate.error }
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
    /// If the matrix is itself an estimate, say so by [`Dependence::EstimatedLogCovariance`]: the inverse of
    /// an estimate is too large, and the interval would be too narrow.
    LogCovariance(MatRef<'a, f64>),
    /// The same, estimated from `draws` independent draws of all points, whose means are the values.
    EstimatedLogCovariance {
        /// The estimate, a row per point; it may be singular.
        covariance: MatRef<'a, f64>,
        /// The number of draws, at least 2.
        draws: u64,
    },
}

/// Which line is taken: least squares with these weights. The standard errors are right for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// All points count alike: fewer than ten draws do not tell which points are the good ones.
    OrdinaryLeastSquares,
    /// Every point counts by the inverse square of its own error.
    WeightedLeastSquares,
    /// By the inverse of the covariance of all points: the best there is if that is known.
    GeneralisedLeastSquares,
}

/// value ≈ c·L^{−κ}, fitted by least squares to ln value = ln c − κ ln L.
#[derive(Debug, Clone, PartialEq)]
pub struct RateFit {
    /// The exponent κ of L.
    pub exponent: f64,
    /// The constant c before L^−κ.
    pub constant: f64,
    /// Standard error of κ, on the basis named by `basis`.
    pub standard_error: f64,
    /// Standard error of ln c, on the same basis.
    pub log_constant_standard_error: f64,
    /// Confidence interval of κ.
    pub interval: RateInterval,
    /// Which least squares.
    pub estimator: Estimator,
    /// Where standard errors and interval come from.
    pub basis: SpreadBasis,
    /// χ² = rᵀ Σ⁻¹ r, the squared residuals in units of their stated errors; n − 2 is expected if these errors
    /// explain them. Where Σ is not inverted: rᵀ W r for the weights W of the estimator, scaled to have this
    /// expectation.
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
    /// The errors of the points, propagated: the residuals are no larger than these explain (χ² ≤ n − 2). Student's
    /// law with the degrees that the draws leave where the errors are estimated, the normal law elsewhere.
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
/// with [`Dependence::LogCovariance`] the fit is generalised least squares. With an estimated covariance it is
/// - generalised least squares from ten draws per point on, with the exact variance of that case (growth curves,
///   Rao 1965): (XᵀS⁻¹X)⁻¹ (N − 1)/(N − n + 1) (1 + χ²/(N − 1)), and Student's law with N − n + 1 degrees;
/// - below, weighted least squares (ordinary ones below ten draws) with slope aᵀ ln v and variance aᵀSa,
///   which needs no inverse, and Student's law with N − 1 degrees: exact for weights that do not depend on the draws.
///
/// # What the interval promises
/// - If the power law holds and the logarithms are normal with the stated errors, it covers κ with at least
///   the stated probability. For κ̂ and χ² are then independent; where χ² ≤ n − 2 the normal interval is used,
///   which covers with exactly that probability, and elsewhere one that is wider in both of its factors: the
///   quantile of Student's law exceeds the normal one, and the scale exceeds 1. With an estimated covariance
///   Student's law takes the place of the normal one, and again both factors only widen.
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
/// outside (0, 1), a covariance of the wrong size, not symmetric or (where it is known) not positive definite, and
/// fewer than two draws.
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
    // Logarithms relative to the most precise point: where it outweighs all others by many orders of magnitude, its
    // large weight meets zeros, and no digit of the others is lost beside it.
    let most_precise =
        kept.iter().copied().min_by(|&a, &b| errors.deviations[a].total_cmp(&errors.deviations[b]));
    let origin = points[most_precise.unwrap_or(kept[0])];
    let log_lengths: Vec<f64> =
        kept.iter().map(|&index| log_ratio(points[index].length.as_f64(), origin.length.as_f64())).collect();
    let log_values: Vec<f64> =
        kept.iter().map(|&index| log_ratio(points[index].value, origin.value)).collect();
    let (estimator, whitener) = errors.whitener(&kept)?;
    let line = Line::through(whitener.as_ref(), &log_lengths, &log_values);
    let degrees_of_freedom = kept.len() - 2;
    let spread = errors.spread(&kept, estimator, whitener.as_ref(), &line, &log_lengths);
    let excess = spread.chi_square / degrees_of_freedom as f64;
    let upper = 0.5 + 0.5 * level;
    let (basis, scale, degrees) = if excess > 1.0 {
        let degrees = spread.degrees.unwrap_or(f64::INFINITY).min(degrees_of_freedom as f64);
        (SpreadBasis::Residuals, excess.sqrt(), Some(degrees))
    } else {
        (SpreadBasis::StatedErrors, 1.0, spread.degrees)
    };
    let quantile = match degrees {
        Some(degrees) => student::quantile(upper, degrees)?,
        None => normal::quantile(upper),
    };
    let standard_error = scale * spread.slope_variance.sqrt();
    let exponent = check::finite_number("the exponent of a rate fit", -line.slope)?;
    let half_width = check::finite_number("the interval of a rate fit", quantile * standard_error)?;
    let log_constant = origin.value.ln() + line.intercept - line.slope * origin.length.as_f64().ln();
    // ln c is the line at ln L = 0, this far from the origin.
    let constant_variance = spread.variance_at(-origin.length.as_f64().ln());
    Ok(RateFit {
        exponent,
        constant: check::finite_number("the constant of a rate fit", log_constant.exp())?,
        standard_error,
        log_constant_standard_error: scale * constant_variance.max(0.0).sqrt(),
        interval: RateInterval { lower: exponent - half_width, upper: exponent + half_width, level },
        estimator,
        basis,
        chi_square: spread.chi_square,
        degrees_of_freedom,
        residuals: line.residuals,
        dropped,
    })
}

/// ln(a/b) for positive numbers, to the last digits also where they are neighbours.
fn log_ratio(a: f64, b: f64) -> f64 {
    if a <= 2.0 * b && b <= 2.0 * a { ((a - b) / b).ln_1p() } else { a.ln() - b.ln() }
}

/// The least-squares line y ≈ intercept + slope · x for a whitener W, in the metric WᵀW.
struct Line {
    slope: f64,
    intercept: f64,
    residuals: Vec<f64>,
    /// Wy − W(line).
    white_residuals: Vec<f64>,
    /// The slope is ⟨a, y⟩ and the intercept ⟨b, y⟩.
    slope_functional: Vec<f64>,
    intercept_functional: Vec<f64>,
    /// 1/|W1|², 1/|Wx − centre W1|² and the centre: the variances if WᵀW is the inverse covariance.
    level_variance: f64,
    slope_variance: f64,
    centre: f64,
}

impl Line {
    fn through(whitener: MatRef<'_, f64>, x: &[f64], y: &[f64]) -> Self {
        let ones = linalg::apply(whitener, &vec![1.0; x.len()]);
        let level_weight = linalg::squared_norm(&ones);
        // Gram–Schmidt, twice: what rounding leaves of the constant after the first pass would be read as a slope.
        let without_constant = |mut vector: Vec<f64>| {
            let mut removed = 0.0;
            for _ in 0..2 {
                let part = linalg::dot(&ones, &vector) / level_weight;
                linalg::add_scaled(&mut vector, -part, &ones);
                removed += part;
            }
            (vector, removed)
        };
        let (steepness, centre) = without_constant(linalg::apply(whitener, x));
        let (response, level) = without_constant(linalg::apply(whitener, y));
        let slope_weight = linalg::squared_norm(&steepness);
        let slope = linalg::dot(&steepness, &response) / slope_weight;
        let intercept = level - slope * centre;
        let residuals: Vec<f64> = y.iter().zip(x).map(|(y, x)| y - intercept - slope * x).collect();
        let scaled = |vector: &[f64], by: f64| -> Vec<f64> {
            linalg::apply_transpose(whitener, vector).iter().map(|entry| entry * by).collect()
        };
        let slope_functional = scaled(&steepness, 1.0 / slope_weight);
        let mut intercept_functional = scaled(&ones, 1.0 / level_weight);
        linalg::add_scaled(&mut intercept_functional, -centre, &slope_functional);
        Line {
            slope,
            intercept,
            white_residuals: linalg::apply(whitener, &residuals),
            residuals,
            slope_functional,
            intercept_functional,
            level_variance: 1.0 / level_weight,
            slope_variance: 1.0 / slope_weight,
            centre,
        }
    }
}

/// How far a line may be from the truth.
struct Spread {
    slope_variance: f64,
    intercept_variance: f64,
    covariance: f64,
    /// Squared residuals, n − 2 expected.
    chi_square: f64,
    /// Degrees of freedom of the variances where they are estimated.
    degrees: Option<f64>,
}

impl Spread {
    /// The variance of the line at x.
    fn variance_at(&self, x: f64) -> f64 {
        self.intercept_variance + 2.0 * x * self.covariance + x * x * self.slope_variance
    }
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
                    expected: "two different lengths, since a slope needs a distance",
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
                slope: log_ratio(first.value, second.value) / distance,
                standard_error: variance.max(0.0).sqrt() / distance,
            })
        })
        .collect()
}

/// Standard errors of the logarithms and, where given, their correlations.
struct LogErrors {
    deviations: Vec<f64>,
    correlations: Option<Mat<f64>>,
    /// Draws that these are estimated from; none if they are known.
    draws: Option<u64>,
}

/// With so many draws per point the inverse of an estimated covariance is worth its noise.
const DRAWS_PER_POINT: u64 = 10;

/// From so many draws on the variances of the points are weights; below, their noise would pick the line.
const DRAWS_FOR_WEIGHTS: u64 = 10;

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
        let (covariance, draws) = match dependence {
            Dependence::Independent => {
                let relative = |point: &RatePoint| (point.absolute_error / point.value).max(ROUNDING);
                let deviations = points.iter().map(relative).collect();
                return Ok(LogErrors { deviations, correlations: None, draws: None });
            }
            Dependence::LogCovariance(covariance) => (covariance, None),
            Dependence::EstimatedLogCovariance { covariance, draws } => (covariance, Some(draws)),
        };
        if draws.is_some_and(|draws| draws < 2) {
            return Err(Error::OutOfRange {
                what: "the number of draws behind a covariance",
                value: draws.unwrap_or(0) as f64,
                expected: "at least 2",
            });
        }
        check::size("the log-covariance (rows)", points.len(), covariance.nrows())?;
        let covariance = check::symmetric("the log-covariance", covariance)?;
        let mut deviations = Vec::with_capacity(points.len());
        for index in 0..points.len() {
            let value = covariance[(index, index)];
            if value < 0.0 {
                let what = "a variance of the log-covariance";
                return Err(Error::OutOfRange { what, value, expected: "a number from 0 up" });
            }
            deviations.push(value.sqrt().max(ROUNDING));
        }
        let correlations = Mat::from_fn(points.len(), points.len(), |i, j| {
            if i == j { 1.0 } else { covariance[(i, j)] / (deviations[i] * deviations[j]) }
        });
        Ok(LogErrors { deviations, correlations: Some(correlations), draws })
    }

    fn correlation(&self, i: usize, j: usize) -> f64 {
        self.correlations.as_ref().map_or(0.0, |correlations| correlations[(i, j)])
    }

    /// Which least squares, and its W: WᵀW are the weights.
    fn whitener(&self, kept: &[usize]) -> Result<(Estimator, Mat<f64>)> {
        let size = kept.len();
        let diagonal = |entry: &dyn Fn(usize) -> f64| {
            Mat::from_fn(size, size, |i, j| if i == j { entry(kept[i]) } else { 0.0 })
        };
        let weighted = || diagonal(&|index| 1.0 / self.deviations[index]);
        match self.draws {
            Some(draws) if draws < DRAWS_FOR_WEIGHTS => {
                Ok((Estimator::OrdinaryLeastSquares, diagonal(&|_| 1.0)))
            }
            Some(draws) if draws < DRAWS_PER_POINT * size as u64 => {
                Ok((Estimator::WeightedLeastSquares, weighted()))
            }
            None if self.correlations.is_none() => Ok((Estimator::WeightedLeastSquares, weighted())),
            _ => match self.inverse_root(kept) {
                // Two lengths may move together in all draws: that is no reason to refuse a fit without inverse.
                Err(Error::Singular { .. } | Error::Indefinite { .. }) if self.draws.is_some() => {
                    Ok((Estimator::WeightedLeastSquares, weighted()))
                }
                whitener => Ok((Estimator::GeneralisedLeastSquares, whitener?)),
            },
        }
    }

    /// W with WᵀW = Σ⁻¹ for the covariance Σ of the kept logarithms.
    ///
    /// The correlations are decomposed, not the covariances: exact points beside sampled ones differ in
    /// variance by many orders of magnitude without being degenerate.
    fn inverse_root(&self, kept: &[usize]) -> Result<Mat<f64>> {
        const WHAT: &str = "the correlation matrix of the points";
        let size = kept.len();
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

    /// Variances and χ² of a line.
    fn spread(
        &self,
        kept: &[usize],
        estimator: Estimator,
        whitener: MatRef<'_, f64>,
        line: &Line,
        x: &[f64],
    ) -> Spread {
        let squares = linalg::squared_norm(&line.white_residuals);
        let size = kept.len() as f64;
        let known = self.correlations.is_none() || estimator == Estimator::GeneralisedLeastSquares;
        if known {
            // The weights are the inverse covariance; if that is an estimate, Rao's factor makes up for it.
            let (factor, degrees) = match self.draws {
                None => (1.0, None),
                Some(draws) => {
                    let (draws, left) = (draws as f64 - 1.0, draws as f64 - size + 1.0);
                    (draws / left * (1.0 + squares / draws), Some(left))
                }
            };
            let (level, slope) = (factor * line.level_variance, factor * line.slope_variance);
            return Spread {
                slope_variance: slope,
                intercept_variance: level + line.centre * line.centre * slope,
                covariance: -line.centre * slope,
                chi_square: squares,
                degrees,
            };
        }
        // Cov(⟨u, y⟩, ⟨v, y⟩) = uᵀSv, a sandwich.
        let covariance = |u: &[f64], v: &[f64]| {
            let scaled = |vector: &[f64]| -> Vec<f64> {
                vector.iter().zip(kept).map(|(entry, &index)| entry * self.deviations[index]).collect()
            };
            let (u, v) = (scaled(u), scaled(v));
            let mut total = 0.0;
            for (i, u) in u.iter().enumerate() {
                for (j, v) in v.iter().enumerate() {
                    total += u * v * self.correlation(kept[i], kept[j]);
                }
            }
            total
        };
        let (slope, intercept) = (&line.slope_functional, &line.intercept_functional);
        // Residual k in whitened coordinates is a functional, too: row k of W(I − 1bᵀ − xaᵀ).
        let (white_ones, white_x) =
            (linalg::apply(whitener, &vec![1.0; kept.len()]), linalg::apply(whitener, x));
        let expected: f64 = (0..kept.len())
            .map(|k| {
                let mut row: Vec<f64> = (0..kept.len()).map(|j| whitener[(k, j)]).collect();
                linalg::add_scaled(&mut row, -white_ones[k], intercept);
                linalg::add_scaled(&mut row, -white_x[k], slope);
                covariance(&row, &row)
            })
            .sum();
        Spread {
            slope_variance: covariance(slope, slope).max(0.0),
            intercept_variance: covariance(intercept, intercept),
            covariance: covariance(slope, intercept),
            chi_square: if squares == 0.0 { 0.0 } else { (size - 2.0) * squares / expected },
            degrees: self.draws.map(|draws| draws as f64 - 1.0),
        }
    }
}
