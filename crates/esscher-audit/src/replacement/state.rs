//! How much memory a replacement takes, in tokens and in bytes.

use super::{BLOCK, Middle, Replacement};

impl Replacement {
    /// The most that the state takes at any length, in tokens of 2d numbers; infinite for [`Middle::Exact`].
    ///
    /// Atoms, top tokens and the window at its longest (`window + BLOCK`) count 1 each; a tilted mean 1, a tilted Gaussian
    /// d + 1 (m_k, m_v, C_kk, C_vk), of rank r (2d + r² + dr)/2d. The boxes of the guard are counted by [`Self::bytes`] only.
    pub fn state_tokens(&self, dimension: usize) -> f64 {
        self.exact_tokens().saturating_add(BLOCK) as f64 + self.middle.state_tokens(dimension)
    }

    /// Tokens that are kept exactly, the window at its shortest.
    fn exact_tokens(&self) -> usize {
        [self.atoms.most_light, self.top, self.window]
            .into_iter()
            .fold(self.atoms.first, usize::saturating_add)
    }

    /// Bytes of the state of one key-value head after a text of this many tokens, everything included: exact tokens, moments
    /// (a symmetric covariance once), log-masses and the boxes of the guard. Never more than exact attention while nothing
    /// has left the window.
    pub fn bytes(&self, dimension: usize, tokens: usize, bytes_per_number: usize) -> usize {
        let room = self.exact_tokens().saturating_add(BLOCK);
        if self.middle == Middle::Exact || tokens <= self.window.saturating_add(BLOCK) {
            return exact_bytes(dimension, tokens, bytes_per_number);
        }
        2 * dimension * room.min(tokens) * bytes_per_number
            + self.middle.numbers(dimension) * bytes_per_number
    }
}

/// Bytes of exact attention's keys and values of one key-value head.
pub fn exact_bytes(dimension: usize, tokens: usize, bytes_per_number: usize) -> usize {
    2 * dimension * tokens * bytes_per_number
}

impl Middle {
    /// Token-equivalents of the middle: a tilted mean 1, a tilted Gaussian d + 1, of rank r (2d + r² + dr)/2d.
    pub fn state_tokens(&self, dimension: usize) -> f64 {
        let d = dimension as f64;
        let gaussian = |rank: usize| {
            let r = rank.min(dimension) as f64;
            (2.0 * d + r * r + d * r) / (2.0 * d).max(1.0)
        };
        match *self {
            Middle::Exact => f64::INFINITY,
            Middle::Dropped => 0.0,
            Middle::Mean => 1.0,
            Middle::Gaussian | Middle::TiltedGaussian => gaussian(dimension),
            Middle::ReducedGaussian { rank } => gaussian(rank),
            Middle::TiltedMeans { count } => count as f64,
            Middle::TiltedGaussians { count } => count as f64 * gaussian(dimension),
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
            Middle::TiltedMeans { count } => count * mean,
            Middle::TiltedGaussians { count } => count * gaussian(d),
        }
    }
}
