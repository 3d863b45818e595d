//! Gaussian N(m, G): Λ(θ) = ⟨θ, m⟩ + θᵀGθ/2, the one family whose attention is linear in the query.

use super::sub_gaussian::{SubGaussian, largest_eigenvalue};
use super::{GaussianComponent, Law, Measure, Radial, check_sampling, check_tilt};
use crate::error::{Error, Result};
use crate::numerics::radius::RadiusLaw;
use crate::numerics::{Stream, check, linalg};
use faer::{Mat, MatRef};
use std::sync::Arc;

/// The normal law N(m, G); G may be singular, even zero (an atom at m).
///
/// Tilting moves the mean and keeps the covariance: N(m, G) tilted by θ is N(m + Gθ, G).
///
/// ```
/// use esscher_core::measure::{Gaussian, Measure};
/// use esscher_core::mat;
/// let tokens = Gaussian::new(&[1.0, 0.0], mat![[2.0, 0.5], [0.5, 1.0]].as_ref())?;
/// assert_eq!(tokens.tilted_mean(&[1.0, 1.0])?, [3.5, 1.5]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Gaussian {
    mean: Vec<f64>,
    covariance: Mat<f64>,
    /// d × rank matrix R with R Rᵀ = G.
    root: Mat<f64>,
}

/// Tokens whose normals are drawn together.
const TOKENS_AT_ONCE: usize = 256;

impl Gaussian {
    /// N(mean, covariance).
    ///
    /// # Errors
    /// [`Error::Size`], [`Error::NotFinite`], [`Error::NotSymmetric`] and [`Error::Indefinite`] name the
    /// offending entry or eigenvalue; asymmetry and negative eigenvalues at rounding level are absorbed.
    pub fn new(mean: &[f64], covariance: MatRef<'_, f64>) -> Result<Self> {
        check::at_least_one("the dimension of a Gaussian", mean.len())?;
        check::finite_vector("mean", mean)?;
        check::size("covariance (rows)", mean.len(), covariance.nrows())?;
        check::size("covariance (columns)", mean.len(), covariance.ncols())?;
        let covariance = check::symmetric("covariance", covariance)?;
        let root = root_of(covariance.as_ref())?;
        Ok(Gaussian { mean: mean.to_vec(), covariance, root })
    }

    /// N(0, I) in dimension d.
    pub fn standard(dimension: usize) -> Result<Self> {
        check::matrix_dimension(dimension)?;
        Gaussian::centred(linalg::identity(dimension).as_ref())
    }

    /// N(0, covariance).
    pub fn centred(covariance: MatRef<'_, f64>) -> Result<Self> {
        Gaussian::new(&vec![0.0; covariance.nrows()], covariance)
    }

    /// The law of 2ᵉz: no digit is lost as long as nothing leaves the doubles.
    pub(crate) fn times_power_of_two(&self, exponent: i32) -> Self {
        Gaussian {
            mean: linalg::times_power_of_two(&self.mean, exponent),
            covariance: linalg::matrix_times_power_of_two(self.covariance.as_ref(), 2 * exponent),
            root: linalg::matrix_times_power_of_two(self.root.as_ref(), exponent),
        }
    }

    /// The mean m.
    pub fn mean_vector(&self) -> &[f64] {
        &self.mean
    }

    /// The covariance G.
    pub fn covariance_matrix(&self) -> MatRef<'_, f64> {
        self.covariance.as_ref()
    }

    /// A d × rank matrix R with R Rᵀ = G.
    pub fn root(&self) -> MatRef<'_, f64> {
        self.root.as_ref()
    }
}

