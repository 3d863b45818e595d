//! One unit: the outputs at all queries.

use super::answer::{Quantity, Row};
use super::{Ask, describe};
use crate::asking::Tokens;
use crate::measured::Measured;
use crate::question::{Compute, Failure, Given, Mistake, Monitor, Section, Unit};
use crate::rounding::Sizes;
use esscher_core::attention::Attention;
use esscher_core::concentration::{Concentration, Engine, Quantity as ErrorOf};
use esscher_core::measure::{Empirical, Measure};
use esscher_core::prompt::{PromptLength, QueryAverage, SampleOptions};
use esscher_core::{Completion, Error};
use std::sync::Arc;

/// Longer simulated prompts would take more than minutes.
const LONGEST_SIMULATED: u64 = 10_000_000;

pub(super) struct Outputs {
    ask: Ask,
    lengths: Vec<PromptLength>,
    options: SampleOptions,
}

pub(super) fn plan(ask: Ask, section: &mut Section, given: Given) -> Result<Outputs, Mistake> {
    if matches!(ask.tokens, Tokens::Given(_)) && !ask.length.is_empty() {
        let mistake = section.mistake(
            "length",
            "a length is for a law of tokens; these tokens are a prompt of their own length",
        );
        return Err(mistake.hinted("leave it out, or give a law of tokens such as gaussian:4"));
    }
    let is_simulated = ask.tokens.law().as_gaussian_mixture().is_none();
    if let Some(length) = ask.length.iter().find(|length| is_simulated && **length > LONGEST_SIMULATED) {
        let message = format!(
            "prompts of this law are simulated token by token: expected lengths up to {LONGEST_SIMULATED}, found {length}"
        );
        return Err(section.mistake("length", message));
    }
    let lengths = ask.length.iter().map(|length| PromptLength::new(*length)).collect::<Result<_, _>>();
    let lengths = section.accept("length", lengths)?;
    let Given { seed, instruction_set } = given;
    let options = SampleOptions { score_gradient: false, seed, instruction_set, ..SampleOptions::default() };
    Ok(Outputs { ask, lengths, options })
}

impl Compute for Outputs {
    type Row = Row;

    fn units(&self) -> Vec<Unit> {
        vec![Unit { label: "attend".to_string(), cost: 1.0 }]
    }

    fn run_unit(&self, _unit: usize, monitor: &dyn Monitor) -> Result<Option<Vec<Row>>, Failure> {
        let Ask { tokens, head, query: queries, .. } = &self.ask;
        let law = tokens.law();
        let limit = law.gaussian_limit(&vec![0.0; law.dimension()])?;
        let sizes = Sizes::of(tokens)?;
        let mut rows = Vec::new();
        for (number, query) in queries.iter().enumerate() {
            let mut add = |quantity, coordinate: Option<usize>, length: Option<PromptLength>, found, note| {
                rows.push(Row {
                    query: number as u64,
                    quantity,
                    coordinate: coordinate.map(|index| index as u64),
                    length: length.map(PromptLength::get),
                    number: found,
                    note,
                });
            };
            let rounding = sizes.rounding(head, law.as_ref(), query)?;
            for (quantity, output) in [
                (Quantity::Output, head.attend(law.as_ref(), query)?),
                (Quantity::GaussianLimit, head.attend(&limit, query)?),
            ] {
                for (index, value) in output.iter().enumerate() {
                    add(
                        quantity,
                        Some(index),
                        None,
                        Measured::exact(*value, rounding.output(index, *value)),
                        None,
                    );
                }
            }
            if let Tokens::Given(prompt) = tokens {
                // Λ(2θ) − 2Λ(θ) = ln(Σ wₗ e^{2sₗ} / (Σ wₗ e^{sₗ})²) with weights w = 1/L: L times the participation.
                let divergence = prompt.renyi_divergence(&head.tilt(query)?)?;
                let effective = prompt.len() as f64 * (-divergence).exp();
                let (effective, tolerance) = rounding.effective_tokens(effective, prompt.len());
                add(Quantity::EffectiveTokens, None, None, Measured::exact(effective, tolerance), None);
            }
            if !self.lengths.is_empty() {
                // The squared error grows like the square of Σ e^s z: its variance needs the fourth moment of e^s.
                let fourth: Vec<f64> = head.tilt(query)?.iter().map(|entry| 4.0 * entry).collect();
                let has_variance = !matches!(law.log_partition(&fourth), Err(Error::OutsideDomain { .. }));
                let heavy = || (!has_variance).then(|| "squared errors have no finite variance".to_string());
                let at = Arc::new(Empirical::atom(query)?);
                let study = Concentration::new(head.clone(), law.clone(), at, &self.lengths)?;
                let engine = Engine::Best(QueryAverage::for_tokens(law.as_ref()), self.options);
                let study = study.run(engine, monitor)?;
                if study.completion != Completion::Finished {
                    return Ok(None);
                }
                for row in &study.rows {
                    if let Some(error) = row.errors.output {
                        let (error, note) = (
                            Measured::from(error).root(),
                            study.note(row.length, ErrorOf::Output).or_else(heavy),
                        );
                        add(Quantity::Error, None, Some(row.length), error, note);
                    }
                }
            }
        }
        Ok(Some(rows))
    }

    fn describe(&self, rows: &[Row]) -> Result<Vec<esscher_report::Section>, Failure> {
        let prompt = match &self.ask.tokens {
            Tokens::Given(prompt) => Some(prompt.len()),
            Tokens::Law(_) => None,
        };
        Ok(describe::sections(&self.ask.query, prompt, rows))
    }
}
