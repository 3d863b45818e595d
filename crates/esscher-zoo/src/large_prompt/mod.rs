//! The large-prompt question, asked of every mechanism: what is read after L → ∞ independent tokens, and how fast is it reached?
//!
//! Tokens x₁, x₂, … are independent draws of a [`Measure`](esscher_core::measure::Measure); a [`Setting`] says how every port is made
//! of them: key = K x, value = V x, gates constant or functions of x, and one fixed query q. Absorbing L tokens and then
//! reading makes an operator on prompts of any mechanism. **The last token** is one of the L: its key, value and gates are those of
//! x_L, only its query is q; in causal mechanisms this is the output at the last position, in whole ones the answer to q.
//!
//! Three things can happen, the [`Fate`] of a mechanism:
//! - averages forget no token and converge: softmax to V∇Λ(s Kᵀq) (key `boursier2025`), linear attention to a ratio of two
//!   expectations, InLine to E v + s Cov(φ(k), v)ᵀφ(q);
//! - what decays never settles: the output keeps a stationary law whose mean and variance are geometric sums;
//! - what neither averages nor decays grows like L.
//!
//! [`finite`](fn@finite) simulates prompts of several lengths, [`LargePrompt::limit`] says where they go, [`compare`](fn@compare) puts
//! mechanisms side by side.

mod averaging;
mod compare;
mod decaying;
mod finite;
mod moments;
mod sampled;
mod setting;
mod stationary;

pub use averaging::LimitMap;
pub use compare::{Comparison, Contender, compare, softmax_limit};
pub use finite::{AtLength, Finite, Reading, Trials, finite};
pub use moments::{
    Activation, FeatureMoments, Ridge, SecondMoments, TokenMoments, feature_moments, positive_feature_moments,
};
pub use sampled::{Draws, sampled_limit};
pub use setting::{ConstantGates, Setting, Source, TokenFunction};
pub use stationary::{Stationary, stationary};

use crate::error::Result;
use crate::mechanism::Mechanism;
use esscher_core::Accuracy;
use esscher_core::numerics::linalg;

/// What becomes of the output as the prompt grows, for independent tokens and gates that do not change their law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The output converges to a number; its variance falls like 1/L.
    Limit,
    /// The output converges in law and keeps its variance; its mean converges.
    StationaryLaw,
    /// The output grows like L; output/L converges.
    Grows,
}

impl Fate {
    /// As lists print it.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Limit => "limit",
            Fate::StationaryLaw => "stationary law",
            Fate::Grows => "grows",
        }
    }

    /// What has the limit: the output, or the output per token.
    pub fn reading(self) -> Reading {
        match self {
            Fate::Limit | Fate::StationaryLaw => Reading::Output,
            Fate::Grows => Reading::PerToken,
        }
    }
}

/// What a prompt of infinite length gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The limit of the output ([`Fate::Limit`]), of its mean ([`Fate::StationaryLaw`]) or of output/L ([`Fate::Grows`]).
    pub value: Vec<f64>,
    /// How far the whole vector may be off: a bound on |error|, or its standard error (Σ_c se_c²)^{1/2}.
    pub error: f64,
    /// How it was obtained.
    pub accuracy: Accuracy,
}

/// Relative error of a closed form: a few hundred rounded operations.
pub const CLOSED_FORM: f64 = 1e-12;

impl Limit {
    /// A closed form.
    pub fn closed(value: Vec<f64>) -> Self {
        let error = CLOSED_FORM * linalg::root_of_squares(&value);
        Limit { value, error, accuracy: Accuracy::Exact }
    }

    /// |this − other|, the Euclidean distance of two limits of the same width; none where widths differ.
    pub fn distance(&self, other: &Limit) -> Option<f64> {
        (self.value.len() == other.value.len())
            .then(|| linalg::norm(&linalg::difference(&self.value, &other.value)))
    }
}

/// A mechanism whose large-prompt behaviour is known.
///
/// The laws, checked by simulation in `tests/large_prompts.rs`: the fate is what happens, and the limit is where it goes.
pub trait LargePrompt: Mechanism {
    /// What becomes of the output.
    fn fate(&self) -> Fate;

    /// The limit that the fate speaks of; exact where a closed form exists for the token law and the gates of the setting, else sampled
    /// with these draws.
    ///
    /// # Errors
    /// A setting that does not fit the mechanism, or what the token law refuses.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit>;

    /// Mean, remaining variance and memory horizon of the stationary law; none where there is no such law, or none known.
    ///
    /// # Errors
    /// As [`limit`](Self::limit).
    fn stationary(&self, _setting: &Setting, _draws: &Draws) -> Result<Option<Stationary>> {
        Ok(None)
    }
}