impl Measure for Gaussian {
    fn family(&self) -> &'static str {
        "Gaussian"
    }

    fn dimension(&self) -> usize {
        self.mean.len()
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension(), tilt)?;
        let whitened = linalg::apply_transpose(self.root.as_ref(), tilt);
        let value = linalg::dot(tilt, &self.mean) + 0.5 * linalg::squared_norm(&whitened);
        check::finite_number("the log-partition", value)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension(), tilt)?;
        let shift = linalg::apply(self.covariance.as_ref(), tilt);
        check::finite_result("the tilted mean", linalg::sum(&self.mean, &shift))
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check_tilt(self.dimension(), tilt)?;
        Ok(self.covariance.clone())
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension(), tilt, tokens)?;
        let mean = self.tilted_mean(tilt)?;
        let rank = self.root.ncols();
        if let Some(scales) = diagonal(&self.root) {
            stream.fill_normals(tokens);
            for token in tokens.chunks_exact_mut(mean.len()) {
                for ((entry, mean), scale) in token.iter_mut().zip(&mean).zip(&scales) {
                    *entry = mean + scale * *entry;
                }
            }
            return check::finite_tokens(tokens);
        }
        let mut normals = vec![0.0; TOKENS_AT_ONCE * rank];
        for tokens in tokens.chunks_mut(TOKENS_AT_ONCE * mean.len()) {
            let count = tokens.len() / mean.len();
            stream.fill_normals(&mut normals[..count * rank]);
            for (index, token) in tokens.chunks_exact_mut(mean.len()).enumerate() {
                token.copy_from_slice(&mean);
                for (axis, &normal) in normals[index * rank..(index + 1) * rank].iter().enumerate() {
                    linalg::add_scaled(token, normal, self.root.col_as_slice(axis));
                }
            }
        }
        check::finite_tokens(tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        Ok(Arc::new(Gaussian { mean: self.tilted_mean(tilt)?, ..self.clone() }))
    }

    /// θᵀGθ/2: the mean, however large, does not enter.
    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        Ok(0.5 * self.renyi_divergence(tilt)?)
    }

    /// θᵀGθ.
    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension(), tilt)?;
        let whitened = linalg::apply_transpose(self.root.as_ref(), tilt);
        check::finite_number("the divergence of the tilt", linalg::squared_norm(&whitened))
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        Some(vec![GaussianComponent { log_weight: 0.0, gaussian: self.clone() }])
    }

    fn as_radial(&self) -> Option<Radial> {
        Some(Radial {
            centre: self.mean.clone(),
            root: self.root.clone(),
            radius: RadiusLaw::Chi { degrees: self.root.ncols() },
        })
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        self.sub_gaussian_under_tilts().map(SubGaussian::optimal)
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        largest_eigenvalue(self.covariance.as_ref()).map(f64::sqrt)
    }
}

/// The diagonal of a square matrix that has nothing else.
fn diagonal(matrix: &Mat<f64>) -> Option<Vec<f64>> {
    let is_diagonal = matrix.nrows() == matrix.ncols()
        && (0..matrix.ncols()).all(|j| (0..matrix.nrows()).all(|i| i == j || matrix[(i, j)] == 0.0));
    is_diagonal.then(|| (0..matrix.nrows()).map(|i| matrix[(i, i)]).collect())
}

/// R with R Rᵀ = G and a column for each direction in which G has variance.
fn root_of(covariance: MatRef<'_, f64>) -> Result<Mat<f64>> {
    if let Some(root) = root_by_correlations(covariance) {
        return Ok(root);
    }
    // The correlations make no sense: G is indefinite, or only rounding has made it so.
    let eigen = linalg::SymmetricEigen::new("covariance", covariance)?;
    let allowance = check::eigenvalue_allowance(covariance);
    if eigen.values[0] < -allowance {
        return Err(Error::Indefinite { what: "covariance", eigenvalue: eigen.values[0], allowance });
    }
    check::finite_matrix_result("the root of the covariance", eigen_root(&eigen, 0.0))
}

/// diag(s) times a root of the correlation matrix, sᵢ² = Gᵢᵢ; none if that matrix has a negative eigenvalue.
///
/// Correlations have no units: a variance of 1 beside one of 10¹³ (or 10³⁰⁰) keeps all its digits, where the
/// eigenvalues of G itself would lose it in the rounding of the largest. A direction is dropped only if the
/// rounding of the correlations, d · ε, could have made it.
fn root_by_correlations(covariance: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let dimension = covariance.nrows();
    let deviations: Vec<f64> = (0..dimension).map(|i| covariance[(i, i)].sqrt()).collect();
    let correlations = Mat::from_fn(dimension, dimension, |i, j| match covariance[(i, j)] {
        // A coordinate without variance has no correlation either.
        0.0 => 0.0,
        _ if i == j => 1.0,
        entry => entry / deviations[i] / deviations[j],
    });
    let eigen = linalg::SymmetricEigen::new("correlations", correlations.as_ref()).ok()?;
    if eigen.values[0] < -check::eigenvalue_allowance(correlations.as_ref()) {
        return None;
    }
    let root = eigen_root(&eigen, dimension as f64 * f64::EPSILON);
    let scaled = Mat::from_fn(dimension, root.ncols(), |i, j| deviations[i] * root[(i, j)]);
    check::finite_matrix("root", scaled.as_ref()).is_ok().then_some(scaled)
}

/// Q diag(√λ) over the eigenvalues above `dropped`.
fn eigen_root(eigen: &linalg::SymmetricEigen, dropped: f64) -> Mat<f64> {
    let size = eigen.values.len();
    let first = eigen.values.iter().take_while(|&&value| value <= dropped).count();
    Mat::from_fn(size, size - first, |i, j| eigen.vectors[(i, first + j)] * eigen.values[first + j].sqrt())
}
