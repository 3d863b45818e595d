//! Probability measures on Rᵈ and their exponential tilts: what tokens and queries are drawn from.
//!
//! For a measure μ and a *tilt* θ ∈ Rᵈ, the log-partition is Λ(θ) = log E_μ exp⟨θ, z⟩, and the tilted
//! (Esscher-transformed) measure μ_θ has density exp(⟨θ, z⟩ − Λ(θ)) with respect to μ. Softmax
//! attention is the mean of a tilted measure, so these few functions are all that attention needs.
//!
//! # Laws
//! Every measure obeys them; [`laws::check_laws`] checks them on any implementation:
//! - Λ(0) = 0 and Λ is convex;
//! - ∇Λ(θ) is the mean of μ_θ, ∇²Λ(θ) its covariance, which is positive semi-definite;
//! - means at many tilts are the means at each;
//! - tilting is a group action: tilting by a, then by b, is tilting by a + b;
//! - push-forward: the law of Az + b has log-partition ⟨t, b⟩ + Λ(Aᵀt);
//! - independent product: log-partitions add;
//! - a token drawn from μ_θ has mean ∇Λ(θ).

mod affine;
mod coordinates;
mod cube;
mod custom;
mod definition;
mod divergence;
mod empirical;
mod gaussian;
mod laplace;
pub mod laws;
mod mixture;
mod product;
mod prompt;
mod rademacher;
mod sphere;
mod sub_gaussian;
mod tilted;

pub use affine::Affine;
pub use cube::Cube;
pub use custom::Custom;
pub use definition::tilted_mean_by_definition;
pub use empirical::Empirical;
pub use gaussian::Gaussian;
pub use laplace::Laplace;
pub use mixture::{GaussianComponent, Mixture};
pub use product::Product;
pub use prompt::Prompt;
pub use rademacher::Rademacher;
pub use sphere::Sphere;
pub use sub_gaussian::{Sharpness, SubGaussian};
pub use tilted::Tilted;

use crate::error::Result;
use crate::numerics::radius::RadiusLaw;
use crate::numerics::{Stream, check, linalg};
use faer::Mat;
use rayon::prelude::*;
use std::fmt::Debug;
use std::sync::Arc;

/// A shared measure of any family: what mixtures, specifications and Python hold.
pub type Law = Arc<dyn Measure>;

/// A probability measure on Rᵈ, known through its exponential tilts.
///
/// Every method takes the tilt θ, so a tilted measure costs nothing to describe. Methods fail with
/// [`crate::Error::Size`] if θ has the wrong dimension, [`crate::Error::NotFinite`] if an entry is not
/// finite, [`crate::Error::OutsideDomain`] where Λ is infinite and [`crate::Error::Overflow`] where
/// the answer exceeds double precision: NaN and infinity are never handed on.
///
/// The module documentation lists the laws that implementations obey.
pub trait Measure: Debug + Send + Sync {
    /// The name of the family, as error messages print it.
    fn family(&self) -> &'static str;

    /// d, the dimension of a token.
    fn dimension(&self) -> usize;

    /// Λ(θ) = log E exp⟨θ, z⟩.
    fn log_partition(&self, tilt: &[f64]) -> Result<f64>;

    /// ∇Λ(θ), the mean of the tilted measure.
    fn tilted_mean(&self, tilt: &[f64]) -> Result<Vec<f64>>;

    /// ∇Λ at many tilts, which lie one after the other, as the means do that are returned.
    ///
    /// The same as [`tilted_mean`](Self::tilted_mean) of each, up to rounding. The default asks for one after the
    /// other on all threads; prompts read their tokens once for many tilts.
    fn tilted_means(&self, tilts: &[f64]) -> Result<Vec<f64>> {
        check::whole_tokens(self.dimension(), tilts.len())?;
        let tilts = tilts.par_chunks_exact(self.dimension());
        let means: Vec<Vec<f64>> = tilts.map(|tilt| self.tilted_mean(tilt)).collect::<Result<_>>()?;
        Ok(means.concat())
    }

    /// ∇²Λ(θ), the covariance of the tilted measure.
    fn tilted_covariance(&self, tilt: &[f64]) -> Result<Mat<f64>>;

    /// Draws independent tokens from the tilted measure into `tokens`, one token after the other.
    ///
    /// The tokens depend on the measure, the tilt and the stream only. The length of `tokens` must be
    /// a multiple of d.
    fn sample_tilted(&self, tilt: &[f64], stream: &mut Stream, tokens: &mut [f64]) -> Result<()>;

    /// The tilted measure itself, in the same family where the family is closed under tilting.
    fn tilted(&self, tilt: &[f64]) -> Result<Law>;

    /// The measure as a finite mixture of Gaussians and atoms, where it is one: such measures have an
    /// exact finite-prompt theory.
    ///
    /// Very large mixtures are not offered, because that theory costs time and memory per component: none
    /// beyond 4096 components (a product has as many as all choices of one from each factor), nor beyond 256
    /// atoms of a [`Prompt`] or an [`Empirical`] measure.
    fn as_gaussian_mixture(&self) -> Option<Vec<GaussianComponent>> {
        None
    }

