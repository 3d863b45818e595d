//! What a model makes of a text, whoever computes its attention: log loss, retrieved needles, the embedding of an encoder.

use crate::Error;
use crate::model::{LayerAttention, Model};
use crate::needle::Haystack;
use esscher_core::Monitor;

/// The mean of −log p(token | tokens before) over all tokens after the first; its exponential is the perplexity. Nothing if the
/// monitor asked to stop.
///
/// # Errors
/// A text of fewer than two tokens, or one that the model refuses.
pub fn log_loss(
    model: &Model,
    text: &[u32],
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<f64>, Error> {
    let Some((_, next)) = text.split_first().filter(|(_, next)| !next.is_empty()) else {
        return Err(Error::Request(
            "a text of fewer than two tokens predicts nothing: give a longer one".to_string(),
        ));
    };
    let Some(hidden) = model.forward(text, 0, attention, monitor)? else {
        return Ok(None);
    };
    let rows = &hidden[..next.len() * model.shape().width];
    let likelihoods = model.log_likelihoods(rows, next)?;
    Ok(Some(-likelihoods.iter().sum::<f64>() / next.len() as f64))
}

/// The share of the answers' tokens that are the model's first choice. Nothing if the monitor asked to stop.
///
/// # Errors
/// A haystack that the model refuses.
pub fn retrieval(
    model: &Model,
    haystack: &Haystack,
    attention: &mut dyn LayerAttention,
    monitor: &dyn Monitor,
) -> Result<Option<f64>, Error> {
    let Some(hidden) = model.forward(&haystack.tokens, 0, attention, monitor)? else {
        return Ok(None);
    };
    let (width, vocabulary) = (model.shape().width, model.shape().vocabulary);
    let before: Vec<f32> = haystack
        .answers
        .iter()
        .flat_map(|position| &hidden[(position - 1) * width..position * width])
        .copied()
        .collect();
    let logits = model.logits(&before)?;
    let first_choice = |row: &[f32]| {
        let best = row.iter().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        best.map(|(token, _)| token as u32)
    };
    let right = haystack
        .answers
        .iter()
        .zip(logits.chunks_exact(vocabulary))
        .filter(|(position, row)| first_choice(row) == Some(haystack.tokens[**position]))
        .count();
    Ok(Some(right as f64 / haystack.answers.len().max(1) as f64))
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
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    1.0 - dot(one, other) / (dot(one, one) * dot(other, other)).sqrt().max(f64::MIN_POSITIVE)
}
