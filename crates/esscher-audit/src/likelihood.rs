//! What a model makes of a text, whoever computes its attention: log loss, retrieved needles, the embedding of an encoder.

use crate::Error;
use crate::head::Order;
use crate::model::{LayerAttention, Model, ROWS_TOGETHER};
use crate::needle::Haystack;
use esscher_core::Monitor;
use esscher_core::numerics::linalg::dot;

/// The mean of −log p(token | tokens before) over all tokens after the first; its exponential is the perplexity. Nothing if the
/// monitor asked to stop.
///
/// # Errors
/// An encoder, a text of fewer than two tokens, or one that the model refuses.
pub fn log_loss(
    model: &Model,
    text: &[u32],
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<f64>, Error> {
    check_predicts(model)?;
    let Some((_, next)) = text.split_first().filter(|(_, next)| !next.is_empty()) else {
        return Err(Error::TooFewTokens {
            what: "the text",
            found: text.len(),
            needed: 2,
            purpose: "a prediction".to_string(),
            remedy: "give a longer text",
        });
    };
    let Some(hidden) = model.forward(text, 0, attention, monitor)? else {
        return Ok(None);
    };
    let mut likelihoods = Vec::with_capacity(next.len());
    for (hidden, next) in hidden.chunks(ROWS_TOGETHER * model.shape().width).zip(next.chunks(ROWS_TOGETHER)) {
        if monitor.should_stop() {
            return Ok(None);
        }
        let rows = &hidden[..next.len() * model.shape().width];
        likelihoods.extend(model.log_likelihoods(rows, next)?);
    }
    Ok(Some(-likelihoods.iter().sum::<f64>() / next.len() as f64))
}

/// The state of an encoder at a token has seen the tokens after it: it predicts nothing.
fn check_predicts(model: &Model) -> Result<(), Error> {
    match model.shape().order {
        Order::Causal => Ok(()),
        Order::Whole => Err(Error::NeedsCausal {
            what: "predicting the next token",
            remedy: "compare its embeddings instead",
        }),
    }
}

/// The share of the codes that the model finds: all tokens of a code are its first choice, as when it writes the likeliest
/// token after token. [`Haystack`] says what chance finds. Nothing if the monitor asked to stop.
///
/// # Errors
/// An encoder, a haystack that the model refuses, that asks for nothing, or for a token that nothing stands before.
pub fn retrieval(
    model: &Model,
    haystack: &Haystack,
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<f64>, Error> {
    check_predicts(model)?;
    let Haystack { tokens, answers } = haystack;
    if answers.is_empty() || answers.iter().any(Vec::is_empty) {
        return Err(Error::TooFewTokens {
            what: "a code of the haystack",
            found: 0,
            needed: 1,
            purpose: "something to be asked for".to_string(),
            remedy: "give at least one code, and none without tokens",
        });
    }
    if let Some(position) = answers.iter().flatten().find(|position| !(1..tokens.len()).contains(*position)) {
        return Err(Error::NotPredictable { position: *position, tokens: tokens.len() });
    }
    let Some(hidden) = model.forward(tokens, 0, attention, monitor)? else {
        return Ok(None);
    };
    let (width, vocabulary) = (model.shape().width, model.shape().vocabulary);
    let first_choice = |row: &[f32]| {
        let best = row.iter().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        best.map(|(token, _)| token as u32)
    };
    let mut found = 0;
    for code in answers {
        let before: Vec<f32> = code
            .iter()
            .flat_map(|position| &hidden[(position - 1) * width..position * width])
            .copied()
            .collect();
        let logits = model.logits(&before)?;
        let mut choices = code.iter().zip(logits.chunks_exact(vocabulary));
        found += usize::from(choices.all(|(position, row)| first_choice(row) == Some(tokens[*position])));
    }
    Ok(Some(found as f64 / answers.len() as f64))
}

/// The mean of an encoder's final states: the embedding of the text. Nothing if the monitor asked to stop.
///
/// # Errors
/// A text that the model refuses.
pub fn embedding(
    model: &Model,
    text: &[u32],
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<Vec<f64>>, Error> {
    let hidden = model.forward(text, 0, attention, monitor)?;
    Ok(hidden.map(|hidden| {
        let mut mean = vec![0.0; model.shape().width];
        for token in hidden.chunks_exact(mean.len()) {
            for (sum, entry) in mean.iter_mut().zip(token) {
                *sum += f64::from(*entry) / text.len() as f64;
            }
        }
        mean
    }))
}

/// 1 − the cosine of two embeddings.
pub fn cosine_distance(one: &[f64], other: &[f64]) -> f64 {
    1.0 - dot(one, other) / (dot(one, one) * dot(other, other)).sqrt().max(f64::MIN_POSITIVE)
}
