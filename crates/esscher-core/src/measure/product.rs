//! Independent product μ₁ ⊗ μ₂ ⊗ …: coordinates side by side, log-partitions add.

use super::mixture::MAX_COMPONENTS;
use super::{Gaussian, GaussianComponent, Law, Measure, Sharpness, SubGaussian, check_sampling, check_tilt};
use crate::error::Result;
use crate::numerics::{Stream, check};
use faer::Mat;
use std::sync::Arc;

/// The law of (z₁, z₂, …) with independent zⱼ of given laws.
///
/// ```
/// use esscher_core::measure::{Gaussian, Measure, Product, Rademacher};
/// use std::sync::Arc;
/// let tokens = Product::new(vec![Arc::new(Gaussian::standard(1)?), Arc::new(Rademacher::new(1)?)])?;
/// assert_eq!(tokens.tilted_mean(&[2.0, 2.0])?, [2.0, 2f64.tanh()]);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Product {
    factors: Vec<Law>,
}

impl Product {
    /// The independent product of these laws, in this order.
    pub fn new(factors: Vec<Law>) -> Result<Self> {
        check::not_empty("the list of factors", factors.len())?;
        Ok(Product { factors })
    }

    /// Each factor with its part of a vector laid out like a token.
    fn parts<'a>(&'a self, vector: &'a [f64]) -> impl Iterator<Item = (&'a Law, &'a [f64])> {
        self.factors.iter().scan(0, move |start, factor| {
            let end = *start + factor.dimension();
            let part = &vector[*start..end];
            *start = end;
            Some((factor, part))
        })
    }
}

impl Measure for Product {
    fn family(&self) -> &'static str {
        "product measure"
    }

    fn dimension(&self) -> usize {
        self.factors.iter().map(|factor| factor.dimension()).sum()
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension(), tilt)?;
        let value = self.parts(tilt).map(|(factor, part)| factor.log_partition(part)).sum::<Result<f64>>()?;
        check::finite_number("the log-partition", value)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        check_tilt(self.dimension(), tilt)?;
        let means: Vec<_> =
            self.parts(tilt).map(|(factor, part)| factor.tilted_mean(part)).collect::<Result<_>>()?;
        Ok(means.concat())
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check_tilt(self.dimension(), tilt)?;
        check::matrix_dimension(self.dimension())?;
        let blocks: Vec<_> =
            self.parts(tilt).map(|(factor, part)| factor.tilted_covariance(part)).collect::<Result<_>>()?;
        Ok(block_diagonal(&blocks))
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension(), tilt, tokens)?;
        for token in tokens.chunks_exact_mut(self.dimension()) {
            let mut rest = token;
            for (factor, part) in self.parts(tilt) {
                let (here, after) = rest.split_at_mut(part.len());
                factor.sample_tilted(part, stream, here)?;
                rest = after;
            }
        }
        Ok(())
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        check_tilt(self.dimension(), tilt)?;
        let factors = self.parts(tilt).map(|(factor, part)| factor.tilted(part)).collect::<Result<_>>()?;
        Ok(Arc::new(Product { factors }))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension(), tilt)?;
        let sum = self.parts(tilt).map(|(factor, part)| factor.tilt_divergence(part)).sum::<Result<f64>>()?;
        check::finite_number("the divergence of the tilt", sum)
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        check_tilt(self.dimension(), tilt)?;
        let sum =
            self.parts(tilt).map(|(factor, part)| factor.renyi_divergence(part)).sum::<Result<f64>>()?;
        check::finite_number("the divergence of the tilt", sum)
    }

    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        // (log-weight, mean, covariance blocks) of every choice of one component from each factor.
        let mut partial = vec![(0.0, Vec::new(), Vec::new())];
        for factor in &self.factors {
            let components = factor.as_gaussian_mixture()?;
            // Each factor offers at most as many, so the product of two does not overflow.
            if partial.len() * components.len() > MAX_COMPONENTS {
                return None;
            }
            partial = partial
                .iter()
                .flat_map(|(log_weight, mean, blocks): &(f64, Vec<f64>, Vec<Mat<f64>>)| {
                    components.iter().map(move |component| {
                        let mean = [mean.as_slice(), component.gaussian.mean_vector()].concat();
                        let mut blocks = blocks.clone();
                        blocks.push(component.gaussian.covariance_matrix().to_owned());
                        (log_weight + component.log_weight, mean, blocks)
                    })
                })
                .collect();
        }
        partial
            .into_iter()
            .map(|(log_weight, mean, blocks)| {
                let gaussian = Gaussian::new(&mean, block_diagonal(&blocks).as_ref()).ok()?;
                Some(GaussianComponent { log_weight, gaussian })
            })
            .collect()
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        let factors: Vec<SubGaussian> =
            self.factors.iter().map(|factor| factor.sub_gaussian()).collect::<Option<_>>()?;
        let parameter = factors.iter().fold(0.0, |largest: f64, factor| largest.max(factor.parameter));
        // One optimal factor with the largest parameter is enough: tilts of that factor alone attain it.
        let attained = factors
            .iter()
            .any(|factor| factor.parameter == parameter && factor.sharpness == Sharpness::Optimal);
        Some(if attained { SubGaussian::optimal(parameter) } else { SubGaussian::upper_bound(parameter) })
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        self.factors
            .iter()
            .map(|factor| factor.sub_gaussian_under_tilts())
            .try_fold(0.0, |largest: f64, parameter| Some(largest.max(parameter?)))
    }
}

fn block_diagonal(blocks: &[Mat<f64>]) -> Mat<f64> {
    let dimension = blocks.iter().map(|block| block.nrows()).sum();
    let mut matrix = Mat::zeros(dimension, dimension);
    let mut start = 0;
    for block in blocks {
        let size = block.nrows();
        matrix.as_mut().submatrix_mut(start, start, size, size).copy_from(block);
        start += size;
    }
    matrix
}
