//! Sizes of weights and requests, checked once so that forward passes can rely on them.

use super::Shape;
use crate::Error;
use crate::checkpoint::{Affine, BertWeights, LayerNorm, LlamaWeights};
use crate::head::{LARGEST_DIMENSION, Order};
use crate::weights::Matrix;

/// The shape of a decoder.
pub(super) fn llama(weights: &LlamaWeights) -> Result<Shape, Error> {
    let (heads, key_value_heads, dimension) =
        (weights.heads, weights.key_value_heads, weights.head_dimension);
    if heads == 0 || key_value_heads == 0 || heads % key_value_heads != 0 {
        return Err(damaged(
            "the numbers of heads",
            format!("{heads} query heads cannot share {key_value_heads} key-value heads evenly"),
        ));
    }
    if dimension == 0 || dimension % 2 != 0 {
        return Err(damaged(
            "the head dimension",
            format!("positions turn pairs of numbers, but a head has {dimension}"),
        ));
    }
    head_dimension(dimension)?;
    if !(weights.rotation.base.is_finite() && weights.rotation.base > 0.0) {
        let base = weights.rotation.base;
        return Err(damaged("the base of the rotation", format!("expected a positive number, found {base}")));
    }
    let width = weights.embedding.columns();
    let vocabulary = weights.embedding.rows();
    common(width, vocabulary, weights.context, weights.layers.len(), weights.norm_epsilon)?;
    let (queries, keys) = (product(heads, dimension)?, product(key_value_heads, dimension)?);
    for (number, layer) in weights.layers.iter().enumerate() {
        let name = |part: &str| format!("{part} of layer {number}");
        vector(&name("attention norm"), &layer.attention_norm, width)?;
        vector(&name("feed-forward norm"), &layer.feed_forward_norm, width)?;
        matrix(&name("query"), &layer.query, queries, width)?;
        matrix(&name("key"), &layer.key, keys, width)?;
        matrix(&name("value"), &layer.value, keys, width)?;
        matrix(&name("output"), &layer.output, width, queries)?;
        let hidden = layer.gate.rows();
        matrix(&name("gate"), &layer.gate, hidden, width)?;
        matrix(&name("up"), &layer.up, hidden, width)?;
        matrix(&name("down"), &layer.down, width, hidden)?;
    }
    vector("final norm", &weights.final_norm, width)?;
    if let Some(unembedding) = &weights.unembedding {
        matrix("unembedding", unembedding, vocabulary, width)?;
    }
    Ok(Shape {
        layers: weights.layers.len(),
        heads,
        key_value_heads,
        head_dimension: dimension,
        width,
        vocabulary,
        context: weights.context,
        order: Order::Causal,
    })
}

/// The shape of an encoder.
pub(super) fn bert(weights: &BertWeights) -> Result<Shape, Error> {
    let (width, vocabulary, heads) = (weights.words.columns(), weights.words.rows(), weights.heads);
    if heads == 0 || width % heads != 0 {
        return Err(damaged(
            "the number of heads",
            format!("{heads} heads cannot share {width} numbers per token evenly"),
        ));
    }
    head_dimension(width / heads)?;
    let context = weights.positions.rows();
    common(width, vocabulary, context, weights.layers.len(), weights.norm_epsilon)?;
    matrix("positions", &weights.positions, context, width)?;
    vector("segment", &weights.segment, width)?;
    layer_norm("embedding norm", &weights.embedding_norm, width)?;
    for (number, layer) in weights.layers.iter().enumerate() {
        let name = |part: &str| format!("{part} of layer {number}");
        let hidden = layer.up.matrix.rows();
        affine(&name("query"), &layer.query, width, width)?;
        affine(&name("key"), &layer.key, width, width)?;
        affine(&name("value"), &layer.value, width, width)?;
        affine(&name("output"), &layer.output, width, width)?;
        layer_norm(&name("attention norm"), &layer.attention_norm, width)?;
        affine(&name("up"), &layer.up, hidden, width)?;
        affine(&name("down"), &layer.down, width, hidden)?;
        layer_norm(&name("feed-forward norm"), &layer.feed_forward_norm, width)?;
    }
    Ok(Shape {
        layers: weights.layers.len(),
        heads,
        key_value_heads: heads,
        head_dimension: width / heads,
        width,
        vocabulary,
        context,
        order: Order::Whole,
    })
}

