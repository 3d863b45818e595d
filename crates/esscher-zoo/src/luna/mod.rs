//! LUNA: o_t = Σ_{r≤t} φ(q_t)·φ(k_r) v_r / Σ_{r≤t} φ(q_t)·φ(k_r) with a learned φ(x) = [ψ_ℓ(w_i·x + b_i)]_{iℓ}/√m (key `shahbazi2025`).
//!
//! A query and a key of width d_k and a value of width d_v per token; W, b and ψ, shared over heads (see [`LunaMap`]). The state
//! is S = Σ φ(k) vᵀ, features × d_v, then z = Σ φ(k). The sum of weights is guarded as in [`crate::linear_attention`], which
//! does the arithmetic; the paper states no guard, but ReLU features need one.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::feature_maps::LunaMap;
use crate::linear_attention::{LinearAttention, Normaliser};
use crate::mechanism::{Mechanism, Order, Signature};

/// LUNA as in the paper's listing: no envelope, no cap on the channels' root mean square, no 1/√d on queries or keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Luna {
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
    /// Projections m.
    pub projections: usize,
    /// Channels of ψ, L.
    pub channels: usize,
    /// Hidden units of ψ; the listing has 64.
    pub hidden: usize,
    /// Whether tokens read the tokens up to themselves or all; the paper has both.
    pub order: Order,
}

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

impl Luna {
    /// The linear attention that it is.
    pub fn linear_attention(&self) -> LinearAttention<LunaMap> {
        LinearAttention {
            map: LunaMap {
                width: self.key_width,
                projections: self.projections,
                channels: self.channels,
                hidden: self.hidden,
            },
            value_width: self.value_width,
            normaliser: Normaliser::Sum,
            order: self.order,
        }
    }
}

impl Mechanism for Luna {
    fn signature(&self) -> Signature {
        self.linear_attention().signature()
    }

    fn order(&self) -> Order {
        self.order
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        match self.order {
            Order::Causal => Some(self),
            Order::Whole => None,
        }
    }
}
