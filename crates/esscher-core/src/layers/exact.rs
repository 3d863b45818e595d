//! The softmax flow with V = I in closed form: S(t)⁻¹ = S(0)⁻¹ − t(U + Uᵀ).

use crate::error::{Error, Result};
use crate::measure::Gaussian;
use crate::numerics::{check, linalg};
use faer::{Mat, MatRef};

/// The covariance of dx/dt = softmax attention with V = I, for all times before it blows up.
///
/// With S(0) = RRᵀ and Rᵀ(U + Uᵀ)R = P diag(λ) Pᵀ,
///
/// S(t) = R (I − t Rᵀ(U + Uᵀ)R)⁻¹ Rᵀ = Σ_i (RP)_i (RP)_iᵀ / (1 − tλ_i),
///
/// so S(0) may be singular. A direction with λ_i > 0 grows and the largest blows up at t = 1/λ_max;
/// λ_i < 0 shrinks it like 1/t; λ_i = 0 leaves it alone.
#[derive(Debug, Clone)]
pub struct ExactFlow {
    /// RP, a column per growth.
    directions: Mat<f64>,
    /// λ, increasing.
    growths: Vec<f64>,
    /// |λ| below this is rounding.
    allowance: f64,
}

/// The exact covariance flow of softmax attention with V = I and score matrix U from N(m, S(0)).
///
/// ```
/// use esscher_core::layers::exact_softmax_flow;
/// use esscher_core::mat;
/// use esscher_core::measure::Gaussian;
/// let start = Gaussian::centred(mat![[4.0]].as_ref())?;
/// let exact = exact_softmax_flow(mat![[0.125]].as_ref(), &start)?;
/// assert_eq!(exact.blow_up_time(), Some(1.0));
/// assert!((exact.covariance(0.75)?[(0, 0)] - 16.0).abs() < 1e-12);
/// # Ok::<(), esscher_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Size`] and [`Error::NotFinite`] for the score matrix, [`Error::Overflow`] if λ exceeds double
/// precision.
pub fn exact_softmax_flow(score_matrix: MatRef<'_, f64>, start: &Gaussian) -> Result<ExactFlow> {
    let dimension = start.mean_vector().len();
    check::size("score matrix (rows)", dimension, score_matrix.nrows())?;
    check::size("score matrix (columns)", dimension, score_matrix.ncols())?;
    check::finite_matrix("score matrix", score_matrix)?;
    if start.root().ncols() == 0 {
        return Ok(ExactFlow { directions: Mat::zeros(dimension, 0), growths: vec![], allowance: 0.0 });
    }
    let half = start.root().transpose() * score_matrix * start.root();
    let generator = check::finite_matrix_result("Rᵀ(U + Uᵀ)R", &half + half.transpose())?;
    let eigen = linalg::SymmetricEigen::new("Rᵀ(U + Uᵀ)R", generator.as_ref())?;
    let allowance = check::eigenvalue_allowance(generator.as_ref());
    Ok(ExactFlow { directions: start.root() * &eigen.vectors, growths: eigen.values, allowance })
}

impl ExactFlow {
    /// 1/λ_max, or `None` if no direction grows.
    pub fn blow_up_time(&self) -> Option<f64> {
        let largest = self.growths.last().copied().unwrap_or(0.0);
        let time = 1.0 / largest;
        (largest > self.allowance && time.is_finite()).then_some(time)
    }

    /// The rank of lim S(t) as t → ∞, the number of λ_i equal to zero; `None` if the flow blows up first.
    pub fn limit_rank(&self) -> Option<usize> {
        match self.blow_up_time() {
            Some(_) => None,
            None => Some(self.growths.iter().filter(|growth| growth.abs() <= self.allowance).count()),
        }
    }

    /// S(t), for t before the blow-up; t may be negative.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if 1 − tλ is not positive for some λ: the flow blows up before t.
    pub fn covariance(&self, time: f64) -> Result<Mat<f64>> {
        check::finite_vector("time", &[time])?;
        let (rows, rank) = (self.directions.nrows(), self.growths.len());
        if self.growths.iter().any(|growth| 1.0 - time * growth <= 0.0) {
            let expected = "a time before the covariance blows up (see blow_up_time)";
            return Err(Error::OutOfRange { what: "time", value: time, expected });
        }
        let root =
            Mat::from_fn(rows, rank, |i, j| self.directions[(i, j)] / (1.0 - time * self.growths[j]).sqrt());
        check::finite_matrix_result("the covariance", &root * root.transpose())
    }
}
