//! Mechanisms that forget: their output keeps a stationary law, whose mean is a geometric sum where the mechanism is a linear system.

use super::{Draws, Fate, LargePrompt, Limit, Setting, Stationary, sampled_limit, stationary};
use crate::delta_rule::DeltaRule;
use crate::error::{Error, Result};
use crate::gated_linear_attention::GatedLinearAttention;
use crate::mechanism::Mechanism;
use crate::metala::{Augmentation, MetaLinearAttention};
use crate::mlstm::MatrixLstm;
use crate::quasi_lstm::QuasiLstm;
use crate::rg_lru::RgLru;
use crate::s4::S4;
use crate::s6::S6;
use crate::ssd::StateSpaceDuality;

/// The mean by geometric sums where gates are constant; gates that depend on the token are sampled.
fn stationary_mean(mechanism: &dyn Mechanism, setting: &Setting, draws: &Draws) -> Result<Limit> {
    match stationary(mechanism, setting, draws) {
        Ok(law) => Ok(law.mean),
        Err(Error::Missing { .. }) => {
            let fate = Fate::StationaryLaw;
            sampled_limit(mechanism, setting, &draws.in_prompts_of(STATIONARY), fate.reading())
        }
        Err(error) => Err(error),
    }
}

/// Tokens after which a sampled law counts as stationary: some fifty horizons of the default gates.
const STATIONARY: usize = 512;

macro_rules! linear_systems {
    ($($mechanism:ty),*) => {$(
        impl LargePrompt for $mechanism {
            fn fate(&self) -> Fate {
                Fate::StationaryLaw
            }

            fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
                stationary_mean(self, setting, draws)
            }

            fn stationary(&self, setting: &Setting, draws: &Draws) -> Result<Option<Stationary>> {
                stationary(self, setting, draws).map(Some)
            }
        }
    )*};
}

linear_systems!(GatedLinearAttention, StateSpaceDuality, S6, S4, QuasiLstm, RgLru);

/// Its output is a ratio of two stationary sums, whose mean is sampled.
impl LargePrompt for MatrixLstm {
    fn fate(&self) -> Fate {
        Fate::StationaryLaw
    }

    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        stationary_mean(self, setting, draws)
    }
}

impl LargePrompt for MetaLinearAttention {
    fn fate(&self) -> Fate {
        Fate::StationaryLaw
    }

    /// s Σ_a q_a E v, since its weights sum to one, and the self-augmentation E σ(c v), which is 1/2 where c = q·(w ⊙ (1 − α)) is zero.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let parameters = setting.parameters(&self.signature())?;
        let silent = parameters.iter().flatten().all(|&weight| weight == 0.0);
        match self.augmentation {
            Augmentation::SelfAttending if silent => {
                let linear = MetaLinearAttention { augmentation: Augmentation::Off, ..*self };
                let mut limit = stationary_mean(&linear, setting, draws)?;
                limit.value.iter_mut().for_each(|entry| *entry += 0.5);
                Ok(limit)
            }
            Augmentation::SelfAttending | Augmentation::Off => stationary_mean(self, setting, draws),
        }
    }

    fn stationary(&self, setting: &Setting, draws: &Draws) -> Result<Option<Stationary>> {
        match self.augmentation {
            Augmentation::SelfAttending => Ok(None),
            Augmentation::Off => stationary(self, setting, draws).map(Some),
        }
    }
}

/// Taking means in S_t = S_{t−1} − β k̂(k̂ᵀS_{t−1} − vᵀ), where S_{t−1} is independent of the token, the stationary mean of S is
/// E[k̂k̂ᵀ]⁻¹E[k̂vᵀ]: the least-squares map from normalised keys to values, whatever the constant β > 0. The mean read is sampled.
impl LargePrompt for DeltaRule {
    fn fate(&self) -> Fate {
        Fate::StationaryLaw
    }

    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let fate = self.fate();
        sampled_limit(self, setting, &draws.in_prompts_of(STATIONARY), fate.reading())
    }
}
