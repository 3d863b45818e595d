//! State space duality, the core of Mamba-2: S_t = e^{−Δ_t a} S_{t−1} + Δ_t B_t x_tᵀ, y_t = S_tᵀ C_t + D ⊙ x_t, a = e^{A_log} (key `dao2024`).
//!
//! Query C and key B of width d_k (the state size), value x of width d_v, one step size Δ > 0 per token and head. Parameters:
//! `log_rate` A_log, one per head, and `skip` D, one per channel. There is no factor on the scores. The state is S, d_k × d_v.
//!
//! The code released with key `sieber2024` adds a bias per channel to one projected Δ. With heads as groups of channels that
//! bias becomes one per head and belongs to the layer that makes Δ; that Δ is a port of width one is our choice.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Initial, Meaning, Mechanism, Parameter, Signature};

/// State space duality: a linear attention whose one decay and whose writing share a step size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateSpaceDuality {
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
}

/// Places of the token ports and of the parameters.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;
const RATE: usize = 3;
const LOG_RATE: usize = 0;
const SKIP: usize = 1;

impl Mechanism for StateSpaceDuality {
    fn signature(&self) -> Signature {
        let parameter = |name, size, start| Parameter::trained(name, size, Initial::Constant(start));
        Signature {
            parameters: vec![parameter("log_rate", 1, 0.0), parameter("skip", self.value_width, 1.0)],
            ..Signature::attention(self.key_width, self.value_width).with_port("rate", 1, Meaning::Rate)
        }
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        Some(self)
    }
}
