//! In-context linear-regression tasks: covariance, noise and prior, in one dimension or several.

use super::head::{LARGEST_DIMENSION, matrix_schema};
use super::law;
use crate::tabulating::distinct;
use esscher_core::Mat;
use esscher_core::measure::{Affine, Gaussian, Law};
use esscher_core::numerics::linalg::{self, SymmetricEigen};
use esscher_core::regression::{LinearRegression, SpectralTask};
use esscher_lab::specification::{Bounds, Keys, Kind, Mistake, Section, choice, integers, own, real, reals};
use esscher_lab::{keys, named};
use serde_json::Value;
use std::sync::Arc;

named! {
    /// Laws of covariates of mean 0 and the covariance of the task.
    pub enum Covariates {
        /// N(0, Σ): risks are exact.
        Gaussian = "gaussian",
        /// Σ^{1/2} times independent signs.
        Rademacher = "rademacher",
        /// Σ^{1/2} times independent uniform coordinates of variance 1.
        Cube = "cube",
        /// Σ^{1/2} times a uniform point of the sphere of radius √d.
        Sphere = "sphere",
    }
}

impl Covariates {
    /// The law with the covariance of this task.
    pub fn law(self, task: &LinearRegression) -> esscher_core::Result<Law> {
        let dimension = task.dimension();
        let (base, deviation) = match self {
            Covariates::Gaussian => return Ok(Arc::new(Gaussian::centred(task.covariance())?)),
            Covariates::Rademacher => law::rademacher(dimension)?,
            Covariates::Cube => law::cube(dimension)?,
            Covariates::Sphere => law::sphere(dimension)?,
        };
        let root = SymmetricEigen::new("the covariance", task.covariance())?.map(f64::sqrt);
        if deviation == 1.0 && root == linalg::identity(dimension) {
            return Ok(base);
        }
        let matrix = Mat::from_fn(dimension, dimension, |i, j| root[(i, j)] / deviation);
        Ok(Arc::new(Affine::new(matrix.as_ref(), &vec![0.0; dimension], base)?))
    }
}

named! {
    /// How the covariance of a task is given.
    pub enum Shape {
        /// The identity.
        Isotropic = "isotropic",
        /// Σᵢⱼ = ρ^|i−j|.
        Toeplitz = "toeplitz",
        /// The identity, and more in one direction.
        Spiked = "spiked",
        /// Diagonal.
        Eigenvalues = "eigenvalues",
        /// Any.
        Matrix = "matrix",
    }
}

impl Shape {
    fn has_dimensions(self) -> bool {
        matches!(self, Shape::Isotropic | Shape::Toeplitz | Shape::Spiked)
    }
}

keys! {
    struct TaskKeys {
        /// The covariance Σ of the covariates.
        covariance: Shape = choice::<Shape>().or("isotropic"),
        /// Isotropic, toeplitz and spiked covariances: the dimensions, each run once.
        dimensions: Option<Vec<u64>> = integers(1..=LARGEST_DIMENSION as u64, 1..=100); if covariance.has_dimensions(),
        /// Toeplitz covariances: ρ in Σᵢⱼ = ρ^|i−j|.
        correlation: Option<f64> = real(Bounds::Between(-0.999, 0.999)).or(0.5); if covariance == Shape::Toeplitz,
        /// Spiked covariances: what one direction has more than the others.
        strength: Option<f64> = real(Bounds::Between(-0.999, 1e6)).or(1.0); if covariance == Shape::Spiked,
        /// The eigenvalues of a diagonal covariance.
        eigenvalues: Option<Vec<f64>> = reals(Bounds::Positive, 1..=LARGEST_DIMENSION);
            if covariance == Shape::Eigenvalues,
        /// The rows of the covariance.
        matrix: Option<Vec<Vec<f64>>> = own(|section, key| section.matrix(key, LARGEST_DIMENSION), matrix_schema());
            if covariance == Shape::Matrix,
        /// Variance of the labels' noise.
        noise: f64 = real(Bounds::Between(0.0, 1e6)).or(0.0),
        /// w ~ N(0, prior · I).
        prior: f64 = real(Bounds::Between(1e-6, 1e6)).or(1.0),
    }
}

/// In-context regression tasks, one for each dimension: the keys of a table `[task]`.
pub struct Tasks(pub Vec<LinearRegression>);

