//! `esscher attend`: outputs of a head at queries, on a prompt or a law.

use crate::arguments::{Common, HeadArguments};
use crate::arrays::{Array, Tokens};
use crate::ending::{Ending, Trouble};
use crate::output::{say, tell};
use crate::progress::Progress;
use esscher_core::attention::{Attention, Softmax};
use esscher_core::concentration::{Concentration, Engine};
use esscher_core::measure::{Empirical, Measure};
use esscher_core::prompt::{PromptLength, QueryAverage, SampleOptions};
use esscher_core::{Accuracy, Completion};
use serde_json::json;
use std::sync::Arc;

pub(super) fn attend(
    common: &Common,
    head: &HeadArguments,
    query: &str,
    lengths: &[String],
) -> Result<Ending, Trouble> {
    let tokens = Tokens::read(&head.tokens)?;
    let law = tokens.law();
    let softmax = self::head(head, law.dimension())?;
    let queries = Array::read(query)?.vectors(softmax.query_dimension())?;
    let lengths = lengths.iter().map(|text| length(text)).collect::<Result<Vec<_>, _>>()?;
    if matches!(tokens, Tokens::Prompt(_)) && !lengths.is_empty() {
        return Err(Trouble::with_hint(
            "--length is for laws: a prompt has the length that it has",
            "leave --length out, or give a law of tokens such as gaussian:4",
        ));
    }
    let limit = law.gaussian_limit(&vec![0.0; law.dimension()])?;
    let progress = Progress::new("attend", common.quiet || common.json);
    let mut found = Vec::new();
    for query in &queries {
        let output = softmax.attend(law.as_ref(), query)?;
        let gaussian = softmax.attend(&limit, query)?;
        let effective = match &tokens {
            Tokens::Prompt(prompt) => Some(effective_tokens(prompt, &softmax.tilt(query)?)?),
            Tokens::Law(_) => None,
        };
        let mut errors = Vec::new();
        if !lengths.is_empty() {
            let at = Arc::new(Empirical::atom(query)?);
            let study = Concentration::new(softmax.clone(), law.clone(), at, &lengths)?;
            let options = SampleOptions { score_gradient: false, ..SampleOptions::default() };
            let study = study.run(Engine::Best(QueryAverage::default(), options), &progress)?;
            if study.completion != Completion::Finished {
                progress.clear();
                tell("stopped before an answer");
                return Ok(Ending::Interrupted);
            }
            errors.extend(study.rows.iter().map(|row| (row.length, row.output_error)));
        }
        found.push((query, output, gaussian, effective, errors));
    }
    progress.clear();
    if common.json {
        let answers: Vec<_> = found
            .iter()
            .map(|(query, output, gaussian, effective, errors)| {
                let errors: Vec<_> = errors
                    .iter()
                    .map(|(length, error)| {
                        json!({ "length": length.get(), "mean_squared_error": error.value,
                                "absolute_error": error.absolute_error(), "accuracy": class(error.accuracy) })
                    })
                    .collect();
                json!({ "query": query, "output": output, "gaussian_limit": gaussian,
                        "effective_tokens": effective, "finite_prompts": errors })
            })
            .collect();
        say(json!(answers))?;
        return Ok(Ending::Done);
    }
    for (query, output, gaussian, effective, errors) in &found {
        say(format_args!("query           {}", numbers(query)))?;
        say(format_args!("output          {}", numbers(output)))?;
        say(format_args!(
            "gaussian limit  {}   (linear in the query; {:.2e} away)",
            numbers(gaussian),
            distance(output, gaussian)
        ))?;
        if let Some(effective) = effective {
            say(format_args!("effective tokens {effective:.1}"))?;
        }
        for (length, error) in errors {
            let root = error.value.max(0.0).sqrt();
            // The error of a square root, to first order.
            let uncertainty = error.absolute_error() / (2.0 * root).max(f64::MIN_POSITIVE);
            say(format_args!(
                "L = {length}: root-mean-square error {root:.4e} ± {uncertainty:.1e} ({})",
                class(error.accuracy)
            ))?;
        }
    }
    Ok(Ending::Done)
}

/// The head that arguments describe, for tokens of this dimension.
pub(super) fn head(arguments: &HeadArguments, dimension: usize) -> Result<Softmax, Trouble> {
    // U maps queries to tokens: its rows are the tokens' dimension, its columns the queries'.
    let score = Array::read(&arguments.score)?;
    let columns = score.columns_or(dimension);
    let score = score.matrix(Some(dimension), columns)?;
    let value = Array::read(&arguments.value)?.matrix(None, dimension)?;
    Ok(Softmax::new(score.as_ref(), value.as_ref())?)
}

/// A prompt length, also as 1e6.
fn length(text: &str) -> Result<PromptLength, Trouble> {
    let number: f64 = text.parse().map_err(|_| {
        Trouble::request(format!("--length: `{text}` is not a number of tokens, expected 1 to 1e12"))
    })?;
    Ok(PromptLength::try_from(number)?)
}

/// 1 / Σ p², p the softmax weights.
fn effective_tokens(prompt: &Empirical, tilt: &[f64]) -> Result<f64, Trouble> {
    // Λ(2θ) − 2Λ(θ) = ln(Σ wₗ e^{2sₗ} / (Σ wₗ e^{sₗ})²) with weights w = 1/L: L times the participation.
    let divergence = prompt.renyi_divergence(tilt)?;
    Ok(prompt.len() as f64 * (-divergence).exp())
}

fn class(accuracy: Accuracy) -> &'static str {
    match accuracy {
        Accuracy::Exact { .. } => "exact",
        Accuracy::QuasiMonteCarlo { .. } => "exact in the tokens, quasi-Monte-Carlo in the queries",
        Accuracy::Sampled { .. } => "sampled",
    }
}

fn numbers(vector: &[f64]) -> String {
    let shown: Vec<String> = vector.iter().take(16).map(|entry| format!("{entry:.6}")).collect();
    let more = if vector.len() > 16 { format!(", … ({} entries)", vector.len()) } else { String::new() };
    format!("[{}{more}]", shown.join(", "))
}

fn distance(first: &[f64], second: &[f64]) -> f64 {
    first.iter().zip(second).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}
