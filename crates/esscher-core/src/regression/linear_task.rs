//! Linear regression with Gaussian covariates: the task of the theory, and its shifts at test time.

use crate::error::{Error, Result};
use crate::numerics::{check, linalg};
use faer::{Mat, MatRef};

/// w ~ N(0, k I); x ~ N(0, Σ); y = ⟨w, x⟩ + noise of variance s²; query x_q ~ N(0, Σ_q), target ⟨w, x_q⟩ + noise.
///
/// Risks are halved mean squared errors. A shift at test time is another task: change the covariance, the query
/// covariance, the prior or the noise, and evaluate the same head there.
///
/// ```
/// use esscher_core::regression::LinearRegression;
/// let task = LinearRegression::new(LinearRegression::toeplitz(5, 0.5)?.as_ref())?.with_noise(0.1)?;
/// assert_eq!(task.dimension(), 5);
/// assert_eq!(task.noise_floor(), 0.05);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LinearRegression {
    covariance: Mat<f64>,
    query_covariance: Mat<f64>,
    noise: f64,
    query_noise: f64,
    prior_scale: f64,
}

impl LinearRegression {
    /// No noise, prior N(0, I), queries like the covariates.
    ///
    /// # Errors
    /// A covariance of size zero, not square, not symmetric, not finite or not positive definite.
    pub fn new(covariance: MatRef<'_, f64>) -> Result<Self> {
        let covariance = definite("the covariance", covariance)?;
        Ok(LinearRegression {
            query_covariance: covariance.clone(),
            covariance,
            noise: 0.0,
            query_noise: 0.0,
            prior_scale: 1.0,
        })
    }

    /// Σ = I.
    pub fn isotropic(dimension: usize) -> Result<Self> {
        check_dimension(dimension)?;
        LinearRegression::new(linalg::identity(dimension).as_ref())
    }

    /// The Toeplitz covariance ρ^|i − j|.
    pub fn toeplitz(dimension: usize, correlation: f64) -> Result<Mat<f64>> {
        if !(correlation.abs() < 1.0) {
            return Err(Error::OutOfRange {
                what: "the correlation of neighbours",
                value: correlation,
                expected: "a number between -1 and 1",
            });
        }
        check_dimension(dimension)?;
        Ok(Mat::from_fn(dimension, dimension, |i, j| correlation.powi(i.abs_diff(j) as i32)))
    }

    /// The spiked covariance I + strength · e eᵀ, e = (1, …, 1)/√d.
    pub fn spiked(dimension: usize, strength: f64) -> Result<Mat<f64>> {
        if !(strength > -1.0 && strength.is_finite()) {
            return Err(Error::OutOfRange {
                what: "the strength of the spike",
                value: strength,
                expected: "a finite number above -1",
            });
        }
        check_dimension(dimension)?;
        let spike = strength / dimension.max(1) as f64;
        Ok(Mat::from_fn(dimension, dimension, |i, j| if i == j { 1.0 + spike } else { spike }))
    }

    /// Label noise of this variance, in the prompt and on the query.
    pub fn with_noise(mut self, variance: f64) -> Result<Self> {
        check::zero_or_more("the variance of the label noise", variance)?;
        self.noise = variance;
        self.query_noise = variance;
        Ok(self)
    }

    /// Noise of this variance on the query's target only; the prompt keeps its own.
    pub fn with_query_noise(mut self, variance: f64) -> Result<Self> {
        check::zero_or_more("the variance of the query's noise", variance)?;
        self.query_noise = variance;
        Ok(self)
    }

    /// Prior w ~ N(0, scale · I).
    pub fn with_prior(mut self, scale: f64) -> Result<Self> {
        check::positive("the scale of the prior", scale)?;
        self.prior_scale = scale;
        Ok(self)
    }

    /// Queries of another covariance than the prompt's covariates.
    pub fn with_query_covariance(mut self, covariance: MatRef<'_, f64>) -> Result<Self> {
        check::size("the covariance of the query (rows)", self.dimension(), covariance.nrows())?;
        self.query_covariance = definite("the covariance of the query", covariance)?;
        Ok(self)
    }

    /// The dimension d.
    pub fn dimension(&self) -> usize {
        self.covariance.nrows()
    }

    /// The covariance Σ of the covariates.
    pub fn covariance(&self) -> MatRef<'_, f64> {
        self.covariance.as_ref()
    }

    /// The covariance Σ_q of the query.
    pub fn query_covariance(&self) -> MatRef<'_, f64> {
        self.query_covariance.as_ref()
    }

    /// s², the variance of the label noise in the prompt.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// The variance of the noise on the query's target.
    pub fn query_noise(&self) -> f64 {
        self.query_noise
    }

    /// The scale k of the prior.
    pub fn prior_scale(&self) -> f64 {
        self.prior_scale
    }

    /// Half the variance of the query's noise: no predictor has a smaller risk, at any prompt length.
    pub fn noise_floor(&self) -> f64 {
        0.5 * self.query_noise
    }
}

fn definite(what: &'static str, matrix: MatRef<'_, f64>) -> Result<Mat<f64>> {
    check::not_empty(what, matrix.nrows())?;
    let matrix = check::symmetric(what, matrix)?;
    let eigen = linalg::SymmetricEigen::new(what, matrix.as_ref())?;
    let (eigenvalue, allowance) = (eigen.values[0], check::eigenvalue_allowance(matrix.as_ref()));
    if eigenvalue < -allowance {
        Err(Error::Indefinite { what, eigenvalue, allowance })
    } else if eigenvalue <= allowance {
        Err(Error::Singular { what, eigenvalue })
    } else {
        Ok(matrix)
    }
}

/// Matrices of this dimension fit in memory: 2 GB each.
fn check_dimension(dimension: usize) -> Result<()> {
    if dimension <= 16_384 {
        return Ok(());
    }
    Err(Error::OutOfRange {
        what: "the dimension of the covariates",
        value: dimension as f64,
        expected: "at most 16384; the spectral form has no such limit",
    })
}
