//! A head and its opposite on one prompt: how a finite prompt shrinks and spreads half their difference.

use super::WeightMoments;
use super::pair_integral::{self, PairMoments};
use crate::error::{Error, Result};
use crate::prompt_length::PromptLength;

/// C₁, C₂ and D of a pair of opposite heads as functions of σ = τ², with derivatives in σ.
///
/// For g₁ … g_L independent standard normals let p = softmax(τg), r = softmax(−τg), G = Σ pₗgₗ, H = Σ rₗgₗ,
/// K = Σ pₗrₗ and Sₐ = Σ pₗᵃ. Then
///
/// - C₁ = E G/τ = 1 − E S₂, as for one head;
/// - C₂ = (E G² − E GH − E S₂ + E K)/2τ²;
/// - D = (E S₂ − E K)/2.
///
/// Two heads with tilts θ and −θ and half of the value direction v, the second subtracted, predict
/// o = ½⟨v, T₊ − T₋⟩. With a = ⟨v, Gθ⟩ and q = ⟨v, Gv⟩, over L centred Gaussian tokens of covariance G, o has mean
/// C₁a and second moment C₂a² + Dq. The noise of one head, (1 − c₁)q ≈ e^{τ²}q/L, becomes Dq ≈ sinh(τ²)q/L, which
/// vanishes with τ: there the pair is linear attention.
///
/// All six are computed as expectations of sums of powers of p and r, smooth at σ = 0
/// (`docs/mathematics/finite-prompts.md`, section 6).
///
/// ```
/// use esscher_core::prompt::PromptLength;
/// use esscher_core::softmax_weights::OppositePair;
/// let pair = OppositePair::at(0.5, PromptLength::new(1_000_000_000)?)?;
/// assert!((pair.spread * 1e9 / 0.25f64.sinh() - 1.0).abs() < 1e-6);
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OppositePair {
    /// 1 − C₁ = E S₂, kept as the deficit because it is of order 1/L.
    pub first_deficit: f64,
    /// 1 − C₂.
    pub second_deficit: f64,
    /// D, the third of the three.
    pub spread: f64,
    /// dC₁/dσ.
    pub first_slope: f64,
    /// dC₂/dσ.
    pub second_slope: f64,
    /// dD/dσ.
    pub spread_slope: f64,
    /// E Σp Σr, which is one: its distance from one is the quadrature error of the call.
    pub closure: f64,
}

impl OppositePair {
    /// Largest τ accepted: the double integral takes 3 to 20 ms up to τ = 6, but 0.3 s here, and more beyond.
    pub const MAX_SCORE_DEVIATION: f64 = 20.0;

    /// Error of every field but `closure`, as a part of `first_deficit`, which is at most one and of order 1/L in long
    /// prompts: for L from 1 to 10¹².
    ///
    /// Measured: D against its definition up to τ = 6 (2e-14); both deficits against theirs as far as differences from
    /// one reach in double precision (3e-14, absolute); all six against their polynomials at τ = 0 (1e-12); the slopes
    /// against differences of order eight of the fields from τ = 0.3 to 12 (2e-12), which are other sums of other
    /// moments. At every τ accepted `closure` is one to 5e-13.
    pub const TOLERANCE: f64 = 1e-11;

    /// The pair at score deviation τ for a prompt of this length.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless 0 ≤ τ ≤ [`OppositePair::MAX_SCORE_DEVIATION`].
    pub fn at(score_deviation: f64, length: PromptLength) -> Result<OppositePair> {
        if !(0.0..=OppositePair::MAX_SCORE_DEVIATION).contains(&score_deviation) {
            return Err(Error::OutOfRange {
                what: "the score deviation τ of a pair of opposite heads",
                value: score_deviation,
                expected: "a number from 0 to 20",
            });
        }
        if length.get() == 1 {
            return Ok(OppositePair::of_one_token());
        }
        let single = WeightMoments::at(score_deviation, &[length])?;
        let pair = pair_integral::integrate(score_deviation, length);
        Ok(assemble(length.as_f64(), &single[0], &pair))
    }

    /// The first coefficient C₁.
    pub fn first(&self) -> f64 {
        1.0 - self.first_deficit
    }

    /// The second coefficient C₂.
    pub fn second(&self) -> f64 {
        1.0 - self.second_deficit
    }

    /// One token: both heads return it, and their difference is zero.
    fn of_one_token() -> Self {
        OppositePair {
            first_deficit: 1.0,
            second_deficit: 1.0,
            spread: 0.0,
            first_slope: 0.0,
            second_slope: 0.0,
            spread_slope: 0.0,
            closure: 1.0,
        }
    }
}

/// C₁, C₂, D and their derivatives from the power sums (`docs/mathematics/finite-prompts.md`, section 6).
fn assemble(length: f64, single: &WeightMoments, pair: &PairMoments) -> OppositePair {
    let shrinkage = single.shrinkage();
    let s2 = single.sum_of_squares;
    let PairMoments { k, kk, kkk, k_s2, k_s3, k_s2s2, k_s2r2, kk_s2, s2r2, s3r2, s2s2r2, closure } = *pair;
    // 1 + c×, small like 1 − c₂: c× = (E GH − E K)/τ² is −1 in the limit.
    let cross_excess = 2.0 * s2 - s2r2 - (1.0 + 2.0 / length) * k + 4.0 * k_s2 - kk;
    let s2_slope = -shrinkage.first_slope;
    let k_slope = 2.0 * k_s2 - kk - k;
    let kk_slope = 6.0 * kk_s2 - 4.0 * kkk - 2.0 * kk;
    let k_s2_slope = 6.0 * (k_s2s2 - k_s3) + k_s2r2 - 3.0 * kk_s2 + 2.0 * kk / length;
    let s2r2_slope = 2.0 * s2r2 - 8.0 * s3r2 + 6.0 * s2s2r2 - 4.0 * k_s2r2 + (8.0 * k_s2 - 4.0 * kk) / length;
    let cross_slope =
        2.0 * s2_slope - s2r2_slope - (1.0 + 2.0 / length) * k_slope + 4.0 * k_s2_slope - kk_slope;
    OppositePair {
        first_deficit: shrinkage.first_deficit,
        second_deficit: 0.5 * (shrinkage.second_deficit + cross_excess),
        // ¼ E|p − r|² is not negative; without scores rounding could make it so.
        spread: (0.5 * (s2 - k)).max(0.0),
        first_slope: shrinkage.first_slope,
        second_slope: 0.5 * (shrinkage.second_slope - cross_slope),
        spread_slope: 0.5 * (s2_slope - k_slope),
        closure,
    }
}
