//! Linear attention: S_t = S_{t−1} + φ(k_t) v_tᵀ, z_t = z_{t−1} + φ(k_t), o_t = S_tᵀ φ(q_t) / η_t (key `katharopoulos2020`).
//!
//! A query and a key of width d_k and a value of width d_v per token, and the parameters of φ. η_t is φ(q_t)·z_t, t or 1. The
//! state is S, features × d_v, and then z where η needs it. In whole order all tokens read the last state.

mod chunked;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::feature_maps::FeatureMap;
use crate::mechanism::{Mechanism, Order, Signature};

/// What sums of values are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normaliser {
    /// The sum of the weights, φ(q)·z, or [`GUARD`] where that is larger. For maps whose kernel is not negative.
    Sum,
    /// The number of tokens absorbed.
    Count,
    /// One: sums stay as they are.
    None,
}

/// The least that a sum of weights is divided by: with features that may all be zero the sum may be zero. No paper states it;
/// the choice is ours.
pub const GUARD: f64 = 1e-6;

/// Linear attention with any feature map.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearAttention<M> {
    /// The feature map of queries and keys.
    pub map: M,
    /// Width of values and outputs.
    pub value_width: usize,
    /// What sums of values are divided by.
    pub normaliser: Normaliser,
    /// Whether tokens read the tokens up to themselves or all.
    pub order: Order,
}

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

impl<M: FeatureMap> LinearAttention<M> {
    /// Numbers of z in the state.
    fn key_sums(&self) -> usize {
        match self.normaliser {
            Normaliser::Sum => self.map.feature_width(),
            Normaliser::Count | Normaliser::None => 0,
        }
    }
}

impl<M: FeatureMap> Mechanism for LinearAttention<M> {
    fn signature(&self) -> Signature {
        let attention = Signature::attention(self.map.input_width(), self.value_width);
        Signature { parameters: self.map.parameters(), ..attention }
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
