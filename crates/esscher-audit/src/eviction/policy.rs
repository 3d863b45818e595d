//! Which tokens are worth their place.

use crate::head::Order;
use crate::names::names;
use crate::replacement::{Atoms, BLOCK, Middle, Replacement};

/// What decides which older tokens are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The first tokens and the last.
    SinkWindow,
    /// The attention that a token has received so far, summed over queries.
    ObservedAttention,
    /// The attention that readers are expected to pay, E e^{θ·k} for Gaussian tilts of each query head, normalised and averaged over
    /// them, times the norm of the value.
    ExpectedAttention,
    /// None is: all join tilted means of clusters.
    ClusterMeans,
}

names!(Policy, "an eviction", {
    SinkWindow => "sink-window",
    ObservedAttention => "observed-attention",
    ExpectedAttention => "expected-attention",
    ClusterMeans => "cluster-means",
});

/// A policy with its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eviction {
    /// What decides which tokens are kept.
    pub policy: Policy,
    /// First tokens that are never evicted.
    pub sinks: usize,
    /// Last tokens before the block that are not evicted.
    pub recent: usize,
    /// Further tokens, which the policy chooses.
    pub chosen: usize,
}

impl Eviction {
    /// A policy beside the atoms and the window of replacements, with `chosen` tokens where they have a middle. The places that
    /// replacements have for light tokens are the policy's to fill, so that the budgets are equal.
    pub fn beside(policy: Policy, atoms: &Atoms, window: usize, chosen: usize) -> Eviction {
        Eviction {
            policy,
            sinks: atoms.first,
            recent: window,
            chosen: chosen.saturating_add(atoms.most_light),
        }
    }

    /// Most tokens that are held at any time of a text that is read from left to right.
    pub fn budget(&self) -> usize {
        self.kept().saturating_add(BLOCK)
    }

    /// Most tokens that survive an eviction.
    pub(crate) fn kept(&self) -> usize {
        self.sinks.saturating_add(self.recent).saturating_add(self.chosen)
    }

    /// The replacement that this is, if it is one. Where every token sees all there is no window, and cluster means have its
    /// places.
    pub fn as_replacement(&self, order: Order) -> Option<Replacement> {
        let atoms = Atoms { first: self.sinks, light: 0.0, most_light: 0 };
        let both = self.recent.saturating_add(self.chosen);
        match (self.policy, order) {
            (Policy::SinkWindow, Order::Causal) => {
                Some(Replacement { atoms, window: both, top: 0, middle: Middle::Dropped })
            }
            (Policy::ClusterMeans, Order::Causal) => {
                let middle = Middle::TiltedMeans { count: self.chosen };
                Some(Replacement { atoms, window: self.recent, top: 0, middle })
            }
            (Policy::ClusterMeans, Order::Whole) => {
                Some(Replacement { atoms, window: 0, top: 0, middle: Middle::TiltedMeans { count: both } })
            }
            _ => None,
        }
    }
}
