//! What is asked: tokens, a head, queries, and perhaps prompt lengths.

use crate::asking::{self, Tokens};
use esscher_core::attention::{Attention, Softmax};
use esscher_lab::keys;
use esscher_lab::specification::{Kind, integers, own};

/// Queries of one request, at most.
const MOST_QUERIES: usize = 100_000;

keys! {
    /// What does a head read?
    pub struct Ask {
        /// A prompt (an array of tokens), or the law of a token
        tokens: Tokens = own(asking::tokens, asking::law_schema()),
        /// The head: U (score) and V (value)
        head: Softmax = asking::any_head(1) => asking::any_head(tokens.dimension()),
        /// One query, or a list of queries
        query: Vec<Vec<f64>> = asking::vectors(1, 1) => asking::vectors(head.query_dimension(), MOST_QUERIES),
        /// For a law of tokens: also how far prompts of these lengths are from the output, root mean square
        length: Vec<u64> = integers(1..=1_000_000_000_000, 0..=200).or([]),
    }
}
