//! Several token laws with names: the lines of a table, the colours of a figure.

use super::GivenTokens;
use super::law::{expand_short_form, law_of, law_schema};
use esscher_core::measure::{Affine, Law};
use esscher_lab::specification::{Mistake, Rule, Section};
use serde_json::{Value, json};
use std::sync::Arc;

/// A token law and the name that results know it by.
#[derive(Debug, Clone)]
pub struct NamedLaw {
    /// As tables and legends print it.
    pub name: String,
    /// The law.
    pub law: Law,
}

/// The law of σ times a token of a named law.
#[derive(Debug, Clone)]
pub struct ScaledLaw {
    /// The name of the law.
    pub name: String,
    /// σ.
    pub sigma: f64,
    /// The law of the scaled token.
    pub tokens: Law,
}

impl ScaledLaw {
    /// Every law at every scale.
    pub fn all(section: &mut Section, laws: &[NamedLaw], sigmas: &[f64]) -> Result<Vec<Self>, Mistake> {
        let mut all = Vec::new();
        for NamedLaw { name, law } in laws {
            for &sigma in sigmas {
                let scaled = || Affine::scaled(sigma, law.clone()).map(|law| Arc::new(law) as Law);
                let tokens = if sigma == 1.0 { law.clone() } else { section.accept("sigmas", scaled())? };
                all.push(ScaledLaw { name: name.clone(), sigma, tokens });
            }
        }
        Ok(all)
    }

    /// The law with its scale, for people.
    pub fn label(&self) -> String {
        format!("{}, σ = {}", self.name, self.sigma)
    }
}

const MOST_LAWS: usize = 64;
const LONGEST_NAME: usize = 60;

/// The rule of token laws: one under `[tokens]`, or several under `[[law]]`, each with an optional `name`.
///
/// The other keys are those of [`law`](super::law()); a law without a name is called by its family. Both forms at once, two
/// laws of one name and laws of different dimensions are refused.
pub struct TokenLaws;

impl Rule for TokenLaws {
    type Value = Vec<NamedLaw>;

    fn read(&self, section: &mut Section, _key: &'static str) -> Result<Vec<NamedLaw>, Mistake> {
        let laws = match (section.form("law"), section.form("tokens")) {
            (Some(_), Some(_)) => {
                return Err(
                    section.mistake("tokens", "there are `[[law]]` tables as well; give one of the two")
                );
            }
            (Some(_), None) => section.tables("law", 1..=MOST_LAWS, named)?,
            (None, _) => vec![one_law(section)?],
        };
        let dimension = laws[0].law.dimension();
        for (number, one) in laws.iter().enumerate() {
            if laws[..number].iter().any(|other| other.name == one.name) {
                let message = format!("two laws are called \"{}\"; give them different names", one.name);
                return Err(section.mistake("law", message));
            }
            let found = one.law.dimension();
            if found != dimension {
                let message =
                    format!("\"{}\" has dimension {found}, the first law has {dimension}", one.name);
                return Err(section.mistake("law", message));
            }
        }
        Ok(laws)
    }

    fn schema(&self) -> Value {
        law_schema()
    }

    fn is_required(&self) -> bool {
        false
    }

    fn properties(&self, _key: &str, _documentation: &str) -> Vec<(String, Value, bool)> {
        let mut one = law_schema();
        one["description"] = "The law of a token".into();
        let several = json!({ "type": "array", "items": law_schema(), "minItems": 1, "maxItems": MOST_LAWS,
                              "description": "Several laws of tokens, each with a name" });
        vec![("tokens".to_string(), one, false), ("law".to_string(), several, false)]
    }
}

/// The law under `tokens`: a table, its short form, or as a door hands it over.
fn one_law(section: &mut Section) -> Result<NamedLaw, Mistake> {
    if let Some(law) = section.native::<Law>("tokens") {
        return Ok(NamedLaw { name: "tokens".to_string(), law: law.as_ref().clone() });
    }
    if let Some(given) = section.native::<GivenTokens>("tokens") {
        return Ok(NamedLaw { name: "tokens".to_string(), law: given.0.clone() });
    }
    expand_short_form(section, "tokens")?;
    section.table("tokens", named)
}

fn named(table: &mut Section) -> Result<NamedLaw, Mistake> {
    let (family, law) = law_of(table)?;
    Ok(NamedLaw { name: table.name("name", Some(family.name), LONGEST_NAME)?, law })
}
