//! `esscher horizon`: how long a prompt must be for an error.

use super::attend::head;
use crate::arguments::{AskedQuantity, Common, HeadArguments};
use crate::arrays::{Array, Tokens, law};
use crate::ending::{Ending, Trouble};
use crate::output::say;
use crate::progress::Progress;
use esscher_core::attention::Attention;
use esscher_core::concentration::{Concentration, Horizon, Quantity};
use esscher_core::measure::{Empirical, Law, Measure};
use esscher_core::prompt::{PromptLength, QueryAverage};
use serde_json::json;
use std::sync::Arc;

pub(super) fn horizon(
    common: &Common,
    arguments: &HeadArguments,
    query: Option<&str>,
    queries: Option<&str>,
    tolerance: f64,
    quantity: AskedQuantity,
) -> Result<Ending, Trouble> {
    if !(tolerance > 0.0 && tolerance.is_finite()) {
        return Err(Trouble::request(format!("--tolerance: expected a number above 0, found {tolerance}")));
    }
    let tokens = Tokens::read(&arguments.tokens)?;
    let (token_law, note): (Law, Option<String>) = match &tokens {
        Tokens::Law(law) => (law.clone(), None),
        Tokens::Prompt(prompt) => {
            let gaussian = prompt.gaussian_limit(&vec![0.0; prompt.dimension()])?;
            let note =
                format!("the Gaussian with the mean and covariance of the {} given tokens", prompt.len());
            (Arc::new(gaussian), Some(note))
        }
    };
    let softmax = head(arguments, token_law.dimension())?;
    let query_law: Law = match (query, queries) {
        (Some(query), _) => match Array::read(query)?.vectors(softmax.query_dimension())?.as_slice() {
            [one] => Arc::new(Empirical::atom(one)?),
            several => {
                let message = format!("--query: expected one query, found {}", several.len());
                return Err(Trouble::with_hint(message, "give a law of queries with --queries"));
            }
        },
        (None, Some(text)) => law("--queries", text)?,
        (None, None) => token_law.clone(),
    };
    let quantity = match quantity {
        AskedQuantity::Output => Quantity::Output,
        AskedQuantity::ScoreGradient => Quantity::ScoreGradient,
        AskedQuantity::ValueGradient => Quantity::ValueGradient,
    };
    let study = Concentration::new(softmax, token_law, query_law, &[PromptLength::MIN])?;
    let progress = Progress::new("horizon", common.quiet || common.json);
    let found = study.horizon(quantity, tolerance * tolerance, QueryAverage::default(), &progress);
    progress.clear();
    let (name, length, error) = match found? {
        Horizon::Found { length, error, .. } => ("found", Some(length), Some(error)),
        Horizon::AlreadyBelow { error } => ("found", Some(PromptLength::MIN), Some(error)),
        Horizon::BeyondLongest { longest, error } => ("beyond", Some(longest), Some(error)),
        Horizon::Stopped { .. } => ("stopped", None, None),
    };
    let root = error.map(|error| error.max(0.0).sqrt());
    let obtained = if query.is_some() {
        "exact"
    } else {
        "exact in the tokens, queries averaged over quasi-Monte-Carlo points"
    };
    if common.json {
        let answer = json!({ "outcome": name, "length": length.map(PromptLength::get),
                             "root_mean_square_error": root, "accuracy": obtained, "tokens": note });
        say(answer)?;
    } else {
        if let Some(note) = note {
            say(format_args!("tokens: {note}"))?;
        }
        match (name, length, root) {
            ("found", Some(length), Some(root)) => {
                say(format_args!(
                    "L = {length} tokens: root-mean-square error {root:.6e}, at most {tolerance} ({obtained})"
                ))?;
            }
            ("beyond", Some(length), Some(root)) => {
                say(format_args!(
                    "more than {length} tokens: the root-mean-square error there is still {root:.3e} ({obtained})"
                ))?;
            }
            _ => say("stopped before an answer")?,
        }
    }
    Ok(if name == "stopped" { Ending::Interrupted } else { Ending::Done })
}
