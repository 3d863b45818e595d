//! Moments of the softmax weights of L standard normals, exactly, at any L: the scalars of the exact engine.
//!
//! For g₁ … g_L independent standard normals and p = softmax(τg), every finite-prompt quantity of Gaussian
//! tokens is an expectation of power sums Σ pᵃ hᵇ. Since 1/Sᵃ = Γ(a)⁻¹ ∫ tᵃ⁻¹ e^{−tS} dt makes the L sites
//! independent, such expectations are one-dimensional integrals in s = ln t whose integrand knows L only
//! through L(L−1)… φᴸ⁻ᵏ: the cost does not depend on L, and a sweep over lengths shares all site moments.
//! The forms used here, chosen so that nothing cancels, are derived in `docs/mathematics/finite-prompts.md`.

mod moments;
mod opposite;
mod pair_integral;
mod prompt_integral;
mod shrinkage;
mod sites;
mod table;

pub use moments::{MAX_SCORE_DEVIATION, RELATIVE_TOLERANCE, WeightMoments};
pub use opposite::OppositePair;
pub use shrinkage::Shrinkage;
pub use table::MomentTable;

pub(crate) use moments::check_score_deviation;
pub(crate) use prompt_integral::{Blocks, highest_normal, integrate};
pub(crate) use sites::{SiteGrid, SiteSums};
pub(crate) use table::{NODES, Panels};
