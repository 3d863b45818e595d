//! Mechanisms that forget: their output keeps a stationary law, whose mean is a geometric sum where the mechanism is a linear system.

use super::{Draws, Fate, LargePrompt, Limit, Setting, Stationary, sampled_limit, stationary};
use crate::error::Result;
use crate::gated_linear_attention::GatedLinearAttention;
use crate::mechanism::Mechanism;
use crate::mlstm::MatrixLstm;
use crate::quasi_lstm::QuasiLstm;
use crate::s6::S6;
use crate::ssd::StateSpaceDuality;

/// The mean by geometric sums where gates are constant; gates that depend on the token are sampled.
fn stationary_mean(mechanism: &dyn Mechanism, setting: &Setting, draws: &Draws) -> Result<Limit> {
    match stationary(mechanism, setting, draws) {
        Ok(law) => Ok(law.mean),
        Err(crate::Error::Missing { .. }) => {
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

linear_systems!(GatedLinearAttention, StateSpaceDuality, S6, QuasiLstm);

/// Its output is a ratio of two stationary sums, whose mean is sampled.
impl LargePrompt for MatrixLstm {
    fn fate(&self) -> Fate {
        Fate::StationaryLaw
    }

    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        stationary_mean(self, setting, draws)
    }
}
