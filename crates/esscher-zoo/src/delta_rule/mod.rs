//! The delta rule: S_t = S_{t−1} − β_t k̂_t (k̂_tᵀ S_{t−1} − v_tᵀ), o_t = S_tᵀ q̂_t, with queries and keys of unit length (key `yang2024delta`).
//!
//! Before it writes, a token subtracts a share β of what its key already recalls: at β = 1 the old value is replaced. A query
//! and a key of width d_k, a value of width d_v, and `beta` in [0, 1] per token and head. The state is S, d_k × d_v.
//!
//! Queries and keys are normalised inside, x̂ = x/√(|x|² + 10⁻⁶), as the layers of flash-linear-attention do by default: with
//! |k̂| ≤ 1 the factor I − β k̂ k̂ᵀ never expands, whereas raw keys of length √d_k would make the state explode. The factor on the
//! scores is 1, as in the publication; that library's kernel multiplies by 1/√d_k, which the norm behind a head removes. Rows
//! whose squares overflow are brought down by a power of two first: x̂ does not depend on the size of a large x.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Meaning, Mechanism, Signature};
use crate::number::Number;

/// Linear attention that corrects what it recalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaRule {
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
}

/// Added to squared lengths, so that zero has a direction.
pub const EPSILON: f64 = 1e-6;

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const BETA: usize = 3;

/// 2⁻ᵉ with 2ᵉ ≤ max |xᵢ| < 2ᵉ⁺¹, and 1 where that is less than 1: squares of what it multiplies do not overflow.
fn downscaling<N: Number>(row: &[N]) -> N {
    let largest = row.iter().fold(1.0, |largest: f64, x| largest.max(x.value().abs()));
    N::constant((-largest.log2().floor()).exp2())
}

impl Mechanism for DeltaRule {
    fn signature(&self) -> Signature {
        Signature::attention(self.key_width, self.value_width).with_port("beta", 1, Meaning::Fraction)
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
