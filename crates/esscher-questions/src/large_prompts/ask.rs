//! What is asked: mechanisms, a law of tokens, a query, and prompt lengths to simulate.

use crate::asking;
use esscher_core::measure::Law;
use esscher_core::prompt::PromptLength;
use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, integer, own, reals, some_of};
use esscher_zoo::catalogue::{Entry, catalogue};

fn known() -> Vec<(&'static str, &'static Entry)> {
    catalogue().iter().map(|entry| (entry.name, entry)).collect()
}

keys! {
    /// Where do mechanisms go as prompts grow?
    pub struct Ask {
        /// The mechanisms to compare, by their names in the catalogue
        mechanisms: Vec<&'static Entry> = some_of(&known()),
        /// The law of a token
        tokens: Law = own(asking::law, asking::law_schema()),
        /// The query
        query: Vec<f64> = reals(Bounds::Any, 1..=asking::LARGEST_DIMENSION)
            => reals(Bounds::Any, tokens.dimension()..=tokens.dimension()),
        /// Prompt lengths, up to a million: prompts are absorbed token by token
        lengths: Vec<PromptLength> = asking::lengths_up_to(1_000_000),
        /// Prompts to simulate
        prompts: u64 = integer(2..=1_000_000).or(200_u64),
    }
}
