//! The laws of a measure, checked numerically on any implementation by one function.

use super::{Affine, Law, Measure, Product};
use crate::error::{Error, Result};
use crate::numerics::{Stream, check, linalg};
use faer::Mat;

/// How closely the laws must hold; every number is a claim about the implementation under test.
#[derive(Debug, Clone, Copy)]
pub struct LawTolerance {
    /// For identities between closed forms (group law, push-forward, product), relative to their size.
    pub identity: f64,
    /// For derivatives taken by differences, relative to the size of the derivative.
    pub derivative: f64,
    /// Draws per tilt for the sampling law; 0 leaves it out (laws without a sampler).
    pub draws: usize,
}

impl Default for LawTolerance {
    fn default() -> Self {
        LawTolerance { identity: 1e-10, derivative: 1e-6, draws: 20_000 }
    }
}

/// A law that an implementation of [`Measure`] breaks, or the error it gave where it should answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LawViolation {
    /// Two sides of a law differ.
    #[error(
        "{family} breaks the law \"{law}\" at tilt {tilt:?}: the sides differ by {gap:e}, allowed {allowed:e}"
    )]
    Broken {
        /// The family under test.
        family: &'static str,
        /// The law in words.
        law: &'static str,
        /// Where it fails.
        tilt: Vec<f64>,
        /// Distance between the two sides.
        gap: f64,
        /// Largest distance that the tolerance allows.
        allowed: f64,
    },
    /// The measure refused to answer.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// Checks every law listed in the [module documentation](super) at the given tilts and their sums.
///
/// The tilts, their pairwise sums and small neighbourhoods must lie in the domain of the log-partition.
/// Sampling is checked to six standard errors per coordinate, the larger of the sample's and the model's, on a
/// fixed stream: a sample may miss an event that the tilt has made rare, and then it knows nothing of its
/// error. At least one tilt is needed.
///
/// ```
/// use esscher_core::measure::{Sphere, laws::{LawTolerance, check_laws}};
/// use std::sync::Arc;
/// let tilts = vec![vec![0.3, -1.2], vec![0.5, 0.1]];
/// check_laws(Arc::new(Sphere::new(2, 1.5)?), &tilts, LawTolerance::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_laws(
    measure: Law,
    tilts: &[Vec<f64>],
    tolerance: LawTolerance,
) -> std::result::Result<(), LawViolation> {
    check::zero_or_more("the tolerance of identities", tolerance.identity)?;
    check::zero_or_more("the tolerance of derivatives", tolerance.derivative)?;
    check::not_empty("the list of tilts", tilts.len())?;
    let checker = Checker { measure, tolerance };
    checker.normalised()?;
    for tilt in tilts {
        checker.derivatives(tilt)?;
        checker.positive_covariance(tilt)?;
        checker.push_forward(tilt)?;
        checker.product(tilt)?;
        checker.divergences(tilt)?;
        checker.sampling(tilt)?;
        for other in tilts {
            checker.group(tilt, other)?;
            checker.convex(tilt, other)?;
        }
    }
    checker.many_tilts(tilts)
}

struct Checker {
    measure: Law,
    tolerance: LawTolerance,
}

type Check = std::result::Result<(), LawViolation>;

impl Checker {
    fn expect(&self, law: &'static str, tilt: &[f64], gap: f64, allowed: f64) -> Check {
        // Written so that a NaN gap fails. What is allowed to be infinitely wrong would pass whatever it is: it does not.
        if gap <= allowed && allowed.is_finite() {
            return Ok(());
        }
        Err(LawViolation::Broken { family: self.measure.family(), law, tilt: tilt.to_vec(), gap, allowed })
    }

    fn equal(&self, law: &'static str, tilt: &[f64], left: &[f64], right: &[f64], relative: f64) -> Check {
        self.equal_up_to(0.0, law, tilt, left, right, relative)
    }

    /// The same where the sides carry this much rounding, whatever their size.
    fn equal_up_to(
        &self,
        rounding: f64,
        law: &'static str,
        tilt: &[f64],
        left: &[f64],
        right: &[f64],
        relative: f64,
    ) -> Check {
        let size = left.iter().chain(right).fold(1.0, |size: f64, entry| size.max(entry.abs()));
        let gap = left.iter().zip(right).map(|(a, b)| (a - b).abs());
        // The larger of a number and NaN is the number.
        let gap = gap.fold(0.0, |gap: f64, one| if one.is_nan() { f64::INFINITY } else { gap.max(one) });
        let gap = if left.len() == right.len() { gap } else { f64::INFINITY };
        self.expect(law, tilt, gap, relative * size + rounding)
    }

    fn normalised(&self) -> Check {
        let origin = vec![0.0; self.measure.dimension()];
        let value = self.measure.log_partition(&origin)?;
        self.expect("Λ(0) = 0", &origin, value.abs(), self.tolerance.identity)
    }

