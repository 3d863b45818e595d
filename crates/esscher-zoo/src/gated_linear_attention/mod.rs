//! Gated linear attention: S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, o_t = s · S_tᵀ q_t, with s = 1/√d_k (key `yang2023gated`).
//!
//! A query and a key of width d_k, a value of width d_v, and ln α ∈ (−∞, 0]^{d_k} per token. The state is S, d_k × d_v.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Meaning, Mechanism, Signature};

/// Gated linear attention with one decay per key channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatedLinearAttention {
    /// Width of queries, keys and decays.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
}

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const LOG_DECAY: usize = 3;

impl GatedLinearAttention {
    /// The factor on every score, 1/√d_k.
    pub fn scale(&self) -> f64 {
        1.0 / (self.key_width as f64).sqrt()
    }
}

impl Mechanism for GatedLinearAttention {
    fn signature(&self) -> Signature {
        Signature::attention(self.key_width, self.value_width).with_port(
            "log_decay",
            self.key_width,
            Meaning::LogDecay,
        )
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