impl Keys for Tasks {
    fn read(table: &mut Section) -> Result<Self, Mistake> {
        TaskKeys::read(table)?.tasks(table).map(Tasks)
    }

    fn properties() -> Vec<(String, Value, bool)> {
        TaskKeys::properties()
    }
}

impl TaskKeys {
    fn tasks(self, table: &mut Section) -> Result<Vec<LinearRegression>, Mistake> {
        let given = self.dimensions.unwrap_or_default();
        if distinct(&given).len() < given.len() {
            return Err(table.mistake("dimensions", "a dimension is listed twice; list each once"));
        }
        let dimensions = given.into_iter().map(|dimension| dimension as usize);
        let rows = self.matrix.unwrap_or_default();
        let values = self.eigenvalues.unwrap_or_default();
        let (key, made): (_, esscher_core::Result<Vec<Mat<f64>>>) = match self.covariance {
            Shape::Isotropic => ("dimensions", Ok(dimensions.map(linalg::identity).collect())),
            Shape::Toeplitz => {
                let correlation = self.correlation.unwrap_or_default();
                ("correlation", dimensions.map(|d| LinearRegression::toeplitz(d, correlation)).collect())
            }
            Shape::Spiked => {
                let strength = self.strength.unwrap_or_default();
                ("strength", dimensions.map(|d| LinearRegression::spiked(d, strength)).collect())
            }
            Shape::Eigenvalues => {
                let entry = |i: usize, j: usize| if i == j { values[i] } else { 0.0 };
                ("eigenvalues", Ok(vec![Mat::from_fn(values.len(), values.len(), entry)]))
            }
            Shape::Matrix => {
                let columns = rows.first().map_or(0, Vec::len);
                ("matrix", Ok(vec![Mat::from_fn(rows.len(), columns, |i, j| rows[i][j])]))
            }
        };
        let task = |covariance: &Mat<f64>| {
            LinearRegression::new(covariance.as_ref())?.with_noise(self.noise)?.with_prior(self.prior)
        };
        let made = made.and_then(|covariances| covariances.iter().map(task).collect());
        table.accept(key, made)
    }
}

/// The scale α of the initial layer A = α I/√d, b = α.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InitialScale {
    /// α itself.
    Absolute(f64),
    /// This fraction of √2/(d^{1/4}‖Σ‖), below which the paper's theorem is proved.
    OfProved(f64),
}

impl InitialScale {
    /// α for this task.
    pub fn at(self, task: &SpectralTask) -> f64 {
        match self {
            InitialScale::Absolute(scale) => scale,
            InitialScale::OfProved(fraction) => fraction * task.proved_scale(),
        }
    }

    /// Seconds that softmax at one length is tabulated for beyond those of scores of size one, about: the scores of the
    /// initial layer grow like α, their tables have that many panels, and a panel has more nodes the larger they are. The two
    /// numbers fit what one core took at α from 1 to 1000.
    pub fn seconds_of_tables(self) -> f64 {
        let scale = match self {
            InitialScale::Absolute(scale) => scale,
            // Of covariances of size one.
            InitialScale::OfProved(fraction) => fraction * std::f64::consts::SQRT_2,
        };
        scale * (0.1 + 1.5e-3 * scale)
    }
}

keys! {
    struct ScaleKeys {
        /// The scale α of the initial layer A = α I/√d, b = α.
        initial_scale: Option<f64> = real(Bounds::Between(1e-6, 1e3)).optional(),
        /// α as this fraction of √2/(d^{1/4}‖Σ‖), below which the paper's theorem is proved.
        initial_fraction: Option<f64> = real(Bounds::Between(1e-6, 1e3)).or(0.5); if initial_scale.is_none();
            else "an `initial_scale` is given as well; give one of the two",
    }
}

impl Keys for InitialScale {
    fn read(section: &mut Section) -> Result<Self, Mistake> {
        let ScaleKeys { initial_scale, initial_fraction } = ScaleKeys::read(section)?;
        let of_proved = InitialScale::OfProved(initial_fraction.unwrap_or_default());
        Ok(initial_scale.map_or(of_proved, InitialScale::Absolute))
    }

    fn properties() -> Vec<(String, Value, bool)> {
        ScaleKeys::properties()
    }
}
