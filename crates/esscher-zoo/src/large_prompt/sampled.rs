//! Limits by sampling: independent long prompts, read at their end, averaged; the answer where no closed form is known.

use super::finite::{check_amount, read_prompt};
use super::{Limit, Reading, Setting};
use crate::error::{Error, Result};
use crate::mechanism::Mechanism;
use esscher_core::Accuracy;
use esscher_core::numerics::Stream;
use esscher_core::numerics::statistics::Summary;
use rayon::prelude::*;

/// How much is drawn where something has to be sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// Tokens of one prompt.
    pub tokens: usize,
    /// Independent prompts, at least 2.
    pub prompts: u32,
    /// The seed that prompts are drawn from.
    pub seed: u64,
}

impl Default for Draws {
    /// 64 prompts of 4096 tokens.
    fn default() -> Self {
        Draws { tokens: 4096, prompts: 64, seed: 0x6c61_7267_6570_726f }
    }
}

impl Draws {
    /// As many tokens in all, in prompts of another length.
    pub fn in_prompts_of(self, tokens: usize) -> Self {
        let total = (self.tokens as u64).saturating_mul(u64::from(self.prompts));
        let prompts = (total / tokens.max(1) as u64).clamp(2, 1 << 16) as u32;
        Draws { tokens, prompts, ..self }
    }
}

/// The mean over independent long prompts, with its standard error.
///
/// What finite length adds to the mean of an average is of order 1/tokens, below the standard error, which is of order
/// 1/√(tokens · prompts), as long as there are fewer prompts than tokens. For stationary laws the length must exceed the horizon.
///
/// # Errors
/// Fewer than two prompts, or a setting that does not fit the mechanism.
pub fn sampled_limit(
    mechanism: &dyn Mechanism,
    setting: &Setting,
    draws: &Draws,
    reading: Reading,
) -> Result<Limit> {
    if draws.prompts < 2 || draws.tokens < 1 {
        return Err(Error::Option {
            name: "draws",
            expected: "at least 2 prompts of at least 1 token".to_string(),
            found: format!("{} of {}", draws.prompts, draws.tokens),
        });
    }
    check_amount("draws", draws.tokens, draws.prompts)?;
    let signature = mechanism.signature();
    let feed = setting.feed(&signature)?;
    let factor = match reading {
        Reading::Output => 1.0,
        Reading::PerToken => 1.0 / draws.tokens as f64,
    };
    let outputs: Vec<Vec<f64>> = (0..draws.prompts)
        .into_par_iter()
        .map(|prompt| {
            let mut stream = Stream::new(draws.seed, prompt, 1);
            Ok(read_prompt(mechanism, &feed, &[draws.tokens], &mut stream)?.concat())
        })
        .collect::<Result<_>>()?;
    let overflow = || Error::Core(esscher_core::Error::Overflow { what: "a sampled limit" });
    let mut value = Vec::with_capacity(signature.output);
    let mut squared_error = 0.0;
    for c in 0..signature.output {
        let mut summary = Summary::new();
        outputs.iter().for_each(|output| summary.add(factor * output[c]));
        value.push(summary.mean().ok_or_else(overflow)?);
        squared_error += summary.standard_error().ok_or_else(overflow)?.powi(2);
    }
    Ok(Limit { value, error: squared_error.sqrt(), accuracy: Accuracy::Sampled })
}
