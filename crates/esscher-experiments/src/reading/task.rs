//! An in-context linear-regression task: covariance, noise and prior, in one dimension or several.

use super::head::LARGEST_DIMENSION;
use esscher_core::Mat;
use esscher_core::measure::{Affine, Cube, Gaussian, Law, Rademacher, Sphere};
use esscher_core::numerics::linalg::{self, SymmetricEigen};
use esscher_core::regression::{LinearRegression, SpectralTask};
use esscher_lab::specification::{Bounds, Mistake, Section};
use std::sync::Arc;

/// Laws of covariates of mean 0 and the covariance of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covariates {
    /// N(0, Σ): risks are exact.
    Gaussian,
    /// Σ^{1/2} times independent signs.
    Rademacher,
    /// Σ^{1/2} times independent uniform coordinates of variance 1.
    Cube,
    /// Σ^{1/2} times a uniform point of the sphere of radius √d.
    Sphere,
}

/// As specifications name them.
pub const COVARIATES: &[(&str, Covariates)] = &[
    ("gaussian", Covariates::Gaussian),
    ("rademacher", Covariates::Rademacher),
    ("cube", Covariates::Cube),
    ("sphere", Covariates::Sphere),
];

impl Covariates {
    /// As specifications name it.
    pub fn name(self) -> &'static str {
        COVARIATES.iter().find(|(_, covariates)| *covariates == self).map_or("gaussian", |(name, _)| name)
    }

    /// The law with the covariance of this task.
    ///
    /// # Errors
    /// What the law refuses.
    pub fn law(self, task: &LinearRegression) -> esscher_core::Result<Law> {
        let dimension = task.dimension();
        let (base, deviation): (Law, f64) = match self {
            Covariates::Gaussian => return Ok(Arc::new(Gaussian::centred(task.covariance())?)),
            Covariates::Rademacher => (Arc::new(Rademacher::new(dimension)?), 1.0),
            Covariates::Cube => (Arc::new(Cube::new(dimension)?), 1.0 / 3.0_f64.sqrt()),
            Covariates::Sphere => (Arc::new(Sphere::new(dimension, (dimension as f64).sqrt())?), 1.0),
        };
        let root = SymmetricEigen::new("the covariance", task.covariance())?.map(f64::sqrt);
        if deviation == 1.0 && root == linalg::identity(dimension) {
            return Ok(base);
        }
        let matrix = Mat::from_fn(dimension, dimension, |i, j| root[(i, j)] / deviation);
        Ok(Arc::new(Affine::new(matrix.as_ref(), &vec![0.0; dimension], base)?))
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Isotropic,
    Toeplitz,
    Spiked,
    Eigenvalues,
    Matrix,
}

const SHAPES: &[(&str, Shape)] = &[
    ("isotropic", Shape::Isotropic),
    ("toeplitz", Shape::Toeplitz),
    ("spiked", Shape::Spiked),
    ("eigenvalues", Shape::Eigenvalues),
    ("matrix", Shape::Matrix),
];

/// Reads tasks from an open table, one per dimension: `covariance` (isotropic, toeplitz, spiked, eigenvalues, matrix),
/// `noise` (variance of the labels' noise) and `prior` (w ~ N(0, prior · I)).
///
/// Isotropic, toeplitz (`correlation`) and spiked (`strength`) covariances take `dimensions`, a list; the others are
/// given by `eigenvalues` or by `matrix`, which fix the dimension.
///
/// # Errors
/// A covariance that is not positive definite, dimensions twice.
pub fn tasks(table: &mut Section) -> Result<Vec<LinearRegression>, Mistake> {
    let shape = table.choice("covariance", SHAPES, Some("isotropic"))?;
    let covariances: Vec<Mat<f64>> = match shape {
        Shape::Isotropic => dimensions(table)?.into_iter().map(linalg::identity).collect(),
        Shape::Toeplitz => {
            let dimensions = dimensions(table)?;
            let correlation = table.real("correlation", Bounds::Between(-0.999, 0.999), Some(0.5))?;
            let made: Result<Vec<_>, _> = dimensions
                .into_iter()
                .map(|dimension| LinearRegression::toeplitz(dimension, correlation))
                .collect();
            table.accept("correlation", made)?
        }
        Shape::Spiked => {
            let dimensions = dimensions(table)?;
            let strength = table.real("strength", Bounds::Between(-0.999, 1e6), Some(1.0))?;
            let made: Result<Vec<_>, _> = dimensions
                .into_iter()
                .map(|dimension| LinearRegression::spiked(dimension, strength))
                .collect();
            table.accept("strength", made)?
        }
        Shape::Eigenvalues => {
            let values = table.reals("eigenvalues", Bounds::Positive, 1..=LARGEST_DIMENSION, None)?;
            vec![Mat::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { 0.0 })]
        }
        Shape::Matrix => {
            let rows = table.matrix("matrix", LARGEST_DIMENSION)?;
            vec![Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])]
        }
    };
    let noise = table.real("noise", Bounds::Between(0.0, 1e6), Some(0.0))?;
    let prior = table.real("prior", Bounds::Between(1e-6, 1e6), Some(1.0))?;
    let key = match shape {
        Shape::Isotropic => "dimensions",
        Shape::Toeplitz => "correlation",
        Shape::Spiked => "strength",
        Shape::Eigenvalues => "eigenvalues",
        Shape::Matrix => "matrix",
    };
    covariances
        .iter()
        .map(|covariance| {
            let made = LinearRegression::new(covariance.as_ref())
                .and_then(|task| task.with_noise(noise))
                .and_then(|task| task.with_prior(prior));
            table.accept(key, made)
        })
        .collect()
}

fn dimensions(table: &mut Section) -> Result<Vec<usize>, Mistake> {
    let given = table.integers("dimensions", 1..=LARGEST_DIMENSION as u64, 1..=100, None)?;
    let mut seen = given.clone();
    seen.sort_unstable();
    seen.dedup();
    if seen.len() < given.len() {
        return Err(table.mistake("dimensions", "a dimension stands twice; each is run once"));
    }
    Ok(given.into_iter().map(|dimension| dimension as usize).collect())
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
}

/// Reads `initial_scale = 0.5`, or `initial_fraction = 0.5` of the proved bound, which is the default.
///
/// # Errors
/// Both, or numbers that are not positive.
pub fn initial_scale(section: &mut Section) -> Result<InitialScale, Mistake> {
    match (section.form("initial_scale"), section.form("initial_fraction")) {
        (Some(_), Some(_)) => {
            Err(section
                .mistake("initial_fraction", "an `initial_scale` is given as well; give one of the two"))
        }
        (Some(_), None) => {
            section.real("initial_scale", Bounds::Between(1e-6, 1e3), None).map(InitialScale::Absolute)
        }
        (None, _) => section
            .real("initial_fraction", Bounds::Between(1e-6, 1e3), Some(0.5))
            .map(InitialScale::OfProved),
    }
}
