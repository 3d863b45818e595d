//! The catalogue of mechanisms: what an entry says and claims, and how it is found; every claim is tested from here.

mod entries;

use crate::error::{Error, Result};
use crate::large_prompt::{Fate, LargePrompt};
use crate::mechanism::{Mechanism, Order};
use entries::{ENTRIES, HYBRIDS};
use std::sync::Arc;

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
pub struct StateSize {
    /// The formula, for people; L is the number of tokens absorbed.
    pub formula: &'static str,
    /// The formula, for tests: from widths and tokens absorbed.
    pub numbers: fn(Sizes, usize) -> usize,
}

/// How the work of a whole sequence grows with its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// In proportion to the length.
    Linear,
    /// With the square of the length.
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
    pub build: fn(Sizes) -> Box<dyn LargePrompt>,
}

/// A stack of layers of different mechanisms.
#[derive(Debug, Clone, Copy)]
pub struct Hybrid {
    /// As specifications and the command line name it.
    pub name: &'static str,
    /// What the stack is, in one sentence.
    pub summary: &'static str,
    /// Year of the paper.
    pub year: u16,
    /// Authors and arXiv number.
    pub paper: &'static str,
    /// Key in docs/references.bib.
    pub key: &'static str,
    /// Whether a small model of it passes 90 % on the recall task within the budget of the guide.
    pub recalls: bool,
    /// The mechanisms of so many layers.
    pub layers: fn(Sizes, usize) -> Vec<Arc<dyn Mechanism>>,
}

/// All mechanisms, in the order of the guide.
pub fn catalogue() -> &'static [Entry] {
    ENTRIES
}

/// The names of all mechanisms and hybrids.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name).chain(HYBRIDS.iter().map(|hybrid| hybrid.name))
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
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| Error::Unknown {
        what: "mechanism",
        name: name.to_string(),
        known: ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}

/// All hybrids.
pub fn hybrids() -> &'static [Hybrid] {
    HYBRIDS
}

/// The mechanisms of so many layers of a model, by the name of an entry or of a hybrid.
///
/// # Errors
/// An unknown name, with those that there are.
pub fn layers_of(name: &str, sizes: Sizes, count: usize) -> Result<Vec<Arc<dyn Mechanism>>> {
    if let Some(hybrid) = HYBRIDS.iter().find(|hybrid| hybrid.name == name) {
        return Ok((hybrid.layers)(sizes, count));
    }
    let one: Box<dyn Mechanism> = (find(name)?.build)(sizes);
    let one: Arc<dyn Mechanism> = one.into();
    Ok(vec![one; count])
}
