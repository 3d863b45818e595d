//! What is asked: tokens, a head, one query or a law of queries, and the error to reach.

use crate::asking::{self, Tokens};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::concentration::Quantity;
use esscher_core::measure::Law;
use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, Rule, Section, choice, integer, own, real};

keys! {
    /// How long must a prompt be?
    pub struct Ask {
        /// The root-mean-square error to reach, in the unit of what is measured
        tolerance: f64 = real(Bounds::Positive),
        /// The error of what: the output, or its gradient in U or in V
        quantity: Quantity = choice::<Quantity>().or("output"),
        /// The law of a token; an array of tokens stands for the Gaussian with their mean and covariance
        tokens: Tokens = own(asking::tokens, asking::law_schema()),
        /// The head: U (score) and V (value)
        head: Softmax = asking::any_head(1) => asking::any_head(tokens.dimension()),
        /// One query; or give a law of queries
        query: Option<Vec<f64>> = one_query(1) => one_query(head.query_dimension()),
        /// The law of the queries, averaged over; without it and without a query, the law of the tokens
        queries: Option<Law> = own(
            |section, key| section.form(key).map(|_| asking::law(section, key)).transpose(),
            asking::law_schema(),
        )
        .optional(),
        /// Directions of queries per randomisation; 512, or 8 for mixtures of tokens
        directions: Option<u64> = integer(1..=1 << 20).optional(),
        /// Independent randomisations of the directions; 16, or 4 for mixtures of tokens
        randomisations: Option<u64> = integer(2..=1 << 16).optional(),
    }
}

fn one_query(dimension: usize) -> impl Rule<Value = Option<Vec<f64>>> {
    let vectors = asking::vectors(dimension, 100_000);
    let schema = vectors.schema();
    let read = move |section: &mut Section, key| {
        if section.form(key).is_none() {
            return Ok(None);
        }
        let mut found = vectors.read(section, key)?;
        if found.len() > 1 {
            let mistake = section.mistake(key, format!("expected one query, found {}", found.len()));
            return Err(mistake.hinted("give a law of queries instead, `queries`"));
        }
        Ok(found.pop())
    };
    own(read, schema).optional()
}
