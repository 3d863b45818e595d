//! Which tokens are worth their place.

use crate::Error;
use crate::replacement::{Atoms, BLOCK, Middle, Replacement};
use std::fmt;

/// What decides which older tokens are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The first tokens and the last.
    SinkWindow,
    /// The attention that a token has received so far, summed over queries.
    ObservedAttention,
    /// The attention that readers are expected to pay, E e^{θ·k} for Gaussian tilts, times the norm of the value.
    ExpectedAttention,
    /// None is: all join tilted means of clusters.
    ClusterMeans,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] =
        [Policy::SinkWindow, Policy::ObservedAttention, Policy::ExpectedAttention, Policy::ClusterMeans];
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Policy::SinkWindow => "sink-window",
            Policy::ObservedAttention => "observed-attention",
            Policy::ExpectedAttention => "expected-attention",
            Policy::ClusterMeans => "cluster-means",
        })
    }
}

impl std::str::FromStr for Policy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Policy::ALL.into_iter().find(|policy| policy.to_string() == name).ok_or_else(|| {
            Error::Request(format!(
                "`{name}` is no eviction; there are sink-window, observed-attention, expected-attention, cluster-means"
            ))
        })
    }
}

/// A policy with its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Eviction {
    /// What decides.
    pub policy: Policy,
    /// Most tokens that are held at any time, [`BLOCK`] of them for the block that is being read.
    pub budget: usize,
    /// First tokens that are never evicted.
    pub sinks: usize,
    /// Last tokens before the block that are not evicted; for [`Policy::SinkWindow`] all that the sinks leave.
    pub recent: usize,
}

impl Eviction {
    /// A policy as it is usually run: four sinks, as StreamingLLM and KVPress have (H2O names none, but finds them), and half
    /// of the rest for recent tokens, as in H2O. KVPress keeps none for being recent: set `recent` to 0 for that.
    pub fn usual(policy: Policy, budget: usize) -> Eviction {
        let sinks = 4;
        let rest = budget.saturating_sub(BLOCK + sinks);
        let recent = if policy == Policy::SinkWindow { rest } else { rest / 2 };
        Eviction { policy, budget, sinks, recent }
    }

    /// Tokens that are left for the policy to choose.
    pub(crate) fn chosen(&self) -> usize {
        match self.policy {
            Policy::SinkWindow => 0,
            _ => self.budget.saturating_sub(BLOCK.saturating_add(self.sinks).saturating_add(self.recent)),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let need = BLOCK.saturating_add(self.sinks).saturating_add(match self.policy {
            Policy::SinkWindow => 1,
            _ => self.recent.saturating_add(1),
        });
        if self.budget < need {
            return Err(Error::Request(format!(
                "{} needs a budget of at least {need} tokens ({BLOCK} for a block, {} sinks, recent ones and one more), \
                 but has {}",
                self.policy, self.sinks, self.budget
            )));
        }
        Ok(())
    }

    /// The replacement that this is, if it is one.
    pub fn as_replacement(&self) -> Option<Replacement> {
        let atoms = Atoms { first: self.sinks, light: 0.0, most_light: 0 };
        match self.policy {
            Policy::SinkWindow => {
                let window = self.budget.saturating_sub(BLOCK.saturating_add(self.sinks));
                Some(Replacement { atoms, window, top: 0, middle: Middle::Dropped })
            }
            Policy::ClusterMeans => {
                let middle = Middle::TiltedMeans { count: self.chosen() };
                Some(Replacement { atoms, window: self.recent, top: 0, middle })
            }
            Policy::ObservedAttention | Policy::ExpectedAttention => None,
        }
    }
}
