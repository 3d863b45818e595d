//! One trial's prompt as it is read: drawn stream by stream, with a look at the monitor now and then.

use super::SampledPrompts;
use crate::error::Result;
use crate::monitor::Monitor;
use crate::numerics::softmax_sums::{BLOCK, StripSums};
use crate::numerics::{Real, Stream};

/// Tokens drawn from one address of the random stream.
const TOKENS_PER_STREAM: u64 = 8 * BLOCK as u64;

/// Scores computed between two looks at the monitor inside a unit: a fraction of a second.
const SCORES_PER_LOOK: u64 = 1 << 24;

/// Asks the monitor now and then while a long prompt is read.
pub(super) struct Watch<'a> {
    pub(super) monitor: &'a dyn Monitor,
    /// Scores since the last look.
    pub(super) scores: u64,
}

impl Watch<'_> {
    /// After so many tokens more, read by so many queries: whether to go on.
    pub(super) fn goes_on(&mut self, tokens: u64, queries: usize) -> bool {
        self.scores = self.scores.saturating_add(tokens.saturating_mul(queries as u64));
        if self.scores < SCORES_PER_LOOK {
            return true;
        }
        self.scores = 0;
        !self.monitor.should_stop()
    }
}

/// One trial's prompt, drawn stream by stream as it is read.
pub(super) struct TokenStream<'a> {
    prompts: &'a SampledPrompts,
    trial: u32,
    position: u64,
    tokens: Vec<f64>,
}

impl<'a> TokenStream<'a> {
    pub(super) fn new(prompts: &'a SampledPrompts, trial: u32) -> Self {
        TokenStream { prompts, trial, position: 0, tokens: Vec::new() }
    }

    /// Feeds the tokens up to number `end` into the sums, as long as `goes_on` after so many tokens says; whether it
    /// got there.
    pub(super) fn read_until<T: Real>(
        &mut self,
        end: u64,
        sums: &mut StripSums<T>,
        mut goes_on: impl FnMut(u64) -> bool,
    ) -> Result<bool> {
        let dimension = self.prompts.tokens.dimension();
        while self.position < end {
            let (stream, inside) = (self.position / TOKENS_PER_STREAM, self.position % TOKENS_PER_STREAM);
            if inside == 0 {
                self.tokens.resize(TOKENS_PER_STREAM as usize * dimension, 0.0);
                let options = &self.prompts.options;
                let mut numbers = Stream::new(options.seed, self.trial, stream as u32)
                    .with_instruction_set(options.instruction_set);
                self.prompts.tokens.sample(&mut numbers, &mut self.tokens)?;
            }
            let count = (TOKENS_PER_STREAM - inside).min(end - self.position);
            let start = inside as usize * dimension;
            sums.add(&self.tokens[start..start + count as usize * dimension])?;
            self.position += count;
            if !goes_on(count) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
