//! Rates of decay: power laws fitted to errors over lengths, and slopes between neighbours.

use crate::prelude::*;
use esscher_core::Mat;
use esscher_core::concentration::{Dependence, Estimator, LocalSlope, RatePoint, SpreadBasis};

export!(fn rate_fit, local_slopes);

/// Joint laws over lengths grow with the square of their number.
const MOST_LENGTHS: usize = 1000;

/// Points of a fit and how they hang together.
struct Points {
    points: Vec<RatePoint>,
    covariance: Option<Mat<f64>>,
    draws: Option<u64>,
}

impl Points {
    fn read(asked: &Asked<'_>) -> PyResult<Self> {
        let lengths = asked.lengths()?;
        if lengths.len() > MOST_LENGTHS {
            let found = lengths.len();
            let message = format!("lengths: {found} given, at most {MOST_LENGTHS} are supported at a time");
            return Err(PyValueError::new_err(message));
        }
        let values = asked.vector("values")?;
        arrays::check_size("values", lengths.len(), values.len())?;
        let errors = match asked.maybe("errors", Asked::reals)? {
            None => vec![0.0; values.len()],
            Some(errors) => match (errors.shape(), errors.entries()) {
                ([], &[one]) => vec![one; values.len()],
                _ => errors.vector()?.to_vec(),
            },
        };
        arrays::check_size("errors", lengths.len(), errors.len())?;
        let points = lengths
            .iter()
            .zip(values)
            .zip(errors)
            .map(|((&length, value), absolute_error)| RatePoint { length, value, absolute_error })
            .collect();
        let covariance = asked.maybe("covariance", Asked::matrix)?;
        if covariance.is_some() && asked.given("errors")?.is_some() {
            let message = "errors: given beside a covariance, which takes their place: give one of them";
            return Err(PyValueError::new_err(message));
        }
        let draws = asked.maybe("draws", |asked, what| asked.whole(what, 2..=u64::MAX))?;
        if draws.is_some() && covariance.is_none() {
            let message = "draws: given without a covariance; draws say how well that is known";
            return Err(PyValueError::new_err(message));
        }
        Ok(Points { points, covariance, draws })
    }

    fn dependence(&self) -> Dependence<'_> {
        match (&self.covariance, self.draws) {
            (None, _) => Dependence::Independent,
            (Some(covariance), None) => Dependence::LogCovariance(covariance.as_ref()),
            (Some(covariance), Some(draws)) => {
                Dependence::EstimatedLogCovariance { covariance: covariance.as_ref(), draws }
            }
        }
    }
}

/// c·L^{−κ} fitted to points.
#[pyfunction]
fn rate_fit<'py>(py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyDict>> {
    let (points, level) = (Points::read(&asked)?, asked.real("level")?);
    let fit = py
        .detach(|| esscher_core::concentration::rate_fit(&points.points, points.dependence(), level))
        .or_raise()?;
    let estimator = match fit.estimator {
        Estimator::OrdinaryLeastSquares => "ordinary-least-squares",
        Estimator::WeightedLeastSquares => "weighted-least-squares",
        Estimator::GeneralisedLeastSquares => "generalised-least-squares",
    };
    let basis = match fit.basis {
        SpreadBasis::StatedErrors => "stated-errors",
        SpreadBasis::Residuals => "residuals",
    };
    Ok(dictionary!(py, interval: (fit.interval.lower, fit.interval.upper), level: fit.interval.level,
        estimator: estimator, basis: basis, residuals: Array::from(&fit.residuals[..]);
        fit => exponent, constant, standard_error, log_constant_standard_error, chi_square, degrees_of_freedom, dropped))
}

/// κ between neighbours: (from, to, slope, standard error) of each.
#[pyfunction]
fn local_slopes(py: Python<'_>, asked: Asked<'_>) -> PyResult<Vec<(u64, u64, f64, f64)>> {
    let points = Points::read(&asked)?;
    let slopes = py
        .detach(|| esscher_core::concentration::local_slopes(&points.points, points.dependence()))
        .or_raise()?;
    let row = |slope: &LocalSlope| (slope.from.get(), slope.to.get(), slope.slope, slope.standard_error);
    Ok(slopes.iter().map(row).collect())
}
