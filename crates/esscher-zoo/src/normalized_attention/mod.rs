//! Normalized attention: o_i = (1/η_i) Σ_{j≤i} (q_i·k_j) v_j with a learned normaliser, η_i = e^{z_i} for z_i = w·u_i + b (key `sieber2024`).
//!
//! Query and key of width d_k enter as they are, without feature map and, as in the specification, without the factor 1/√d_k:
//! the normaliser takes its place. The logit z is the port `log_normaliser`; [`Normaliser`] has the published alternatives.
//!
//! The publication's state h_i = (η_{i−1}/η_i) h_{i−1} + (1/η_i) k_i v_iᵀ is scaled anew by every token, and a single tiny η
//! would overflow it for good. Ours is the sum H_i = Σ_{j≤i} k_j v_jᵀ = η_i h_i, d_k × d_v, which grows no faster than the
//! tokens, and the division happens at the output: all that can overflow is an output that is too large by definition.
//! The publication's state is what the realisation as a dynamical system has.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Meaning, Mechanism, Signature};
use crate::number::Number;

/// Linear attention with a learned normaliser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NormalizedAttention {
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
    /// From the logit to η.
    pub normaliser: Normaliser,
}

/// How η is made of its logit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normaliser {
    /// η = e^z, the proposal.
    Exponential,
    /// η = ln(1 + e^z).
    Softplus,
    /// η = 1/(1 + e^{−z}).
    Sigmoid,
}

impl Normaliser {
    /// 1/η.
    fn inverse<N: Number>(self, logit: N) -> N {
        match self {
            Normaliser::Exponential => (-logit).exp(),
            Normaliser::Softplus => N::one() / logit.softplus(),
            Normaliser::Sigmoid => N::one() + (-logit).exp(),
        }
    }

    /// d ln η / dz, which stays between 0 and 1 however small η is.
    fn log_slope<N: Number>(self, logit: N) -> N {
        match self {
            Normaliser::Exponential => N::one(),
            Normaliser::Softplus => logit.sigmoid() / logit.softplus(),
            Normaliser::Sigmoid => (-logit).sigmoid(),
        }
    }

    /// η.
    pub(crate) fn value<N: Number>(self, logit: N) -> N {
        match self {
            Normaliser::Exponential => logit.exp(),
            Normaliser::Softplus => logit.softplus(),
            Normaliser::Sigmoid => logit.sigmoid(),
        }
    }
}

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const LOG_NORMALISER: usize = 3;

impl Mechanism for NormalizedAttention {
    fn signature(&self) -> Signature {
        Signature::attention(self.key_width, self.value_width).with_port("log_normaliser", 1, Meaning::Logit)
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
