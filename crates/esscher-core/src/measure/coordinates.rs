//! Laws with independent coordinates of one kind: the family states its one-dimensional law, this file does the rest.

use super::{Law, Measure, SubGaussian, Tilted, check_sampling, check_tilt};
use crate::error::Result;
use crate::numerics::{Stream, check};
use faer::Mat;
use std::fmt::Debug;
use std::sync::Arc;

/// A law on the line, known through its tilts; `Coordinates` of it live in Rᵈ.
pub(super) trait LineLaw: Debug + Clone + Send + Sync + 'static {
    fn family(&self) -> &'static str;
    /// Fails where Λ is infinite at entry `index` of the tilt.
    fn check_domain(&self, index: usize, tilt: f64) -> Result<()>;
    fn log_partition(&self, tilt: f64) -> f64;
    fn tilted_mean(&self, tilt: f64) -> f64;
    fn tilted_variance(&self, tilt: f64) -> f64;
    fn sample_tilted(&self, tilt: f64, stream: &mut Stream) -> f64;
    /// θ∇Λ(θ) − Λ(θ), where a family need not write it without the cancellation of large tilts.
    fn tilt_divergence(&self, tilt: f64) -> f64 {
        tilt * self.tilted_mean(tilt) - self.log_partition(tilt)
    }
    /// Λ(2θ) − 2Λ(θ); in the domain at θ and at 2θ.
    fn renyi_divergence(&self, tilt: f64) -> f64 {
        self.log_partition(2.0 * tilt) - 2.0 * self.log_partition(tilt)
    }
    /// The size of a coordinate.
    fn size(&self) -> f64 {
        1.0
    }
    /// The largest tilted variance, where it is finite and attained at tilt 0.
    fn largest_variance(&self) -> Option<f64> {
        None
    }
}

/// d independent coordinates with the same line law.
#[derive(Debug, Clone)]
pub(super) struct Coordinates<T> {
    dimension: usize,
    line: T,
}

impl<T: LineLaw> Coordinates<T> {
    pub(super) fn new(dimension: usize, line: T) -> Result<Self> {
        check::dimension(dimension)?;
        Ok(Coordinates { dimension, line })
    }

    fn check(&self, tilt: &[f64]) -> Result<()> {
        check_tilt(self.dimension, tilt)?;
        tilt.iter().enumerate().try_for_each(|(index, &entry)| self.line.check_domain(index, entry))
    }
}

impl<T: LineLaw> Measure for Coordinates<T> {
    fn family(&self) -> &'static str {
        self.line.family()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn log_partition(&self, tilt: &[f64]) -> Result<f64> {
        self.check(tilt)?;
        let value = tilt.iter().map(|&entry| self.line.log_partition(entry)).sum();
        check::finite_number("the log-partition", value)
    }

    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>> {
        self.check(tilt)?;
        let mean = tilt.iter().map(|&entry| self.line.tilted_mean(entry)).collect();
        check::finite_result("the tilted mean", mean)
    }

    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>> {
        check::matrix_dimension(self.dimension)?;
        self.check(tilt)?;
        let mut covariance = Mat::zeros(self.dimension, self.dimension);
        for (index, &entry) in tilt.iter().enumerate() {
            covariance[(index, index)] = self.line.tilted_variance(entry);
        }
        check::tilted_covariance_result(covariance, |_| self.line.size())
    }

    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        check_sampling(self.dimension, tilt, tokens)?;
        self.check(tilt)?;
        for token in tokens.chunks_exact_mut(self.dimension) {
            for (coordinate, &entry) in token.iter_mut().zip(tilt) {
                *coordinate = self.line.sample_tilted(entry, stream);
            }
        }
        check::finite_tokens(tokens)
    }

    fn tilted(&self, tilt: &[f64]) -> Result<Law> {
        Ok(Arc::new(Tilted::new(Arc::new(self.clone()), tilt)?))
    }

    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        self.check(tilt)?;
        sum_of_divergences(tilt, |entry| self.line.tilt_divergence(entry))
    }

    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        self.check(tilt)?;
        tilt.iter().enumerate().try_for_each(|(index, &entry)| self.line.check_domain(index, 2.0 * entry))?;
        sum_of_divergences(tilt, |entry| self.line.renyi_divergence(entry))
    }

    fn sub_gaussian(&self) -> Option<SubGaussian> {
        self.sub_gaussian_under_tilts().map(SubGaussian::optimal)
    }

    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        self.line.largest_variance().map(f64::sqrt)
    }
}

/// The divergence of independent coordinates; one that rounding made negative is zero.
fn sum_of_divergences(tilt: &[f64], of_entry: impl Fn(f64) -> f64) -> Result<f64> {
    // Written so that a NaN is not passed over.
    let divergences =
        tilt.iter().map(|&entry| of_entry(entry)).map(|found| if found < 0.0 { 0.0 } else { found });
    check::finite_number("the divergence of the tilt", divergences.sum())
}

/// Lets a public family be its `Coordinates` in everything but the name.
macro_rules! measure_with_independent_coordinates {
    ($family:ty) => {
        impl $crate::measure::Measure for $family {
            fn family(&self) -> &'static str {
                self.0.family()
            }
            fn dimension(&self) -> usize {
                self.0.dimension()
            }
            fn log_partition(&self, tilt: &[f64]) -> $crate::Result<f64> {
                self.0.log_partition(tilt)
            }
            fn tilted_mean(&self, tilt: &[f64]) -> $crate::Result<Vec<f64>> {
                self.0.tilted_mean(tilt)
            }
            fn tilted_covariance(&self, tilt: &[f64]) -> $crate::Result<faer::Mat<f64>> {
                self.0.tilted_covariance(tilt)
            }
            fn sample_tilted(
                &self,
                tilt: &[f64],
                stream: &mut $crate::numerics::Stream,
                tokens: &mut [f64],
            ) -> $crate::Result<()> {
                self.0.sample_tilted(tilt, stream, tokens)
            }
            fn tilted(&self, tilt: &[f64]) -> $crate::Result<$crate::measure::Law> {
                self.0.tilted(tilt)
            }
            fn tilt_divergence(&self, tilt: &[f64]) -> $crate::Result<f64> {
                self.0.tilt_divergence(tilt)
            }
            fn renyi_divergence(&self, tilt: &[f64]) -> $crate::Result<f64> {
                self.0.renyi_divergence(tilt)
            }
            fn sub_gaussian(&self) -> Option<$crate::measure::SubGaussian> {
                self.0.sub_gaussian()
            }
            fn sub_gaussian_under_tilts(&self) -> Option<f64> {
                self.0.sub_gaussian_under_tilts()
            }
        }
    };
}
pub(super) use measure_with_independent_coordinates;
