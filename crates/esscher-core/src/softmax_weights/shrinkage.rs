//! How a finite prompt shrinks the output of Gaussian tokens: c₁, c₂ and their derivatives in τ².

use super::WeightMoments;

/// c₁ = E G/τ and c₂ = (E G² − E S₂)/τ² as functions of σ = τ², with derivatives in σ.
///
/// For a value direction v and tilt θ, with a = ⟨v, Gθ⟩ and q = ⟨v, Gv⟩, an output of L centred Gaussian
/// tokens has mean c₁a and second moment c₂a² + (1 − c₁)q. Gaussian integration by parts turns all four
/// into power sums of the weights, smooth at σ = 0:
///
/// - c₁ = 1 − E S₂, c₂ = 1 − E S₂ − 6 E(S₃ − S₂²);
/// - c₁′ = −E(S₂ − 4S₃ + 3S₂²), c₂′ = −E(S₂ + 14S₃ − 9S₂² − 78S₄ + 132 S₂S₃ − 60 S₂³).
///
/// (The derivatives are ½ E Δ of the power sums, the heat equation in the scores; see
/// `docs/mathematics/finite-prompts.md`, section 4.)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shrinkage {
    /// 1 − c₁ = E S₂, kept as the deficit because it is of order 1/L.
    pub first_deficit: f64,
    /// 1 − c₂.
    pub second_deficit: f64,
    /// dc₁/dσ.
    pub first_slope: f64,
    /// dc₂/dσ.
    pub second_slope: f64,
}

impl Shrinkage {
    pub(super) fn from_moments(moments: &WeightMoments) -> Self {
        let s2 = moments.sum_of_squares;
        let s3 = moments.sum_of_cubes;
        let s4 = moments.sum_of_fourths;
        let s22 = moments.squared_sum_of_squares;
        let s23 = moments.squares_times_cubes;
        let s222 = moments.cubed_sum_of_squares;
        Shrinkage {
            first_deficit: s2,
            second_deficit: s2 + 6.0 * (s3 - s22),
            first_slope: -(s2 - 4.0 * s3 + 3.0 * s22),
            second_slope: -(s2 + 14.0 * s3 - 9.0 * s22 - 78.0 * s4 + 132.0 * s23 - 60.0 * s222),
        }
    }

    /// The first coefficient c₁.
    pub fn first(&self) -> f64 {
        1.0 - self.first_deficit
    }

    /// The second coefficient c₂.
    pub fn second(&self) -> f64 {
        1.0 - self.second_deficit
    }
}
