//! What is asked: token laws, a head, and the sizes and directions of queries.

use crate::asking::{self, NamedLaw, TokenLaws};
use esscher_core::attention::Softmax;
use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, integer, reals};

keys! {
    /// Is attention linear in the query?
    pub struct Ask {
        /// The law of a token, or several laws with names
        laws: Vec<NamedLaw> = TokenLaws,
        /// The head: U (score) and V (value)
        head: Softmax = asking::head(1) => asking::head(laws[0].law.dimension()),
        /// Sizes of the queries
        radii: Vec<f64> = reals(Bounds::Between(1e-6, 1e6), 1..=200).or([0.5, 1.0, 2.0, 4.0]),
        /// Directions of the queries, drawn from the seed; at least two for each dimension, 64 or more by default
        directions: u64 = integer(2..=100_000)
            => integer(least_directions(&laws)..=100_000).or(least_directions(&laws).max(64)),
    }
}

fn least_directions(laws: &[NamedLaw]) -> u64 {
    2 * laws[0].law.dimension() as u64
}