fn head_dimension(dimension: usize) -> Result<(), Error> {
    if dimension <= LARGEST_DIMENSION {
        return Ok(());
    }
    let problem = format!("expected at most {LARGEST_DIMENSION} numbers per head, found {dimension}");
    Err(damaged("the head dimension", problem))
}

/// That a text can be run from position `start` on.
pub(super) fn tokens(shape: &Shape, tokens: &[u32], start: usize) -> Result<(), Error> {
    if tokens.is_empty() {
        return Err(Error::TooFewTokens {
            what: "the text",
            found: 0,
            needed: 1,
            purpose: "a run of the model".to_string(),
            remedy: "give a longer text",
        });
    }
    if shape.order == Order::Whole && start != 0 {
        let remedy = "give an encoder its whole text in one call, for every token sees all";
        return Err(Error::WrongStart { expected: 0, found: start, remedy });
    }
    let end = start.saturating_add(tokens.len());
    if end > shape.context {
        return Err(Error::TooManyTokens { end, context: shape.context });
    }
    in_vocabulary(shape, tokens)
}

/// That tokens are in the vocabulary.
pub(super) fn in_vocabulary(shape: &Shape, tokens: &[u32]) -> Result<(), Error> {
    match tokens.iter().position(|token| *token as usize >= shape.vocabulary) {
        None => Ok(()),
        Some(place) => Err(Error::UnknownToken { place, token: tokens[place], vocabulary: shape.vocabulary }),
    }
}

/// The number of rows of hidden states.
pub(super) fn rows(shape: &Shape, hidden: &[f32]) -> Result<usize, Error> {
    if !hidden.len().is_multiple_of(shape.width) {
        return Err(Error::WrongSizes {
            what: "rows of hidden states".to_string(),
            expected: format!("a multiple of {}", shape.width),
            found: vec![hidden.len()],
        });
    }
    Ok(hidden.len() / shape.width)
}

fn common(width: usize, vocabulary: usize, context: usize, layers: usize, epsilon: f32) -> Result<(), Error> {
    for (what, number) in
        [("width", width), ("vocabulary", vocabulary), ("context", context), ("number of layers", layers)]
    {
        if number == 0 {
            return Err(damaged(&format!("the {what}"), "expected at least 1, found 0".to_string()));
        }
    }
    if !(epsilon.is_finite() && epsilon >= 0.0) {
        return Err(damaged(
            "the epsilon of the norms",
            format!("expected a small positive number, found {epsilon}"),
        ));
    }
    Ok(())
}

fn product(heads: usize, dimension: usize) -> Result<usize, Error> {
    heads
        .checked_mul(dimension)
        .ok_or_else(|| damaged("the numbers of heads", format!("{heads} heads of {dimension} numbers")))
}

fn matrix(name: &str, matrix: &Matrix, rows: usize, columns: usize) -> Result<(), Error> {
    if (matrix.rows(), matrix.columns()) != (rows, columns) {
        return Err(damaged(
            name,
            format!("expected {rows} × {columns} numbers, found {} × {}", matrix.rows(), matrix.columns()),
        ));
    }
    Ok(())
}

fn vector(name: &str, vector: &[f32], length: usize) -> Result<(), Error> {
    if vector.len() != length {
        return Err(damaged(name, format!("expected {length} numbers, found {}", vector.len())));
    }
    match vector.iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => Err(damaged(name, format!("weights must be finite numbers, found {number}"))),
    }
}

fn affine(name: &str, affine: &Affine, rows: usize, columns: usize) -> Result<(), Error> {
    matrix(name, &affine.matrix, rows, columns)?;
    vector(&format!("bias of {name}"), &affine.bias, rows)
}

fn layer_norm(name: &str, norm: &LayerNorm, width: usize) -> Result<(), Error> {
    vector(&format!("gain of {name}"), &norm.gain, width)?;
    vector(&format!("bias of {name}"), &norm.bias, width)
}

fn damaged(what: &str, problem: String) -> Error {
    Error::Damaged { what: what.to_string(), problem }
}