    /// Several times the tilts, so that measures which treat many together do.
    fn many_tilts(&self, tilts: &[Vec<f64>]) -> Check {
        let tilts = tilts.concat().repeat(4);
        let means = self.measure.tilted_means(&tilts)?;
        let dimension = self.measure.dimension();
        for (tilt, mean) in tilts.chunks(dimension).zip(means.chunks(dimension)) {
            let one = self.measure.tilted_mean(tilt)?;
            self.equal("tilted means = tilted mean of each", tilt, mean, &one, self.tolerance.identity)?;
        }
        self.expect("a mean per tilt", &tilts, tilts.len().abs_diff(means.len()) as f64, 0.0)
    }

    fn derivatives(&self, tilt: &[f64]) -> Check {
        let mean = self.measure.tilted_mean(tilt)?;
        let covariance = self.measure.tilted_covariance(tilt)?;
        // A step small against the scale on which the tilted measure changes.
        let spread = linalg::trace(covariance.as_ref()).sqrt().max(1.0);
        let step = 1e-3 / spread;
        for axis in 0..tilt.len() {
            let at = |offset: f64| {
                let mut moved = tilt.to_vec();
                moved[axis] += offset;
                moved
            };
            // Twice the step as it is after rounding: beside a large tilt a small step loses digits.
            let across = |h: f64| at(h)[axis] - at(-h)[axis];
            // What rounding of numbers of this size makes of a difference quotient, extrapolated as below.
            let rounding = |size: f64| 16.0 * f64::EPSILON * size / step;
            let slope = |h: f64| -> Result<f64> {
                Ok((self.measure.log_partition(&at(h))? - self.measure.log_partition(&at(-h))?) / across(h))
            };
            let slope = (4.0 * slope(0.5 * step)? - slope(step)?) / 3.0;
            let law = "∇Λ = tilted mean";
            let allowed = rounding(self.measure.log_partition(tilt)?.abs());
            self.equal_up_to(allowed, law, tilt, &[slope], &[mean[axis]], self.tolerance.derivative)?;
            let bend = |h: f64| -> Result<Vec<f64>> {
                let (up, down) = (self.measure.tilted_mean(&at(h))?, self.measure.tilted_mean(&at(-h))?);
                Ok(linalg::difference(&up, &down).iter().map(|entry| entry / across(h)).collect())
            };
            let (fine, coarse) = (bend(0.5 * step)?, bend(step)?);
            let bend: Vec<f64> = fine.iter().zip(&coarse).map(|(f, c)| (4.0 * f - c) / 3.0).collect();
            let column: Vec<f64> = (0..tilt.len()).map(|row| covariance[(row, axis)]).collect();
            let (law, allowed) = ("∇²Λ = tilted covariance", rounding(linalg::largest(&mean)));
            self.equal_up_to(allowed, law, tilt, &bend, &column, self.tolerance.derivative)?;
        }
        Ok(())
    }

    fn positive_covariance(&self, tilt: &[f64]) -> Check {
        let covariance = self.measure.tilted_covariance(tilt)?;
        let covariance = check::symmetric("the tilted covariance", covariance.as_ref())?;
        let eigen = linalg::SymmetricEigen::new("the tilted covariance", covariance.as_ref())?;
        let size = linalg::trace(covariance.as_ref()).abs().max(1.0);
        self.expect("∇²Λ is positive semi-definite", tilt, -eigen.values[0], self.tolerance.identity * size)
    }

    fn group(&self, first: &[f64], second: &[f64]) -> Check {
        let law = "tilting by a, then by b, is tilting by a + b";
        let both = linalg::sum(first, second);
        let once = self.measure.tilted(first)?;
        let twice = once.tilted(second)?;
        let origin = vec![0.0; first.len()];
        let direct = self.measure.tilted_mean(&both)?;
        self.equal(law, &both, &once.tilted_mean(second)?, &direct, self.tolerance.identity)?;
        self.equal(law, &both, &twice.tilted_mean(&origin)?, &direct, self.tolerance.identity)?;
        let increment = self.measure.log_partition(&both)? - self.measure.log_partition(first)?;
        self.equal(law, &both, &[once.log_partition(second)?], &[increment], self.tolerance.identity)
    }

    fn convex(&self, first: &[f64], second: &[f64]) -> Check {
        let middle: Vec<f64> = linalg::sum(first, second).iter().map(|entry| 0.5 * entry).collect();
        let chord = 0.5 * (self.measure.log_partition(first)? + self.measure.log_partition(second)?);
        let gap = self.measure.log_partition(&middle)? - chord;
        self.expect("Λ is convex", &middle, gap, self.tolerance.identity * chord.abs().max(1.0))
    }

