//! What is asked: tokens, a head, queries, and perhaps prompt lengths.

use crate::asking::{self, Tokens};
use esscher_core::attention::{Attention, Softmax};
use esscher_lab::keys;
use esscher_lab::specification::{Kind, integers, own};
use serde_json::json;

/// Queries of one request, at most.
const MOST_QUERIES: usize = 100_000;

keys! {
    /// What does a head read?
    pub struct Ask {
        /// A prompt (an array of tokens), or the law of a token
        tokens: Tokens = own(asking::tokens, asking::law_schema()),
        /// The head: U (score) and V (value)
        head: Softmax = own(|section, key| asking::any_head(section, key, 1), asking::head_schema()).optional()
            => own(|section, key| asking::any_head(section, key, tokens.dimension()), asking::head_schema()),
        /// One query, or a list of queries
        query: Vec<Vec<f64>> = own(
            |section, key| asking::vectors(section, key, 1, 1),
            json!({ "type": "array", "format": "vectors" }),
        ) => own(
            |section, key| asking::vectors(section, key, head.query_dimension(), MOST_QUERIES),
            json!({}),
        ),
        /// For a law of tokens: also how far prompts of these lengths are from the output, root mean square
        length: Vec<u64> = integers(1..=1_000_000_000_000, 0..=200).or([]),
    }
}