    /// The measure as centre + radius · root · uniform direction, where it has that form: averages
    /// over such query laws integrate the radius by quadrature.
    fn as_radial(&self) -> Option<Radial> {
        None
    }

    /// A proved σ with E exp⟨θ, z − m⟩ ≤ exp(σ²|θ|²/2) for all θ, m the mean, where one is known.
    ///
    /// σ² is at least the largest eigenvalue of the covariance. Proofs: `docs/mathematics/sub-gaussian.md`.
    fn sub_gaussian(&self) -> Option<SubGaussian> {
        None
    }

    /// A proved v with ∇²Λ(θ) ⪯ v²I at every tilt, where one is known.
    ///
    /// Then every tilt of the measure is v-sub-Gaussian, and the tilted mean moves by at most v²|δ| when
    /// the tilt moves by δ.
    fn sub_gaussian_under_tilts(&self) -> Option<f64> {
        None
    }

    /// The mean of the measure.
    fn mean(&self) -> Result<Vec<f64>> {
        self.tilted_mean(&vec![0.0; self.dimension()])
    }

    /// The covariance of the measure.
    fn covariance(&self) -> Result<Mat<f64>> {
        self.tilted_covariance(&vec![0.0; self.dimension()])
    }

    /// E zzᵀ, the second-moment matrix that linear attention uses.
    fn second_moment(&self) -> Result<Mat<f64>> {
        let mean = self.mean()?;
        let mut moment = self.covariance()?;
        linalg::add_outer(&mut moment, 1.0, &mean, &mean);
        check::finite_matrix_result("the second moment", moment)
    }

    /// Draws independent tokens into `tokens`, one after the other.
    fn sample(&self, stream: &mut Stream, tokens: &mut [f64]) -> Result<()> {
        self.sample_tilted(&vec![0.0; self.dimension()], stream, tokens)
    }

    /// KL(μ_θ ‖ μ) = ⟨θ, ∇Λ(θ)⟩ − Λ(θ): about e^{KL} tokens are needed to see the tilted measure.
    fn tilt_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let (mean, log_partition) = (self.tilted_mean(tilt)?, self.log_partition(tilt)?);
        let size = divergence::size_of_product(tilt, &mean) + log_partition.abs();
        divergence::of_difference(linalg::dot(tilt, &mean) - log_partition, size)
    }

    /// D₂(μ_θ ‖ μ) = Λ(2θ) − 2Λ(θ), the Rényi divergence of order two: e^{D₂} / L is the scale of the
    /// mean squared error of L tokens.
    fn renyi_divergence(&self, tilt: &[f64]) -> Result<f64> {
        let twice: Vec<f64> = tilt.iter().map(|entry| 2.0 * entry).collect();
        let twice = check::finite_result("twice the tilt", twice)?;
        let (at_twice, log_partition) = (self.log_partition(&twice)?, self.log_partition(tilt)?);
        divergence::of_difference(at_twice - 2.0 * log_partition, at_twice.abs() + 2.0 * log_partition.abs())
    }

    /// The Gaussian limit around a tilt θ₀: the Gaussian whose log-partition agrees with Λ to second
    /// order at θ₀, up to the constant.
    ///
    /// N(∇Λ(θ₀) − ∇²Λ(θ₀) θ₀, ∇²Λ(θ₀)); its tilted mean at θ is ∇Λ(θ₀) + ∇²Λ(θ₀)(θ − θ₀). Exact at every
    /// θ₀ for a Gaussian; otherwise the error of the tilted mean is second order in θ − θ₀.
    fn gaussian_limit(&self, tilt: &[f64]) -> Result<Gaussian> {
        let covariance = self.tilted_covariance(tilt)?;
        let shift = linalg::apply(covariance.as_ref(), tilt);
        let mean = linalg::difference(&self.tilted_mean(tilt)?, &shift);
        Gaussian::new(&check::finite_result("the mean of the Gaussian limit", mean)?, covariance.as_ref())
    }
}

/// z = centre + r · root · u: r from a radius law, u uniform on the unit sphere of R^k, root d × k.
#[derive(Debug, Clone)]
pub struct Radial {
    /// The centre, a vector of dimension d.
    pub centre: Vec<f64>,
    /// The d × k matrix that maps directions to Rᵈ.
    pub root: Mat<f64>,
    /// The law of the radius.
    pub radius: RadiusLaw,
}

/// A measure as a weighted sum of radial ones, where it is one: radial itself, or a mixture of Gaussians and atoms.
pub(crate) fn radial_parts(measure: &dyn Measure) -> Option<Vec<(f64, Radial)>> {
    measure.as_radial().map(|radial| vec![(1.0, radial)]).or_else(|| {
        let components = measure.as_gaussian_mixture()?;
        components.iter().map(|part| Some((part.weight(), part.gaussian.as_radial()?))).collect()
    })
}

/// Checks what every method of every family checks of its tilt.
fn check_tilt(dimension: usize, tilt: &[f64]) -> Result<()> {
    check::vector("the tilt", dimension, tilt)
}

/// Checks a tilt and a buffer of tokens.
fn check_sampling(dimension: usize, tilt: &[f64], tokens: &[f64]) -> Result<()> {
    check_tilt(dimension, tilt)?;
    check::whole_tokens(dimension, tokens.len())
}
