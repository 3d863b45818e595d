//! What stands around a text: the tokens that a model was trained to see before and behind it.

/// Tokens in front of a text and behind it, such as \[CLS\] and \[SEP\]; the default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// Tokens before the text.
    pub prefix: Vec<u32>,
    /// Tokens after the text.
    pub suffix: Vec<u32>,
}

impl Template {
    /// The text with its tokens around it.
    pub fn around(&self, text: &[u32]) -> Vec<u32> {
        [&self.prefix, text, &self.suffix].concat()
    }

    /// The tokens that a text of `length` tokens leaves for the text itself.
    pub fn room(&self, length: usize) -> usize {
        length.saturating_sub(self.prefix.len() + self.suffix.len())
    }
}
