//! InLine attention: o_i = Σ_j w_ij v_j, w_ij = (s/N)(φ(q_i)·φ(k_j) − (1/N) Σ_r φ(q_i)·φ(k_r)) + 1/N, s = 1/√d_k (key `han2024`).
//!
//! A query and a key of width d_k and a value of width d_v per token; N is the number of tokens. Rows of w sum to one by
//! subtraction, not division, so that queries of different length stay different. The state is Σ φ(k) vᵀ (d_k × d_v), then
//! Σ φ(k), then Σ v. The published form is in whole order. The causal one, with the means over the tokens so far and N = t, is
//! ours. [`local_residual`] is the convolution that the published layer adds.

mod chunked;
pub mod local_residual;
mod realisation;
mod recurrent;
mod reference;

use crate::dynamical_system::DynamicalSystem;
use crate::mechanism::{Mechanism, Order, Signature};
use crate::number::{Number, Real};

/// The entrywise map φ of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// φ(x) = x, the default of the published code.
    Identity,
    /// φ(x) = max(x, 0).
    Relu,
    /// φ(x) = x above zero, x/100 below; the slope below is the usual one of libraries.
    LeakyRelu,
    /// φ(x) = e^{x/5}.
    Exponential,
}

/// The slope of [`Kernel::LeakyRelu`] below zero.
pub(crate) const LEAK: f64 = 0.01;

/// The rate of [`Kernel::Exponential`].
pub(crate) const RATE: f64 = 0.2;

impl Kernel {
    /// φ(x).
    pub fn apply<N: Number>(self, x: N) -> N {
        match self {
            Kernel::Identity => x,
            Kernel::Relu => x.relu(),
            Kernel::LeakyRelu if x.value() > 0.0 => x,
            Kernel::LeakyRelu => x * N::constant(LEAK),
            Kernel::Exponential => (x * N::constant(RATE)).exp(),
        }
    }

    /// φ′(x) from φ(x), which tells it for every kernel.
    fn slope<T: Real>(self, mapped: T) -> T {
        match self {
            Kernel::Identity => T::one(),
            Kernel::Relu if mapped > T::zero() => T::one(),
            Kernel::Relu => T::zero(),
            Kernel::LeakyRelu if mapped > T::zero() => T::one(),
            Kernel::LeakyRelu => T::constant(LEAK),
            Kernel::Exponential => T::constant(RATE) * mapped,
        }
    }
}

/// InLine attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inline {
    /// The map of queries and keys.
    pub kernel: Kernel,
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
    /// Whole as published, or causal.
    pub order: Order,
}

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

impl Inline {
    /// The factor on every product, 1/√d_k.
    pub fn scale(&self) -> f64 {
        1.0 / (self.key_width as f64).sqrt()
    }

    fn map<N: Number>(&self, numbers: &[N]) -> Vec<N> {
        numbers.iter().map(|&x| self.kernel.apply(x)).collect()
    }

    /// Cuts a state into Σ φ(k) vᵀ, Σ φ(k), Σ v.
    fn parts<'a, N>(&self, state: &'a mut [N]) -> (&'a mut [N], &'a mut [N], &'a mut [N]) {
        let (products, rest) = state.split_at_mut(self.key_width * self.value_width);
        let (keys, values) = rest.split_at_mut(self.key_width);
        (products, keys, values)
    }
}

impl Mechanism for Inline {
    fn signature(&self) -> Signature {
        Signature::attention(self.key_width, self.value_width)
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
