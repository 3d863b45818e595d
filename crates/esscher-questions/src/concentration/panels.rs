//! Which laws and scales a figure shows together.

use super::answer::{Engine, Row, tokens_of};
use crate::tabulating::distinct;
use esscher_report::literal;

/// Colours that a reader can tell apart.
const MOST_COLOURS: usize = 8;

/// The tokens of one figure: one law at its scales, or several laws at one scale. Each has a colour of its own.
pub struct Panel<'a> {
    /// For the end of an id: lower case with hyphens.
    pub(super) id: String,
    /// For the end of a title, prose.
    pub(super) title: String,
    /// Tokens with their names in the legend.
    pub(super) tokens: Vec<(String, &'a Row)>,
}

impl Panel<'_> {
    /// Whether it shows this law.
    pub fn is_of(&self, law: &str) -> bool {
        self.tokens.iter().any(|(_, tokens)| tokens.law == law)
    }

    pub(super) fn shows(&self, one: &Row) -> bool {
        self.tokens.iter().any(|(_, tokens)| tokens.same_tokens(one))
    }
}

/// A figure per law; one for all laws if there is one scale only.
pub fn panels<'a>(found: &[&'a Row]) -> Vec<Panel<'a>> {
    let all = tokens_of(found);
    if let Some(first) = all.first()
        && all.iter().all(|tokens| tokens.sigma == first.sigma)
    {
        return laws_at(&all).into_iter().collect();
    }
    let laws = distinct(all.iter().map(|tokens| tokens.law.as_str()));
    let of = |law: &&str| {
        let mine = all.iter().filter(|tokens| tokens.law == *law).copied();
        mine.map(|tokens| (format!("σ = {}", tokens.sigma), tokens)).collect::<Vec<_>>()
    };
    let mut panels = Vec::new();
    for (number, law) in laws.iter().enumerate() {
        for (part, tokens) in of(law).chunks(MOST_COLOURS).enumerate() {
            // Numbers keep ids apart if names are spelt alike.
            let twin = laws[..number].iter().any(|other| slug(other) == slug(law));
            let twin = if twin { format!("-{}", number + 1) } else { String::new() };
            let more = if part > 0 { format!("-part-{}", part + 1) } else { String::new() };
            let id = format!("{}{twin}{more}", slug(law));
            panels.push(Panel { id, title: literal(law), tokens: tokens.to_vec() });
        }
    }
    panels
}

/// What a claim shows of many laws: each that is known exactly at all its scales, the others together at the largest.
pub fn main_panels<'a>(found: &[&'a Row]) -> Vec<Panel<'a>> {
    let is_exact =
        |tokens: &Row| found.iter().any(|one| one.same_tokens(tokens) && one.engine == Engine::Exact);
    let mut panels = panels(found);
    let largest = tokens_of(found).iter().map(|tokens| tokens.sigma).fold(0.0, f64::max);
    let is_simulated = |one: &&Row| one.sigma == largest && !is_exact(one);
    let simulated = tokens_of(&found.iter().copied().filter(is_simulated).collect::<Vec<_>>());
    panels.retain(|panel| panel.tokens.iter().any(|(_, tokens)| is_exact(tokens)));
    if panels.iter().all(|panel| simulated.iter().all(|tokens| !panel.shows(tokens))) {
        panels.extend(laws_at(&simulated));
    }
    panels
}

/// The laws of tokens that share a scale, in one panel.
fn laws_at<'a>(all: &[&'a Row]) -> Option<Panel<'a>> {
    let (sigma, laws) = (all.first()?.sigma, all.iter().map(|tokens| literal(&tokens.law)));
    let title = format!("{}, $\\sigma = {sigma}$", laws.collect::<Vec<_>>().join(", "));
    let tokens = all.iter().map(|tokens| (tokens.law.clone(), *tokens)).collect();
    Some(Panel { id: "laws".to_string(), title, tokens })
}

/// A name in lower case with hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}
