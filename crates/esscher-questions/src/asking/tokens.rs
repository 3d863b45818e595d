//! Tokens that a quick question is asked about: a law, or tokens that somebody has.

use super::law;
use esscher_core::measure::{Empirical, Law};
use esscher_lab::specification::{Mistake, Section};
use std::sync::Arc;

/// Tokens.
#[derive(Debug, Clone)]
pub enum Tokens {
    /// Drawn from a law.
    Law(Law),
    /// Given, one by one.
    Given(Arc<Empirical>),
}

/// Tokens that a door hands over as an array; [`Empirical`] alone would be the law of a draw of one of them.
pub struct GivenTokens(pub Arc<Empirical>);

/// Reads tokens under a key.
pub fn tokens(section: &mut Section, key: &'static str) -> Result<Tokens, Mistake> {
    match section.native::<GivenTokens>(key) {
        Some(given) => Ok(Tokens::Given(given.0.clone())),
        None => Ok(Tokens::Law(law(section, key)?)),
    }
}

impl Tokens {
    /// The law of a token; of given tokens, that of a draw of one of them.
    pub fn law(&self) -> Law {
        match self {
            Tokens::Law(law) => law.clone(),
            Tokens::Given(given) => given.clone(),
        }
    }

    /// The dimension of a token.
    pub fn dimension(&self) -> usize {
        self.law().dimension()
    }
}
