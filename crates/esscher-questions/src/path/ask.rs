//! What is asked: token laws and their scales, a head, queries, and how far how many prompts grow.

use crate::asking::{self, NamedLaw, TokenLaws};
use esscher_core::attention::Softmax;
use esscher_core::prompt::{Precision, PromptLength};
use esscher_lab::keys;
use esscher_lab::specification::{Kind, Rule, Section, integer, one_of, own};
use serde_json::json;

/// Tokens that a single prompt may have: an hour or so.
const LONGEST: u64 = 100_000_000_000;

const MOST_QUERIES: usize = 64;

keys! {
    /// How does attention approach its limit as one prompt grows?
    pub struct Ask {
        /// The law of a token, or several laws with names
        laws: Vec<NamedLaw> = TokenLaws,
        /// The head: U (score) and V (value)
        head: Softmax = asking::head(1) => asking::head(laws[0].law.dimension()),
        /// Factors that every law is multiplied by
        sigmas: Vec<f64> = asking::sigmas(),
        /// Prompts of each law
        prompts: u64 = integer(1..=10_000).or(4_u64),
        /// Prompt lengths, all of them prefixes of the same tokens
        lengths: Vec<PromptLength> = asking::lengths_up_to(LONGEST),
        /// The queries, a list of vectors; distances are root mean squares over them
        queries: Vec<Vec<f64>> = queries(1) => queries(laws[0].law.dimension()),
        /// The floating-point type of the simulation
        precision: Precision = one_of(&asking::PRECISIONS).or("double"),
    }
}

fn queries(dimension: usize) -> impl Rule<Value = Vec<Vec<f64>>> {
    let read = move |section: &mut Section, key| {
        let queries = section.matrix(key, MOST_QUERIES.max(dimension))?;
        if queries[0].len() != dimension || queries.len() > MOST_QUERIES {
            let (count, found) = (queries.len(), queries[0].len());
            let expected = format!("expected at most {MOST_QUERIES} queries of {dimension} numbers");
            return Err(section.mistake(key, format!("{expected}, found {count} of {found}")));
        }
        Ok(queries)
    };
    own(read, json!({ "type": "array", "format": "vectors" }))
}
