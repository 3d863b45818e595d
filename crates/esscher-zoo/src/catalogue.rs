//! The catalogue of mechanisms: what each is, where it comes from, and what it claims; every claim is tested from here.

use crate::error::{Error, Result};
use crate::gated_linear_attention::GatedLinearAttention;
use crate::mechanism::{Mechanism, Order};

/// Widths of one head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Width of queries and keys; the state expansion of mechanisms without them.
    pub key: usize,
    /// Width of values and outputs.
    pub value: usize,
}

impl Sizes {
    /// Widest head that is accepted: states are products of widths.
    const WIDEST: usize = 4096;

    /// Checked widths.
    ///
    /// # Errors
    /// A width of zero, or an absurd one.
    pub fn new(key: usize, value: usize) -> Result<Self> {
        for (name, width) in [("key_width", key), ("value_width", value)] {
            if !(1..=Self::WIDEST).contains(&width) {
                return Err(Error::Option {
                    name,
                    expected: format!("1 to {}", Self::WIDEST),
                    found: width.to_string(),
                });
            }
        }
        Ok(Sizes { key, value })
    }
}

/// How many numbers a state has.
#[derive(Debug, Clone, Copy)]
pub enum StateSize {
    /// The same after every token.
    Constant {
        /// The formula, for people.
        formula: &'static str,
        /// The formula, for tests.
        numbers: fn(Sizes) -> usize,
    },
    /// This many more with every token.
    Grows {
        /// The formula of the growth per token, for people.
        formula: &'static str,
        /// The growth per token, for tests.
        numbers_per_token: fn(Sizes) -> usize,
    },
}

impl StateSize {
    /// As lists print it.
    pub fn formula(&self) -> String {
        match self {
            StateSize::Constant { formula, .. } => (*formula).to_string(),
            StateSize::Grows { formula, .. } => format!("L ({formula})"),
        }
    }

    /// Numbers of the state after this many tokens; none where that is beyond counting.
    pub fn numbers(&self, sizes: Sizes, seen: usize) -> Option<usize> {
        match self {
            StateSize::Constant { numbers, .. } => Some(numbers(sizes)),
            StateSize::Grows { numbers_per_token, .. } => seen.checked_mul(numbers_per_token(sizes)),
        }
    }
}

/// How the work of a whole sequence grows with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// In proportion.
    Linear,
    /// With its square.
    Quadratic,
}

impl Cost {
    /// As lists print it.
    pub fn name(self) -> &'static str {
        match self {
            Cost::Linear => "linear",
            Cost::Quadratic => "quadratic",
        }
    }
}

/// What happens to the output as a prompt of i.i.d. tokens grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It tends to a number that depends on the law of the tokens and the query.
    Limit,
    /// It keeps varying with the last tokens; its law settles.
    StationaryLaw,
    /// It grows in proportion to the length.
    Grows,
}

impl Fate {
    /// As lists print it.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Limit => "limit",
            Fate::StationaryLaw => "stationary law",
            Fate::Grows => "grows",
        }
    }
}

/// What a mechanism claims, each claim tested for every entry.
#[derive(Debug, Clone, Copy)]
pub struct Claims {
    /// Whether a token reads only tokens up to itself.
    pub order: Order,
    /// Whether equal values are returned unchanged: the weights of a row sum to one.
    pub normalised: bool,
    /// Numbers of the state.
    pub state: StateSize,
    /// Work of a whole sequence.
    pub cost: Cost,
    /// The output on long prompts of i.i.d. tokens and constant gates.
    pub fate: Fate,
    /// Whether it is a linear dynamical system in its input.
    pub dynamical_system: bool,
    /// Whether a small model of it passes 90 % on the recall task within the budget of the guide.
    pub recalls: bool,
}

/// A mechanism of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// As specifications, the command line and Python name it.
    pub name: &'static str,
    /// One sentence with its formula.
    pub summary: &'static str,
    /// Year of the paper.
    pub year: u16,
    /// Authors and arXiv number, or where it was published.
    pub paper: &'static str,
    /// Key in docs/references.bib.
    pub key: &'static str,
    /// What it claims.
    pub claims: Claims,
    /// Makes one, with the options of the paper.
    pub build: fn(Sizes) -> Box<dyn Mechanism>,
}

/// All mechanisms, in the order of the guide.
pub fn catalogue() -> &'static [Entry] {
    CATALOGUE
}

/// The entry of this name.
///
/// ```
/// use esscher_zoo::catalogue::{Sizes, find};
/// use esscher_zoo::mechanism::Mechanism;
/// let gated = (find("gla")?.build)(Sizes::new(16, 16)?);
/// assert_eq!(gated.signature().tokens.len(), 4);
/// # Ok::<(), esscher_zoo::Error>(())
/// ```
///
/// # Errors
/// An unknown name, with those that there are.
pub fn find(name: &str) -> Result<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name).ok_or_else(|| Error::Unknown {
        what: "mechanism",
        name: name.to_string(),
        known: CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// A state of d_k × d_v.
const MATRIX: StateSize =
    StateSize::Constant { formula: "d_k d_v", numbers: |sizes| sizes.key * sizes.value };

const CATALOGUE: &[Entry] = &[Entry {
    name: "gla",
    summary: "Gated linear attention: one learned decay per key channel.",
    year: 2023,
    paper: "Yang et al., arXiv 2312.06635",
    key: "yang2023gated",
    claims: Claims {
        order: Order::Causal,
        normalised: false,
        state: MATRIX,
        cost: Cost::Linear,
        fate: Fate::StationaryLaw,
        dynamical_system: true,
        recalls: true,
    },
    build: |sizes| Box::new(GatedLinearAttention { key_width: sizes.key, value_width: sizes.value }),
}];
