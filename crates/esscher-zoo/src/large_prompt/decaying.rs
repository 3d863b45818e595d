//! Mechanisms that forget: their output keeps a stationary law whose mean is a geometric sum.

use super::{Draws, Fate, LargePrompt, Limit, Setting, Stationary, TokenMoments, stationary};
use crate::error::Result;
use crate::gated_linear_attention::GatedLinearAttention;
use esscher_core::numerics::linalg;

impl LargePrompt for GatedLinearAttention {
    fn fate(&self) -> Fate {
        Fate::StationaryLaw
    }

    /// s Σ_a q_a E[k_a v]/(1 − α_a), exact for every token law when the decays are constant.
    fn limit(&self, setting: &Setting, draws: &Draws) -> Result<Limit> {
        let moments = TokenMoments::second_moments(setting);
        if let (Ok(moments), Some(query), Some(decays)) =
            (moments, setting.constant("query"), setting.constant_port(self, "log_decay"))
            && decays.iter().all(|&decay| decay < 0.0)
        {
            let weights: Vec<f64> = query
                .iter()
                .zip(&decays)
                .map(|(q, log_decay)| self.scale() * q / -log_decay.exp_m1())
                .collect();
            return Ok(Limit::closed(linalg::apply_transpose(moments.key_value.as_ref(), &weights)));
        }
        Ok(stationary(self, setting, draws)?.mean)
    }

    fn stationary(&self, setting: &Setting, draws: &Draws) -> Result<Option<Stationary>> {
        let mean = self.limit(setting, draws)?;
        Ok(Some(Stationary { mean, ..stationary(self, setting, draws)? }))
    }
}
