//! Rotated queries and keys: R(θ_t) q_t and R(θ_t) k_t go to any inner mechanism, with θ_t from positions or from the tokens (keys `su2021`, `movahedi2025`).
//!
//! R turns the pairs of channels (j, j + h), j < h = ⌊d/2⌋, by one angle each (the half-split order of NeoX); the last channel
//! of an odd width d is not turned, which is our choice. Since R is orthogonal, scores depend on differences θ_t − θ_r:
//!
//! - [`Rotation::Fixed`]: θ_tj = t · base^{−2j/2h}, rotary position embedding (RoPE). t counts from the empty state.
//! - [`Rotation::Selective`]: θ_tj = c_j Φ_tj with Φ_t = Σ_{s≤t} ω_s; ω, of width h, is a token port more, called `angle` and
//!   the last one. The layer makes it, for example by [`angle_network`]. c are fixed [`Temperatures`].
//!
//! The state is the inner state and then Φ (h numbers with selective rotations, none otherwise). Only inner mechanisms in
//! causal order can be turned: the angle of a query is that of the token absorbed last.

mod angle;
pub mod angle_network;
mod chunked;
pub mod equivalence;
pub mod random_features;
mod realisation;
mod recurrent;
mod reference;

pub use angle::{Rotation, Temperatures};

use crate::dynamical_system::DynamicalSystem;
use crate::error::{Error, Result};
use crate::mechanism::{Given, Meaning, Mechanism, Order, Port, Signature};

/// A mechanism that is handed rotated queries and keys.
///
/// The inner mechanism must have ports `query` and `key` of one width, and be causal unless the rotation is
/// [`Rotation::None`]: [`Rotated::new`] refuses others, with which every method would panic or rotate by wrong angles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotated<M> {
    /// The mechanism that receives what was rotated.
    pub inner: M,
    /// By which angles.
    pub rotation: Rotation,
}

impl<M: Mechanism> Rotated<M> {
    /// A mechanism with rotated queries and keys.
    ///
    /// # Errors
    /// An inner mechanism without queries and keys of one width, or in whole order.
    pub fn new(inner: M, rotation: Rotation) -> Result<Self> {
        let signature = inner.signature();
        let width = |name| signature.port(name).map(|port| signature.tokens[port].width);
        let (query, key) = (width("query"), width("key"));
        if query.is_none() || query != key {
            return Err(Error::Option {
                name: "inner",
                expected: "a mechanism with ports query and key of one width".to_string(),
                found: format!("{inner:?}"),
            });
        }
        if rotation != Rotation::None && inner.order() != Order::Causal {
            return Err(Error::Option {
                name: "inner",
                expected: "a mechanism in causal order".to_string(),
                found: format!("{inner:?}"),
            });
        }
        Ok(Rotated { inner, rotation })
    }

    /// Where things stand among the inner mechanism's ports.
    fn places(&self) -> Places {
        let signature = self.inner.signature();
        let (Some(query), Some(key)) = (signature.port("query"), signature.port("key")) else {
            unreachable!("a rotated mechanism has queries and keys, see `Rotated::new`")
        };
        Places { query, key, width: signature.tokens[query].width, angle: signature.tokens.len() }
    }

    /// How many of the state's numbers are Φ.
    fn phases(&self) -> usize {
        match self.rotation {
            Rotation::Selective { .. } => self.places().width / 2,
            Rotation::None | Rotation::Fixed { .. } => 0,
        }
    }
}

/// Places of the token ports, and the width that is rotated.
#[derive(Clone, Copy)]
struct Places {
    query: usize,
    key: usize,
    angle: usize,
    width: usize,
}

impl Places {
    /// Hands over what was given, with other queries and keys and without angles.
    fn with_rotated<N, R>(
        &self,
        given: &Given<'_, N>,
        query: &[N],
        key: &[N],
        visit: impl FnOnce(&Given<'_, N>) -> R,
    ) -> R {
        let mut tokens: Vec<&[N]> = given.tokens[..self.angle].to_vec();
        tokens[self.query] = query;
        tokens[self.key] = key;
        visit(&Given { length: given.length, tokens: &tokens, parameters: given.parameters })
    }
}

impl<M: Mechanism> Mechanism for Rotated<M> {
    fn signature(&self) -> Signature {
        let mut signature = self.inner.signature();
        if let Rotation::Selective { .. } = self.rotation {
            signature.tokens.push(Port {
                name: "angle",
                width: self.places().width / 2,
                meaning: Meaning::Angle,
            });
        }
        signature
    }

    fn order(&self) -> Order {
        self.inner.order()
    }

    fn initial_biases(&self, port: &Port) -> Option<(f64, f64)> {
        self.inner.initial_biases(port)
    }

    fn dynamical_system(&self) -> Option<&dyn DynamicalSystem> {
        // A system whose input is the query or the key would be linear in what is rotated, not in what is given.
        let places = self.places();
        let input = self.inner.dynamical_system()?.input_port();
        (input != places.query && input != places.key).then_some(self as &dyn DynamicalSystem)
    }
}
