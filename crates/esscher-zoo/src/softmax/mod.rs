//! Softmax attention: o_t = Σ_r p_tr v_r, p_t = softmax over the visible r of q_t·k_r/√d_k (key `vaswani2017`).
//!
//! A query and a key of width d_k and a value of width d_v per token. The state is the cache, one slot (key, then value) per
//! token. It grows by a slot a token, except with [`Reach::Window`]: there it is a ring of w slots, allocated from the start
//! so that memory is constant; token i stands in slot i mod w, and slots of tokens that do not exist yet are zero and unread.
//!
//! A query one of whose scores overflows has no weights: its output is NaN in every form, and so is every derivative that it
//! enters. Shares among infinite scores would be finite numbers that mean nothing.

mod chunked;
mod recurrent;
mod reference;
pub mod taylor_realisation;

use crate::mechanism::{Mechanism, Order, Signature};
use crate::number::Number;
use std::ops::Range;

/// Which tokens a token sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All tokens, later ones too.
    Whole,
    /// The tokens up to itself.
    Causal,
    /// The last so many tokens, itself included; 0 counts as 1.
    Window(usize),
}

/// Softmax attention.
///
/// It is no finite linear dynamical system; [`taylor_realisation`] has finite ones that approach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Softmax {
    /// Width of queries and keys.
    pub key_width: usize,
    /// Width of values and outputs.
    pub value_width: usize,
    /// Which tokens a token sees.
    pub reach: Reach,
}

/// Places of the token ports.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

impl Softmax {
    /// The factor on every score, 1/√d_k.
    pub fn scale(&self) -> f64 {
        1.0 / (self.key_width as f64).sqrt()
    }

    /// Slots of the ring, if the cache is one.
    fn ring(&self) -> Option<usize> {
        match self.reach {
            Reach::Window(tokens) => Some(tokens.max(1)),
            Reach::Whole | Reach::Causal => None,
        }
    }

    /// Numbers of one slot.
    fn slot_width(&self) -> usize {
        self.key_width + self.value_width
    }

    /// Where the token of this index stands in the cache.
    fn slot(&self, token: usize) -> Range<usize> {
        let from = self.ring().map_or(token, |slots| token % slots) * self.slot_width();
        from..from + self.slot_width()
    }

    /// How many of the tokens absorbed the cache still has.
    fn cached(&self, seen: usize) -> usize {
        self.ring().map_or(seen, |slots| slots.min(seen))
    }
}

/// s q·k, added in order: all forms find the same scores infinite.
fn score<N: Number>(query: &[N], key: &[N], scale: N) -> N {
    query.iter().zip(key).fold(N::zero(), |sum, (&q, &k)| sum + q * k) * scale
}

fn all_finite<N: Number>(scores: &[N]) -> bool {
    scores.iter().all(|score| score.value().is_finite())
}

impl Mechanism for Softmax {
    fn signature(&self) -> Signature {
        Signature::attention(self.key_width, self.value_width)
    }

    fn order(&self) -> Order {
        match self.reach {
            Reach::Whole => Order::Whole,
            Reach::Causal | Reach::Window(_) => Order::Causal,
        }
    }
}
