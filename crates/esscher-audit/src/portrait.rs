//! The portrait of a head on a text: how far its scores spread, how many tokens it reads, where its sinks are.
//!
//! The theory of large prompts asks of a head that the variance s² of its scores be small against the logarithm of the prompt's
//! length: a softmax over L tokens follows its limit when L is well above e^{s²}. The portrait says what the head asks for and what the
//! text gives.

use crate::head::{Head, Order, product_in_double};
use esscher_core::numerics::{Stream, exponentials_f32};

/// What is seen of a head at the queries of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Portrait {
    /// s²: the variance of a query's scores over the tokens that it sees, the first [`SINK_POSITIONS`] left out; mean over queries.
    pub score_variance: f64,
    /// 1 / Σ p²: over how many tokens a query spreads its weight; median over queries.
    pub effective_tokens: f64,
    /// How far the output moves, relative to its norm, when a query sees a random half of its tokens; median over queries. What a
    /// prompt of this length knows of its own limit.
    pub half_token_noise: f64,
    /// The share of the weight on the first [`SINK_POSITIONS`] tokens; mean over queries.
    pub first_token_weight: f64,
    /// The token with the largest mean weight among those that all measured queries see, and that weight.
    pub sink: Sink,
    /// The tokens that one query gives most weight, at most [`HEAVIEST`], the heaviest first: that at [`shown_query`].
    pub heaviest: Vec<TokenWeight>,
}

/// The weight of one query on one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenWeight {
    /// The position of the token, from 0.
    pub position: usize,
    /// The share of the query's weight.
    pub weight: f64,
}

/// A token that draws weight whatever the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sink {
    /// The position of the token, from 0.
    pub position: usize,
    /// The mean over queries of the weight on it.
    pub weight: f64,
}

/// Positions at the beginning of a text that draw weight for being there.
pub const SINK_POSITIONS: usize = 4;

/// As many tokens of one query are told: enough to see what a head looks at.
pub const HEAVIEST: usize = 6;

/// The position whose query shows what heads look at: the last, which sees the whole text; where every token sees all, one in its midst.
pub fn shown_query(order: Order, tokens: usize) -> usize {
    match order {
        Order::Causal => tokens.saturating_sub(1),
        Order::Whole => tokens / 2,
    }
}

/// At most this many queries are looked at.
const QUERIES: usize = 64;

/// The positions whose queries are measured, at most `most` of them, evenly spread: in causal texts those of the second half, where
/// contexts are long, from `first` on; all where every token sees all.
pub fn measured_positions(order: Order, tokens: usize, first: usize, most: usize) -> Vec<usize> {
    let first = match order {
        Order::Causal => first.max(tokens / 2).min(tokens),
        Order::Whole => 0,
    };
    let count = tokens - first;
    let kept = count.min(most.max(1));
    (0..kept).map(|index| first + (index * 2 + 1) * count / (2 * kept)).collect()
}

