//! How much memory a replacement takes, in tokens and in bytes.

use super::{BLOCK, Middle, Replacement};

/// Bytes of a number of a state: moments are kept in single precision whatever the tokens are kept in, since a mean over many
/// tokens stands still in half precision.
const BYTES_OF_A_MOMENT: usize = 4;

impl Replacement {
    /// The most that the state takes at any length, in tokens of 2d numbers; infinite for [`Middle::Exact`].
    pub fn state_tokens(&self, dimension: usize) -> f64 {
        self.exact_tokens() as f64 + self.middle.state_tokens(dimension)
    }

    /// The most tokens that are kept exactly: atoms, top tokens, and the window at its longest.
    pub(crate) fn exact_tokens(&self) -> usize {
        let rest = [self.atoms.most_light, self.top, self.longest_window()];
        rest.into_iter().fold(self.atoms.first, usize::saturating_add)
    }

    fn longest_window(&self) -> usize {
        if self.window == 0 { 0 } else { self.window.saturating_add(BLOCK) }
    }

    /// Bytes of the state of one key-value head after a text of this many tokens, everything included: exact tokens with
    /// `bytes_per_number` for each number of keys and values, the moments, log-masses and boxes of the guard in single precision
    /// (a symmetric covariance once). A text that is kept whole costs what exact attention costs.
    pub fn bytes(&self, dimension: usize, tokens: usize, bytes_per_number: usize) -> usize {
        let whole = exact_bytes(dimension, tokens, bytes_per_number);
        if self.middle == Middle::Exact || tokens <= self.longest_window() {
            return whole;
        }
        let state = exact_bytes(dimension, self.exact_tokens().min(tokens), bytes_per_number)
            .saturating_add(self.middle.numbers(dimension).saturating_mul(BYTES_OF_A_MOMENT));
        // A short text is simply kept.
        state.min(whole)
    }
}

/// Bytes of exact attention's keys and values of one key-value head.
pub fn exact_bytes(dimension: usize, tokens: usize, bytes_per_number: usize) -> usize {
    dimension.saturating_mul(2).saturating_mul(tokens).saturating_mul(bytes_per_number)
}

impl Middle {
    /// Token-equivalents of the middle, infinite for [`Middle::Exact`]: 1 for a tilted mean, for a Gaussian all its numbers (moments,
    /// a symmetric covariance once, the boxes of the guard) in tokens of 2d: about 2 + r/2 + r/d + r²/4d for rank r, 51.3 at d = r = 64.
    pub fn state_tokens(&self, dimension: usize) -> f64 {
        match *self {
            Middle::Exact => f64::INFINITY,
            Middle::Dropped => 0.0,
            Middle::Mean => 1.0,
            Middle::TiltedMeans { count } => count as f64,
            gaussian => gaussian.numbers(dimension) as f64 / (2 * dimension.max(1)) as f64,
        }
    }

    /// Numbers of the middle: means, covariances, log-mass, boxes.
    fn numbers(&self, dimension: usize) -> usize {
        let d = dimension;
        let mean = 2 * d + 1;
        let gaussian = |rank: usize| {
            let r = rank.min(d);
            mean + r * (r + 1) / 2 + d * r + 2 * (r + d)
        };
        match *self {
            Middle::Exact | Middle::Dropped => 0,
            Middle::Mean => mean,
            Middle::Gaussian | Middle::TiltedGaussian => gaussian(d),
            Middle::ReducedGaussian { rank } => gaussian(rank),
            Middle::TiltedMeans { count } => count.saturating_mul(mean),
            Middle::TiltedGaussians { count } => count.saturating_mul(gaussian(d)),
        }
    }
}
