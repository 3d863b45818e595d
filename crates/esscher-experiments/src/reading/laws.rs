//! Several token laws with names: the lines of a table, the colours of a figure.

use super::law::law_of;
use esscher_core::measure::{Affine, Law};
use esscher_lab::specification::{Mistake, Section};
use std::sync::Arc;

/// A token law and the name that results know it by.
#[derive(Debug, Clone)]
pub struct NamedLaw {
    /// As tables and legends print it.
    pub name: String,
    /// The law.
    pub law: Law,
}

impl NamedLaw {
    /// The law of σ times a token.
    ///
    /// # Errors
    /// A factor that is not finite.
    pub fn scaled(&self, sigma: f64) -> esscher_core::Result<Law> {
        if sigma == 1.0 {
            return Ok(self.law.clone());
        }
        Ok(Arc::new(Affine::scaled(sigma, self.law.clone())?))
    }
}

const MOST_LAWS: usize = 64;
const LONGEST_NAME: usize = 60;

/// Reads the token laws: one under `[tokens]`, or several under `[[law]]`, each with an optional `name`.
///
/// The other keys are those of [`law`](super::law()); a law without a name is called by its family.
///
/// # Errors
/// Both forms at once, two laws of one name, laws of different dimensions.
pub fn token_laws(section: &mut Section) -> Result<Vec<NamedLaw>, Mistake> {
    let laws = match (section.form("law"), section.form("tokens")) {
        (Some(_), Some(_)) => {
            return Err(section.mistake("tokens", "there are `[[law]]` tables as well; give one of the two"));
        }
        (Some(_), None) => section.tables("law", 1..=MOST_LAWS, named)?,
        (None, _) => vec![section.table("tokens", named)?],
    };
    let dimension = laws[0].law.dimension();
    for (number, one) in laws.iter().enumerate() {
        if laws[..number].iter().any(|other| other.name == one.name) {
            let message = format!("two laws are called \"{}\"; give them different names", one.name);
            return Err(section.mistake("law", message));
        }
        let found = one.law.dimension();
        if found != dimension {
            let message = format!("\"{}\" has dimension {found}, the first law has {dimension}", one.name);
            return Err(section.mistake("law", message));
        }
    }
    Ok(laws)
}

fn named(table: &mut Section) -> Result<NamedLaw, Mistake> {
    let (family, law) = law_of(table)?;
    let name = table.text("name", Some(family.name))?;
    let count = name.chars().count();
    if !(1..=LONGEST_NAME).contains(&count) {
        let message = format!("expected a name of 1 to {LONGEST_NAME} characters, found {count}");
        return Err(table.mistake("name", message));
    }
    Ok(NamedLaw { name, law })
}
