//! Sub-Gaussian parameters of measures, each proved in `docs/mathematics/sub-gaussian.md`, optimal or an upper bound.

use crate::error::{Error, Result};
use crate::numerics::linalg;
use faer::{Mat, MatRef};

/// E exp⟨θ, z − m⟩ ≤ exp(σ²|θ|²/2) for all θ, m the mean of the measure.
///
/// The paper's propositions are stated for tokens with such a σ. Proofs for every family stand in
/// `docs/mathematics/sub-gaussian.md`.
///
/// ```
/// use esscher_core::measure::{Measure, Sharpness, Sphere};
/// let sphere = Sphere::new(4, 3.0)?.sub_gaussian().unwrap();
/// assert_eq!((sphere.parameter, sphere.sharpness), (1.5, Sharpness::Optimal)); // r/√d
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SubGaussian {
    /// σ ≥ 0.
    pub parameter: f64,
    /// Whether a smaller σ would do.
    pub sharpness: Sharpness,
}

/// Whether a proved parameter can be improved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharpness {
    /// No smaller number has the property.
    Optimal,
    /// The property holds; a smaller number may have it, too.
    UpperBound,
}

/// A parameter whose square is this close to a lower bound on it, relatively, counts as optimal: rounding of the
/// eigenvalues on both sides.
const ROUNDING: f64 = 1e-12;

impl SubGaussian {
    /// A parameter from 0 up.
    ///
    /// # Errors
    /// A negative or non-finite parameter.
    pub fn new(parameter: f64, sharpness: Sharpness) -> Result<Self> {
        if parameter >= 0.0 && parameter.is_finite() {
            return Ok(SubGaussian { parameter, sharpness });
        }
        Err(Error::OutOfRange {
            what: "a sub-Gaussian parameter",
            value: parameter,
            expected: "a finite number from 0 up",
        })
    }

    pub(super) fn optimal(parameter: f64) -> Self {
        SubGaussian { parameter, sharpness: Sharpness::Optimal }
    }

    pub(super) fn upper_bound(parameter: f64) -> Self {
        SubGaussian { parameter, sharpness: Sharpness::UpperBound }
    }

    /// A proved parameter, optimal if its square meets a lower bound on σ² such as λ_max of the covariance.
    pub(super) fn against_lower_bound(parameter: f64, lower_bound_of_square: f64) -> Self {
        let square = parameter * parameter;
        // A square that underflows proves nothing.
        let comparable = parameter == 0.0 || square.is_normal();
        if comparable && lower_bound_of_square >= square * (1.0 - ROUNDING) {
            SubGaussian::optimal(parameter)
        } else {
            SubGaussian::upper_bound(parameter)
        }
    }
}

/// λ_max of a symmetric matrix that is positive semi-definite up to rounding.
pub(super) fn largest_eigenvalue(matrix: MatRef<'_, f64>) -> Option<f64> {
    let symmetric = linalg::symmetric_part(matrix);
    let eigen = linalg::SymmetricEigen::new("a covariance", symmetric.as_ref()).ok()?;
    eigen.values.last().map(|value| value.max(0.0))
}

/// λ_max of a covariance as a lower bound on σ²: zero where its squares underflow, nothing where they overflow.
pub(super) fn variance_from_below(covariance: Result<Mat<f64>>) -> Option<f64> {
    match covariance {
        Ok(covariance) => largest_eigenvalue(covariance.as_ref()),
        Err(Error::Underflow { .. }) => Some(0.0),
        Err(_) => None,
    }
}

/// Up to this many points all distances are compared.
const COMPARE_ALL: usize = 1024;

/// Steps of the enclosing ball beyond; each costs a pass over the points.
const BALL_STEPS: usize = 32;

/// Half the diameter of a set of points; for many points an upper bound, the radius of an enclosing ball.
///
/// Every centre gives a valid radius; the steps of Bădoiu and Clarkson, towards the farthest point by 1/(k + 1),
/// bring the centre near the best one, and the smallest radius met is kept. At most √2 too large in the limit.
pub(super) fn half_diameter(points: &[&[f64]]) -> f64 {
    let distance = |a: &[f64], b: &[f64]| linalg::norm(&linalg::difference(a, b));
    if points.len() <= COMPARE_ALL {
        let pairs = points.iter().enumerate().flat_map(|(i, a)| points[..i].iter().map(move |b| (a, b)));
        return pairs.fold(0.0, |widest: f64, (a, b)| widest.max(0.5 * distance(a, b)));
    }
    let mut centre = points[0].to_vec();
    let mut smallest = f64::INFINITY;
    for step in 1..=BALL_STEPS {
        let (mut radius, mut farthest) = (-1.0, points[0]);
        for point in points {
            let here = distance(point, &centre);
            if here > radius {
                (radius, farthest) = (here, point);
            }
        }
        smallest = smallest.min(radius);
        let towards = linalg::difference(farthest, &centre);
        linalg::add_scaled(&mut centre, 1.0 / (step as f64 + 1.0), &towards);
    }
    smallest
}
