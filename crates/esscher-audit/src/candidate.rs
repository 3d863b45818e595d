//! Candidates: everything that may answer a head's queries instead of exact attention, by name.

use crate::Error;
use crate::eviction::{Eviction, Policy};
use crate::head::Order;
use crate::replacement::{Atoms, BLOCK, Middle, Replacement, exact_bytes};
use std::fmt;

/// What answers a head's queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Candidate {
    /// Exact attention: nothing is replaced.
    Exact,
    /// A measure: atoms, window, `top` exact tokens of the middle, and what stands for the rest of it.
    Measure {
        /// Number of tokens of the middle that are kept exactly.
        top: usize,
        /// What stands for the other tokens of the middle.
        middle: Middle,
    },
    /// The tokens that a policy keeps of the middle.
    Kept {
        /// What decides which tokens are kept.
        policy: Policy,
        /// How many are kept beside the first tokens and the window.
        budget: usize,
    },
}

/// What all candidates of an audit share: what is kept exactly whatever stands for the middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Sinks and other tokens that are kept for ever.
    pub atoms: Atoms,
    /// Last tokens: none where every token sees all, at least one elsewhere.
    pub window: usize,
}

impl Default for Frame {
    /// The first 4 tokens, at most 16 light ones (values below 0.4 of the median norm) and a window of 64.
    fn default() -> Self {
        Frame { atoms: Atoms { first: 4, light: 0.4, most_light: 16 }, window: 64 }
    }
}

impl Frame {
    /// The usual one, which has no window where every token sees all.
    pub fn of(order: Order) -> Self {
        match order {
            Order::Causal => Frame::default(),
            Order::Whole => Frame { window: 0, ..Frame::default() },
        }
    }

    /// The replacement that a candidate means in this frame.
    pub fn replacement(&self, top: usize, middle: Middle) -> Replacement {
        Replacement { atoms: self.atoms, window: self.window, top, middle }
    }

    /// The first position of a causal text at which something has left the window and is no atom for being early.
    pub fn first_replaced(&self) -> usize {
        (self.atoms.first.saturating_add(self.window) / BLOCK).saturating_add(1).saturating_mul(BLOCK)
    }

    /// Exact tokens that every candidate keeps at most: first, light, window and its block.
    pub fn tokens(&self) -> usize {
        self.replacement(0, Middle::Dropped).exact_tokens()
    }

    /// How many of the tokens that the last query of a text sees are the middle, at least and at most: how many light ones are kept is
    /// the head's affair.
    pub fn middle_at_the_end(&self, order: Order, length: usize) -> (usize, usize) {
        let left = match order {
            Order::Causal => (length.saturating_sub(1) / BLOCK * BLOCK).saturating_sub(self.window),
            Order::Whole => length,
        };
        let most = left.saturating_sub(self.atoms.first);
        (most.saturating_sub(self.atoms.most_light), most)
    }
}

impl Candidate {
    /// Atoms and window alone: the cheapest measure.
    pub const DROPPED: Candidate = Candidate::Measure { top: 0, middle: Middle::Dropped };

    /// One Gaussian about the tilt of its readers.
    pub const TILTED_GAUSSIAN: Candidate = Candidate::Measure { top: 0, middle: Middle::TiltedGaussian };

    /// Token-equivalents of its state beside the frame's.
    pub fn middle_tokens(&self, dimension: usize) -> f64 {
        match self {
            Candidate::Exact => f64::INFINITY,
            Candidate::Measure { top, middle } => *top as f64 + middle.state_tokens(dimension),
            Candidate::Kept { budget, .. } => *budget as f64,
        }
    }

    /// Bytes that a key-value head holds after a text of this many tokens, whose numbers take `bytes_per_number`; moments are kept in
    /// single precision.
    pub fn bytes(&self, frame: &Frame, dimension: usize, tokens: usize, bytes_per_number: usize) -> usize {
        match *self {
            Candidate::Exact => exact_bytes(dimension, tokens, bytes_per_number),
            Candidate::Measure { top, middle } => {
                frame.replacement(top, middle).bytes(dimension, tokens, bytes_per_number)
            }
            Candidate::Kept { policy, budget } => {
                let eviction = Eviction::beside(policy, &frame.atoms, frame.window, budget);
                match (policy, eviction.as_replacement(Order::Causal)) {
                    // Its clusters are moments like others'.
                    (Policy::ClusterMeans, Some(clusters)) => {
                        clusters.bytes(dimension, tokens, bytes_per_number)
                    }
                    _ => {
                        let kept = frame.tokens().saturating_add(budget);
                        exact_bytes(dimension, kept.min(tokens), bytes_per_number)
                    }
                }
            }
        }
    }
}

impl fmt::Display for Candidate {
    /// `exact`, `tilted-gaussian`, `top-32+tilted-means/32`, `expected-attention/64`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Candidate::Exact => formatter.write_str("exact"),
            Candidate::Measure { top: 0, middle } => write!(formatter, "{middle}"),
            Candidate::Measure { top, middle } => write!(formatter, "top-{top}+{middle}"),
            Candidate::Kept { policy, budget } => write!(formatter, "{policy}/{budget}"),
        }
    }
}

impl std::str::FromStr for Candidate {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let refused = |expected: &str| {
            let (name, expected) = (name.to_string(), expected.to_string());
            Err(Error::UnknownName { kind: "a candidate", name, expected })
        };
        if name == "exact" {
            return Ok(Candidate::Exact);
        }
        if let Some((policy, budget)) = name.split_once('/')
            && let Ok(policy) = policy.parse::<Policy>()
        {
            return match budget.parse() {
                Ok(budget @ 1..=65_536) => Ok(Candidate::Kept { policy, budget }),
                _ => refused("a budget of 1 to 65536 tokens"),
            };
        }
        let (top, middle) = match name.strip_prefix("top-").and_then(|rest| rest.split_once('+')) {
            Some((top, middle)) => match top.parse() {
                Ok(top @ 1..=65_536) => (top, middle),
                _ => return refused("top-N to keep from 1 to 65536 tokens"),
            },
            None => (0, name),
        };
        match middle.parse::<Middle>() {
            Err(_) => refused(&expected_names()),
            Ok(Middle::Exact) => refused("exact alone, for an exact middle has nothing beside it"),
            Ok(middle) => Ok(Candidate::Measure { top, middle }),
        }
    }
}

/// Every family of candidates but `exact`, which replaces nothing.
fn expected_names() -> String {
    let policies = Policy::ALL.map(|policy| format!("{policy}/B")).join(", ");
    format!("{}; top-N+ before one of these; or one of {policies}; N and B from 1 to 65536", Middle::NAMES)
}
