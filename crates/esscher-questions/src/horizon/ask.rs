//! What is asked: tokens, a head, one query or a law of queries, and the error to reach.

use crate::asking::{self, Tokens};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::concentration::Quantity;
use esscher_core::measure::Law;
use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, choice, integer, own, real};
use serde_json::json;

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
        head: Softmax = own(|section, key| asking::any_head(section, key, 1), asking::head_schema()).optional()
            => own(|section, key| asking::any_head(section, key, tokens.dimension()), asking::head_schema()),
        /// One query; or give a law of queries
        query: Option<Vec<f64>> = own(|_, _| Ok(None::<Vec<f64>>), json!({ "type": "array", "format": "vectors" })).optional()
            => own(
                |section, key| match section.form(key) {
                    None => Ok(None),
                    Some(_) => {
                        let mut found = asking::vectors(section, key, head.query_dimension(), 100_000)?;
                        match (found.pop(), found.len()) {
                            (one, 0) => Ok(one),
                            (_, others) => {
                                let message = format!("expected one query, found {}", others + 1);
                                let mut mistake = section.mistake(key, message);
                                mistake.hint = Some("give a law of queries instead, `queries`".to_string());
                                Err(mistake)
                            }
                        }
                    }
                },
                json!({}),
            ),
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