/// The portrait of a head; the random halves are those of this stream. Nothing for a text of fewer than two tokens.
pub fn portrait(head: &Head<'_>, stream: &mut Stream) -> Option<Portrait> {
    let tokens = head.len();
    if tokens < 2 {
        return None;
    }
    let positions = measured_positions(head.order, tokens, 0, QUERIES);
    let mut weights_of_tokens = vec![0.0; tokens];
    let mut variances = 0.0;
    let mut first_weights = 0.0;
    let (mut effective, mut noises) = (Vec::new(), Vec::new());
    let halves: Vec<bool> = (0..tokens).map(|_| stream.bits() & 1 == 1).collect();
    for &position in &positions {
        let seen = match head.order {
            Order::Causal => position + 1,
            Order::Whole => tokens,
        };
        let scores = scores(head, position, seen);
        variances += variance(&scores[SINK_POSITIONS.min(seen / 2)..]);
        let weights = softmax(&scores);
        first_weights += weights.iter().take(SINK_POSITIONS).map(|weight| f64::from(*weight)).sum::<f64>();
        for (sum, weight) in weights_of_tokens.iter_mut().zip(&weights) {
            *sum += f64::from(*weight);
        }
        effective.push(1.0 / weights.iter().map(|weight| f64::from(*weight).powi(2)).sum::<f64>());
        noises.extend(half_noise(head, &weights, &halves));
    }
    let queries = positions.len() as f64;
    // Tokens that every measured query sees.
    let early = match head.order {
        Order::Causal => tokens / 2,
        Order::Whole => tokens,
    };
    let sink = (0..early)
        .map(|position| Sink { position, weight: weights_of_tokens[position] / queries })
        .max_by(|one, other| one.weight.total_cmp(&other.weight))?;
    Some(Portrait {
        score_variance: variances / queries,
        effective_tokens: median(&mut effective)?,
        half_token_noise: median(&mut noises).unwrap_or(0.0),
        first_token_weight: first_weights / queries,
        sink,
        heaviest: heaviest(head),
    })
}

fn heaviest(head: &Head<'_>) -> Vec<TokenWeight> {
    let position = shown_query(head.order, head.len());
    let seen = match head.order {
        Order::Causal => position + 1,
        Order::Whole => head.len(),
    };
    let weights = softmax(&scores(head, position, seen)).into_iter().enumerate();
    let mut weights: Vec<TokenWeight> =
        weights.map(|(position, weight)| TokenWeight { position, weight: f64::from(weight) }).collect();
    // Of equal weights the earlier token: the order is that of the text wherever weights do not decide.
    weights.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    weights.truncate(HEAVIEST);
    weights
}

fn scores(head: &Head<'_>, position: usize, seen: usize) -> Vec<f64> {
    let d = head.dimension;
    let tilt = &head.tilts[position * d..(position + 1) * d];
    let score = |key: &[f32]| {
        let single: f32 = tilt.iter().zip(key).map(|(tilt, key)| tilt * key).sum();
        if single.is_finite() { f64::from(single) } else { product_in_double(tilt, key) }
    };
    head.keys[..seen * d].chunks_exact(d).map(score).collect()
}

/// No numbers if a score is not finite.
fn softmax(scores: &[f64]) -> Vec<f32> {
    if scores.iter().any(|score| !score.is_finite()) {
        return vec![f32::NAN; scores.len()];
    }
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f32> = scores.iter().map(|score| (score - highest) as f32).collect();
    exponentials_f32(&mut weights);
    let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    weights.iter_mut().for_each(|weight| *weight = (f64::from(*weight) / total) as f32);
    weights
}

fn variance(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count
}

/// |o_half − o| / |o|, unless the half has no weight or the output is zero.
fn half_noise(head: &Head<'_>, weights: &[f32], halves: &[bool]) -> Option<f64> {
    let d = head.dimension;
    let (mut whole, mut half, mut mass) = (vec![0.0; d], vec![0.0; d], 0.0);
    for ((weight, value), kept) in weights.iter().zip(head.values.chunks_exact(d)).zip(halves) {
        let weight = f64::from(*weight);
        for (sum, entry) in whole.iter_mut().zip(value) {
            *sum += weight * f64::from(*entry);
        }
        if *kept {
            mass += weight;
            for (sum, entry) in half.iter_mut().zip(value) {
                *sum += weight * f64::from(*entry);
            }
        }
    }
    let norm = whole.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
    if mass <= 0.0 || norm <= 0.0 {
        return None;
    }
    let moved: f64 = half.iter().zip(&whole).map(|(half, whole)| (half / mass - whole).powi(2)).sum();
    Some(moved.sqrt() / norm)
}

/// The middle of some numbers, the mean of the two middle ones; nothing of nothing, and no number if one of them is
/// none: it would be sorted to either end.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|value| value.is_nan()) {
        return Some(f64::NAN);
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 })
}
