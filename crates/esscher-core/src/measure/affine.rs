//! Push-forward of a measure by an affine map: the law of Az + b has Λ(t) = ⟨t, b⟩ + Λ_z(Aᵀt).

use super::sub_gaussian::{SubGaussian, largest_eigenvalue, variance_from_below};
use super::{Gaussian, GaussianComponent, Law, Measure, Radial, check_sampling, check_tilt};
use crate::error::Result;
use crate::numerics::{Stream, check, linalg};
use faer::{Mat, MatRef};
use std::sync::Arc;

/// The law of A z + b for z of a given law.
///
/// ```
/// use esscher_core::measure::{Affine, Measure, Rademacher};
/// use esscher_core::mat;
/// use std::sync::Arc;
/// let signs = Arc::new(Rademacher::new(1)?);
/// let tokens = Affine::new(mat![[3.0]].as_ref(), &[1.0], signs)?; // −2 or 4
/// assert_eq!(tokens.mean()?, [1.0]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Affine {
    matrix: Mat<f64>,
    shift: Vec<f64>,
    base: Law,
}

impl Affine {
    /// The law of `matrix` · z + `shift`.
    pub fn new(matrix: MatRef<'_, f64>, shift: &[f64], base: Law) -> Result<Self> {
        check::at_least_one("the dimension of the shift", shift.len())?;
        check::size("the matrix (columns)", base.dimension(), matrix.ncols())?;
        check::size("the matrix (rows)", shift.len(), matrix.nrows())?;
        check::finite_matrix("matrix", matrix)?;
        check::finite_vector("shift", shift)?;
        Ok(Affine { matrix: matrix.to_owned(), shift: shift.to_vec(), base })
    }

    /// The law of `factor` · z.
    pub fn scaled(factor: f64, base: Law) -> Result<Self> {
        let dimension = base.dimension();
        check::matrix_dimension(dimension)?;
        let matrix = Mat::from_fn(dimension, dimension, |i, j| if i == j { factor } else { 0.0 });
        Affine::new(matrix.as_ref(), &vec![0.0; dimension], base)
    }

    /// Aᵀt, the tilt of the base that this tilt amounts to.
    fn base_tilt(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension(), tilt)?;
        check::finite_result(
            "the tilt of the base measure",
            linalg::apply_transpose(self.matrix.as_ref(), tilt),
        )
    }

    /// ‖A‖, the largest singular value.
    fn operator_norm(&self) -> Option<f64> {
        // Scaled by its largest entry, so that the squares neither overflow nor vanish.
        let scale = check::largest_entry(self.matrix.as_ref());
        if scale == 0.0 {
            return Some(0.0);
        }
        let (rows, columns) = self.matrix.shape();
        let scaled = Mat::from_fn(rows, columns, |i, j| self.matrix[(i, j)] / scale);
        let gram = if rows < columns { &scaled * scaled.transpose() } else { scaled.transpose() * &scaled };
        largest_eigenvalue(gram.as_ref()).map(|value| scale * value.sqrt()).filter(|norm| norm.is_finite())
    }

    /// A G Aᵀ.
    fn pushed_covariance(&self, covariance: MatRef<'_, f64>) -> Result<Mat<f64>> {
        check::tilted_covariance_result(&self.matrix * covariance * self.matrix.transpose(), |row| {
            (0..covariance.nrows())
                .map(|index| self.matrix[(row, index)].abs() * covariance[(index, index)].sqrt())
                .fold(0.0, f64::max)
        })
    }

    fn push(&self, vector: &[f64]) -> Vec<f64> {
        linalg::sum(&self.shift, &linalg::apply(self.matrix.as_ref(), vector))
    }
}

impl Measure for Affine {
    fn family(&self) -> &'static str {
        "affine push-forward"
    }

    fn dimension(&self) -> usize {
        self.shift.len()
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        let value = self.base.log_partition(&self.base_tilt(tilt)?)? + linalg::dot(tilt, &self.shift);
        check::finite_number("the log-partition", value)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        let mean = self.base.tilted_mean(&self.base_tilt(tilt)?)?;
        check::finite_result("the tilted mean", self.push(&mean))
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        let covariance = self.base.tilted_covariance(&self.base_tilt(tilt)?)?;
        self.pushed_covariance(covariance.as_ref())
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension(), tilt, tokens)?;
        let base_tilt = self.base_tilt(tilt)?;
        let mut base_tokens = vec![0.0; tokens.len() / self.dimension() * self.base.dimension()];
        self.base.sample_tilted(&base_tilt, stream, &mut base_tokens)?;
        for (token, base_token) in
            tokens.chunks_exact_mut(self.dimension()).zip(base_tokens.chunks_exact(self.base.dimension()))
        {
            token.copy_from_slice(&self.push(base_token));
        }
        check::finite_tokens(tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        let base = self.base.tilted(&self.base_tilt(tilt)?)?;
        Ok(Arc::new(Affine { base, ..self.clone() }))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        self.base.tilt_divergence(&self.base_tilt(tilt)?)
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        self.base.renyi_divergence(&self.base_tilt(tilt)?)
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        let push = |component: GaussianComponent| {
            let covariance = self.pushed_covariance(component.gaussian.covariance_matrix()).ok()?;
            let mean = self.push(component.gaussian.mean_vector());
            let gaussian = Gaussian::new(&mean, linalg::symmetric_part(covariance.as_ref()).as_ref()).ok()?;
            Some(GaussianComponent { log_weight: component.log_weight, gaussian })
        };
        self.base.as_gaussian_mixture()?.into_iter().map(push).collect()
    }

    fn as_radial(&self) -> Option<Radial> {
        let Radial { centre, root, radius } = self.base.as_radial()?;
        Some(Radial {
            centre: check::finite_result("the centre", self.push(&centre)).ok()?,
            root: check::finite_matrix_result("the root", &self.matrix * root).ok()?,
            radius,
        })
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        if let Some([single]) = self.as_gaussian_mixture().as_deref() {
            return single.gaussian.sub_gaussian();
        }
        let parameter = self.operator_norm()? * self.base.sub_gaussian()?.parameter;
        if !parameter.is_finite() {
            return None;
        }
        let variance = variance_from_below(self.covariance())?;
        Some(SubGaussian::against_lower_bound(parameter, variance))
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        if let Some([single]) = self.as_gaussian_mixture().as_deref() {
            return single.gaussian.sub_gaussian_under_tilts();
        }
        Some(self.operator_norm()? * self.base.sub_gaussian_under_tilts()?)
            .filter(|parameter| parameter.is_finite())
    }
}