    /// Pushes forward by the map z ↦ (z·1, 2z₀) + (1, −1), which is neither square nor orthogonal in general.
    fn push_forward(&self, tilt: &[f64]) -> Check {
        let dimension = self.measure.dimension();
        let matrix = Mat::from_fn(2, dimension, |row, column| match (row, column) {
            (0, _) => 1.0,
            (_, 0) => 2.0,
            _ => 0.0,
        });
        let shift = [1.0, -1.0];
        let pushed = Affine::new(matrix.as_ref(), &shift, self.measure.clone())?;
        // Small enough that Aᵀt stays inside the hull of the tilts.
        let size = tilt.iter().fold(0.0, |size: f64, entry| size.max(entry.abs()));
        let small = [0.2 * size, -0.1 * size];
        let base_tilt = linalg::apply_transpose(matrix.as_ref(), &small);
        let value = linalg::dot(&small, &shift) + self.measure.log_partition(&base_tilt)?;
        let law = "Λ of Az + b is ⟨t, b⟩ + Λ(Aᵀt)";
        self.equal(law, &base_tilt, &[pushed.log_partition(&small)?], &[value], self.tolerance.identity)?;
        let mean =
            linalg::sum(&shift, &linalg::apply(matrix.as_ref(), &self.measure.tilted_mean(&base_tilt)?));
        self.equal(law, &base_tilt, &pushed.tilted_mean(&small)?, &mean, self.tolerance.identity)
    }

    fn product(&self, tilt: &[f64]) -> Check {
        let pair = Product::new(vec![self.measure.clone(), self.measure.clone()])?;
        let half: Vec<f64> = tilt.iter().map(|entry| 0.5 * entry).collect();
        let value = self.measure.log_partition(tilt)? + self.measure.log_partition(&half)?;
        let joint = pair.log_partition(&[tilt, &half].concat())?;
        self.equal("Λ of a product is the sum", tilt, &[joint], &[value], self.tolerance.identity)
    }

    /// KL(μ_θ‖μ) is non-negative, and no larger than the Rényi divergence of order two where that exists.
    fn divergences(&self, tilt: &[f64]) -> Check {
        let divergence = match self.measure.tilt_divergence(tilt) {
            // It says itself that it is not known there.
            Err(Error::Cancelled { .. }) => return Ok(()),
            found => found?,
        };
        let allowed = self.tolerance.identity * (1.0 + linalg::squared_norm(tilt));
        self.expect("KL(tilted ‖ measure) ≥ 0", tilt, -divergence, allowed)?;
        match self.measure.renyi_divergence(tilt) {
            Ok(renyi) => self.expect("KL ≤ Rényi-2", tilt, divergence - renyi, allowed),
            Err(_) => Ok(()),
        }
    }

    /// Var (z − m)² = Λ⁗ + 2Λ″² along an axis, the fourth derivative as a difference of variances.
    fn variance_of_square(&self, tilt: &[f64], axis: usize, variance: f64) -> Result<f64> {
        let step = 1e-2 / variance.sqrt().max(1.0);
        let at = |offset: f64| -> Result<f64> {
            let mut moved = tilt.to_vec();
            moved[axis] += offset;
            Ok(self.measure.tilted_covariance(&moved)?[(axis, axis)])
        };
        Ok((at(step)? - 2.0 * variance + at(-step)?) / (step * step) + 2.0 * variance * variance)
    }

    fn sampling(&self, tilt: &[f64]) -> Check {
        let draws = self.tolerance.draws;
        if draws == 0 {
            return Ok(());
        }
        let dimension = self.measure.dimension();
        let numbers = draws.checked_mul(dimension).ok_or(Error::Overflow { what: "the number of draws" })?;
        let mut tokens = vec![0.0; numbers];
        self.measure.sample_tilted(tilt, &mut Stream::new(2512, 11784, 0), &mut tokens)?;
        let mean = self.measure.tilted_mean(tilt)?;
        let covariance = self.measure.tilted_covariance(tilt)?;
        for axis in 0..dimension {
            let offsets = tokens.chunks_exact(dimension).map(|token| token[axis] - mean[axis]);
            let (first, second, fourth) = offsets.fold((0.0, 0.0, 0.0), |(a, b, c), x| {
                (a + x / draws as f64, b + x * x / draws as f64, c + x.powi(4) / draws as f64)
            });
            let variance = covariance[(axis, axis)];
            let rounding = self.tolerance.identity * (1.0 + mean[axis].abs());
            let error = 6.0 * (second.max(variance) / draws as f64).sqrt() + rounding;
            self.expect("tokens of the tilted measure have the tilted mean", tilt, first.abs(), error)?;
            let spread = (fourth - second * second).max(self.variance_of_square(tilt, axis, variance)?);
            let error = 6.0 * (spread.max(0.0) / draws as f64).sqrt() + rounding;
            let gap = (second - variance).abs();
            self.expect("tokens of the tilted measure have the tilted variance", tilt, gap, error)?;
        }
        Ok(())
    }
}
