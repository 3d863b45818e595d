//! The number of tokens of a prompt, from one to a trillion.

use crate::error::{Error, Result};

/// A whole number of tokens, from 1 to 10¹².
///
/// ```
/// use esscher_core::prompt::PromptLength;
/// assert_eq!(PromptLength::try_from(1e6)?.get(), 1_000_000);
/// assert!(PromptLength::try_from(2.5).is_err());
/// # Ok::<(), esscher_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PromptLength(u64);

/// Lengths that [`PromptLength::logarithmic`] makes at most.
const MAX_COUNT: usize = 1_000_000;

impl PromptLength {
    /// The shortest prompt.
    pub const MIN: PromptLength = PromptLength(1);
    /// The longest prompt.
    pub const MAX: PromptLength = PromptLength(1_000_000_000_000);

    /// This many tokens.
    pub fn new(tokens: u64) -> Result<Self> {
        if (PromptLength::MIN.0..=PromptLength::MAX.0).contains(&tokens) {
            return Ok(PromptLength(tokens));
        }
        Err(Error::PromptLength { minimum: PromptLength::MIN.0, found: tokens as f64 })
    }

    /// `count` lengths evenly spread on a logarithmic scale from one length to another, both included;
    /// lengths that round to the same whole number appear once.
    ///
    /// One length is `from`, none is an empty list. More than a million are not made: a larger `count` counts as
    /// a million.
    ///
    /// ```
    /// use esscher_core::prompt::PromptLength;
    /// let tokens = |count| PromptLength::logarithmic(PromptLength::MIN, PromptLength::MAX, count);
    /// assert_eq!(tokens(3).iter().map(|length| length.get()).collect::<Vec<_>>(), [1, 1_000_000, 1_000_000_000_000]);
    /// assert_eq!(tokens(1), [PromptLength::MIN]);
    /// ```
    pub fn logarithmic(from: PromptLength, to: PromptLength, count: usize) -> Vec<PromptLength> {
        let count = count.min(MAX_COUNT);
        let (start, end) = (from.as_f64().ln(), to.as_f64().ln());
        let steps = count.saturating_sub(1).max(1) as f64;
        let mut lengths: Vec<PromptLength> = (0..count)
            .map(|k| {
                let length = (start + (end - start) * k as f64 / steps).exp().round() as u64;
                PromptLength(length.clamp(from.0.min(to.0), from.0.max(to.0)))
            })
            .collect();
        lengths.dedup();
        lengths
    }

    /// The number of tokens.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The number of tokens as a float, exactly.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

impl TryFrom<u64> for PromptLength {
    type Error = Error;

    fn try_from(tokens: u64) -> Result<Self> {
        PromptLength::new(tokens)
    }
}

impl TryFrom<f64> for PromptLength {
    type Error = Error;

    fn try_from(tokens: f64) -> Result<Self> {
        if tokens.fract() == 0.0 && (1.0..=PromptLength::MAX.as_f64()).contains(&tokens) {
            return Ok(PromptLength(tokens as u64));
        }
        Err(Error::PromptLength { minimum: PromptLength::MIN.0, found: tokens })
    }
}

impl std::fmt::Display for PromptLength {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_count_of_lengths_is_too_large_to_ask_for() {
        let lengths = PromptLength::logarithmic(PromptLength::MIN, PromptLength::MAX, usize::MAX);
        assert!(lengths.len() <= MAX_COUNT && lengths.is_sorted());
        assert_eq!((lengths[0], lengths[lengths.len() - 1]), (PromptLength::MIN, PromptLength::MAX));
        assert!(PromptLength::logarithmic(PromptLength::MIN, PromptLength::MAX, 0).is_empty());
    }
}
