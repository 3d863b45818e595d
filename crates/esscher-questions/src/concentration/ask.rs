//! What is asked: token laws and their scales, a head, a law of queries, lengths, quantities and engines.

use crate::asking::{self, NamedLaw, TokenLaws};
use esscher_core::Quantity;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::Law;
use esscher_core::prompt::{Precision, PromptLength};
use esscher_lab::specification::{
    Bounds, Kind, Rule, Section, choice, choices, integer, one_of, own, real, table,
};
use esscher_lab::{keys, named};

named! {
    /// Which engines are asked for.
    pub enum Engines {
        /// Exact integrals, for laws that allow them.
        Exact = "exact",
        /// Simulation.
        Sampled = "sampled",
        /// Exact where the law allows it, sampled otherwise.
        Best = "best",
        /// Sampled always, and exact where the law allows it: two engines that check each other.
        Both = "both",
    }
}

/// Tokens of a simulated prompt at most: hours.
const LONGEST_SAMPLED: u64 = 10_000_000_000;

keys! {
    /// How fast do finite prompts approach their limit?
    pub struct Ask {
        /// The law of a token, or several laws with names
        laws: Vec<NamedLaw> = TokenLaws,
        /// The head: U (score) and V (value)
        head: Softmax = asking::any_head(1) => asking::any_head(laws[0].law.dimension()),
        /// The law of the queries, averaged over
        queries: Law = queries(1) => queries(head.query_dimension()),
        /// Factors that every law of tokens is multiplied by
        sigmas: Vec<f64> = asking::sigmas(),
        /// Prompt lengths
        lengths: Vec<PromptLength> = asking::lengths(),
        /// The errors of what: of the output, of its gradients in U and in V
        quantities: Vec<Quantity> = choices::<Quantity>().or(["output"]),
        /// Exact integrals, simulation, the best of them for each law, or both where both can
        engine: Engines = choice::<Engines>().or("best"),
        /// The confidence level of fitted rates
        level: f64 = real(Bounds::Between(0.5, 1.0 - 1e-9)).or(0.95),
        /// The shortest length that enters a fitted rate
        fit_from: u64 = integer(1..=PromptLength::MAX.get()).or(1_u64),
        /// How exact errors are averaged over the queries
        exact: ExactAverage = table::<ExactAverage>(),
        /// What is simulated
        sampled: Simulation = table::<Simulation>(),
    }
}

keys! {
    /// How exact errors are averaged over the queries.
    pub struct ExactAverage {
        /// Directions of queries per randomisation
        directions: u64 = integer(1..=1 << 20).or(32_u64),
        /// Independent randomisations of the directions
        randomisations: u64 = integer(2..=1 << 16).or(8_u64),
    }
}

keys! {
    /// What is simulated.
    pub struct Simulation {
        /// Independent prompts
        trials: u64 = integer(2..=1 << 24).or(400_u64),
        /// Queries drawn for each prompt
        queries: u64 = integer(1..=1 << 20).or(32_u64),
        /// The floating-point type of the simulation
        precision: Precision = one_of(&asking::PRECISIONS).or("double"),
        /// The longest prompt that is simulated
        longest: u64 = integer(1..=LONGEST_SAMPLED).or(100_000_u64),
    }
}

fn queries(dimension: usize) -> impl Rule<Value = Law> {
    let read = move |section: &mut Section, key| {
        let queries = asking::law(section, key)?;
        if queries.dimension() != dimension {
            let found = queries.dimension();
            let message = format!("expected queries of dimension {dimension}, found {found}");
            return Err(section.mistake(key, message));
        }
        Ok(queries)
    };
    own(read, asking::law_schema())
}
