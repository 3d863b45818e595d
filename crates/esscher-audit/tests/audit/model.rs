//! Forward passes against their definition, written token by token in double precision.

use crate::worlds::{bert, decoded, difference, llama, numbers, tokens, weights};
use esscher_audit::Error;
use esscher_audit::checkpoint::{Affine, BertWeights, LayerNorm, LlamaWeights, Pairs, Weights};
use esscher_audit::head::Order;
use esscher_audit::model::{ExactAttention, ExactCache, Model, OutputProjection};
use esscher_audit::weights::{Matrix, Storage};
use esscher_core::{Monitor, Unwatched};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Single precision through a few layers of norms, which divide by what they are given.
const ROUNDING: f32 = 2e-5;

type Rows = Vec<Vec<f64>>;

fn product(matrix: &Matrix, input: &[f64]) -> Vec<f64> {
    decoded(matrix).iter().map(|row| row.iter().zip(input).map(|(a, b)| f64::from(*a) * b).sum()).collect()
}

fn affine(affine: &Affine, input: &[f64]) -> Vec<f64> {
    product(&affine.matrix, input).iter().zip(&affine.bias).map(|(x, b)| x + f64::from(*b)).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn attention(
    queries: &Rows,
    keys: &Rows,
    values: &Rows,
    heads: usize,
    key_value_heads: usize,
    order: Order,
) -> Rows {
    let dimension = queries[0].len() / heads;
    (0..queries.len())
        .map(|token| {
            (0..heads)
                .flat_map(|head| {
                    let part =
                        |row: &[f64], head: usize| row[head * dimension..(head + 1) * dimension].to_vec();
                    let other = head / (heads / key_value_heads);
                    let query = part(&queries[token], head);
                    let seen = if order == Order::Causal { token + 1 } else { queries.len() };
                    let weights: Vec<f64> = (0..seen)
                        .map(|place| {
                            let key = part(&keys[place], other);
                            let score: f64 = query.iter().zip(&key).map(|(a, b)| a * b).sum();
                            (score / (dimension as f64).sqrt()).exp()
                        })
                        .collect();
                    let total: f64 = weights.iter().sum();
                    (0..dimension)
                        .map(|k| {
                            (0..seen)
                                .map(|place| weights[place] * part(&values[place], other)[k])
                                .sum::<f64>()
                                / total
                        })
                        .collect::<Vec<_>>()
                })
                .collect()
        })
        .collect()
}

fn llama_reference(weights: &LlamaWeights, text: &[u32]) -> Vec<f32> {
    let norm = |row: &[f64], gain: &[f32]| -> Vec<f64> {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
        let factor = (mean + f64::from(weights.norm_epsilon)).sqrt();
        row.iter().zip(gain).map(|(x, gain)| x / factor * f64::from(*gain)).collect()
    };
    let turn = |row: Vec<f64>, position: usize| -> Vec<f64> {
        let dimension = weights.head_dimension;
        let mut turned = row.clone();
        for first in (0..row.len()).step_by(dimension) {
            for pair in 0..dimension / 2 {
                let angle = position as f64
                    * f64::from(weights.rotation.base).powf(-2.0 * pair as f64 / dimension as f64);
                let (x, y) = match weights.rotation.pairs {
                    Pairs::Neighbours => (first + 2 * pair, first + 2 * pair + 1),
                    Pairs::Halves => (first + pair, first + pair + dimension / 2),
                };
                turned[x] = row[x] * angle.cos() - row[y] * angle.sin();
                turned[y] = row[x] * angle.sin() + row[y] * angle.cos();
            }
        }
        turned
    };
    let embedding = decoded(&weights.embedding);
    let mut stream: Rows =
        text.iter().map(|token| embedding[*token as usize].iter().map(|x| f64::from(*x)).collect()).collect();
    for layer in &weights.layers {
        let normed: Rows = stream.iter().map(|row| norm(row, &layer.attention_norm)).collect();
        let turned = |matrix: &Matrix| -> Rows {
            normed.iter().enumerate().map(|(position, row)| turn(product(matrix, row), position)).collect()
        };
        let values = normed.iter().map(|row| product(&layer.value, row)).collect();
        let heads = attention(
            &turned(&layer.query),
            &turned(&layer.key),
            &values,
            weights.heads,
            weights.key_value_heads,
            Order::Causal,
        );
        for (row, heads) in stream.iter_mut().zip(&heads) {
            *row = sum(row, &product(&layer.output, heads));
            let normed = norm(row, &layer.feed_forward_norm);
            let (gate, up) = (product(&layer.gate, &normed), product(&layer.up, &normed));
            let hidden: Vec<f64> = gate.iter().zip(&up).map(|(x, up)| x / (1.0 + (-x).exp()) * up).collect();
            *row = sum(row, &product(&layer.down, &hidden));
        }
    }
    stream.iter().flat_map(|row| norm(row, &weights.final_norm)).map(|x| x as f32).collect()
}

fn bert_reference(weights: &BertWeights, text: &[u32]) -> Vec<f32> {
    let norm = |row: Vec<f64>, norm: &LayerNorm| -> Vec<f64> {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
        let sd = (variance + f64::from(weights.norm_epsilon)).sqrt();
        let scaled = row.iter().zip(&norm.gain).map(|(x, gain)| (x - mean) / sd * f64::from(*gain));
        scaled.zip(&norm.bias).map(|(x, bias)| x + f64::from(*bias)).collect()
    };
    let (words, positions) = (decoded(&weights.words), decoded(&weights.positions));
    let mut stream: Rows = text
        .iter()
        .enumerate()
        .map(|(position, token)| {
            let numbers = words[*token as usize].iter().zip(&positions[position]).zip(&weights.segment);
            norm(
                numbers.map(|((a, b), c)| f64::from(*a) + f64::from(*b) + f64::from(*c)).collect(),
                &weights.embedding_norm,
            )
        })
        .collect();
    for layer in &weights.layers {
        let of = |part: &Affine| -> Rows { stream.iter().map(|row| affine(part, row)).collect() };
        let heads = attention(
            &of(&layer.query),
            &of(&layer.key),
            &of(&layer.value),
            weights.heads,
            weights.heads,
            Order::Whole,
        );
        for (row, heads) in stream.iter_mut().zip(&heads) {
            *row = norm(sum(row, &affine(&layer.output, heads)), &layer.attention_norm);
            let hidden: Vec<f64> = affine(&layer.up, row)
                .iter()
                .map(|x| x * esscher_core::numerics::normal::distribution(*x))
                .collect();
            *row = norm(sum(row, &affine(&layer.down, &hidden)), &layer.feed_forward_norm);
        }
    }
    stream.iter().flatten().map(|x| *x as f32).collect()
}

#[test]
fn a_decoder_computes_its_definition_for_both_kinds_of_pairs() {
    for pairs in [Pairs::Neighbours, Pairs::Halves] {
        for count in [1, 7, 40] {
            let weights = llama(pairs, Storage::Q4_1);
            let text = tokens(5, count, 301);
            let expected = llama_reference(&weights, &text);
            let model = Model::new(Weights::Llama(weights)).unwrap();
            let mut attention = ExactAttention::new(model.shape());
            let hidden = model.forward(&text, 0, &mut attention, &Unwatched).unwrap().unwrap();
            let found = difference(&hidden, &expected);
            assert!(found < ROUNDING, "{pairs:?}, {count} tokens: {found}");
        }
    }
}

#[test]
fn an_encoder_computes_its_definition() {
    let weights = bert();
    let text = tokens(6, 45, 101);
    let expected = bert_reference(&weights, &text);
    let model = Model::new(Weights::Bert(weights)).unwrap();
    let mut attention = ExactAttention::new(model.shape());
    let hidden = model.forward(&text, 0, &mut attention, &Unwatched).unwrap().unwrap();
    let found = difference(&hidden, &expected);
    assert!(found < ROUNDING, "{found}");
}

#[test]
fn decoding_token_by_token_gives_the_hidden_states_of_the_whole_text() {
    let model = Model::new(Weights::Llama(llama(Pairs::Halves, Storage::Q8_0))).unwrap();
    let text = tokens(7, 30, 301);
    let mut whole = ExactAttention::new(model.shape());
    let expected = model.forward(&text, 0, &mut whole, &Unwatched).unwrap().unwrap();
    let mut cache = ExactCache::new(model.shape()).unwrap();
    let mut hidden = model.forward(&text[..20], 0, &mut cache, &Unwatched).unwrap().unwrap();
    for place in 20..30 {
        hidden.extend(model.forward(&text[place..=place], place, &mut cache, &Unwatched).unwrap().unwrap());
    }
    let found = difference(&hidden, &expected);
    assert!(found < ROUNDING, "{found}");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let model = Model::new(Weights::Llama(llama(Pairs::Halves, Storage::Q4_1))).unwrap();
    let text = tokens(8, 200, 301);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut attention = ExactAttention::new(model.shape());
            let hidden = model.forward(&text, 0, &mut attention, &Unwatched).unwrap().unwrap();
            let likelihoods = model.log_likelihoods(&hidden[..199 * 64], &text[1..]).unwrap();
            (hidden, likelihoods)
        })
    };
    assert!(run(1) == run(3));
}

#[test]
fn log_likelihoods_are_those_of_the_softmax_of_the_logits() {
    let model = Model::new(Weights::Llama(llama(Pairs::Halves, Storage::Q8_0))).unwrap();
    let (hidden, next) = (numbers(9, 600 * 64, 2.0), tokens(10, 600, 301));
    let logits = model.logits(&hidden).unwrap();
    let found = model.log_likelihoods(&hidden, &next).unwrap();
    for ((logits, next), found) in logits.chunks(301).zip(&next).zip(&found) {
        let sum: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
        let expected = f64::from(logits[*next as usize]) - sum.ln();
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn projected_errors_have_the_norm_of_the_product_with_the_columns_of_their_head() {
    for weights in weights() {
        let output = match &weights {
            Weights::Llama(weights) => decoded(&weights.layers[1].output),
            Weights::Bert(weights) => decoded(&weights.layers[1].output.matrix),
        };
        let model = Model::new(weights).unwrap();
        let dimension = model.shape().head_dimension;
        let projection: OutputProjection = model.output_projection(1).unwrap();
        let errors = numbers(11, 5 * dimension, 1.0);
        for head in 0..4 {
            let found = projection.norms(head, &errors).unwrap();
            for (error, found) in errors.chunks(dimension).zip(&found) {
                let squares = output.iter().map(|row| {
                    let part = &row[head * dimension..(head + 1) * dimension];
                    part.iter().zip(error).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>().powi(2)
                });
                let expected = squares.sum::<f64>().sqrt() as f32;
                assert!((found - expected).abs() < 1e-5 * expected);
            }
        }
        assert!(projection.norms(4, &errors).is_none() && model.output_projection(7).is_none());
    }
}

#[test]
fn texts_that_do_not_fit_are_refused_with_what_to_try() {
    for weights in weights() {
        let model = Model::new(weights).unwrap();
        let mut attention = ExactAttention::new(model.shape());
        let context = model.shape().context;
        let vocabulary = model.shape().vocabulary as u32;
        let mut refusal =
            |text: &[u32], start: usize| model.forward(text, start, &mut attention, &Unwatched).unwrap_err();
        assert!(matches!(refusal(&[], 0), Error::TooFewTokens { found: 0, needed: 1, .. }));
        let unknown =
            |place| Error::UnknownToken { place, token: vocabulary, vocabulary: vocabulary as usize };
        assert_eq!(refusal(&[0, vocabulary], 0), unknown(1));
        assert_eq!(refusal(&vec![0; context + 1], 0), Error::TooManyTokens { end: context + 1, context });
        match model.shape().order {
            Order::Causal => {
                assert_eq!(refusal(&[0], usize::MAX), Error::TooManyTokens { end: usize::MAX, context });
            }
            Order::Whole => {
                assert!(matches!(refusal(&[0], usize::MAX), Error::WrongStart { expected: 0, .. }));
            }
        }
        let row = vec![0.0; model.shape().width];
        assert!(matches!(model.logits(&[0.0; 3]), Err(Error::WrongSizes { .. })));
        assert_eq!(model.log_likelihoods(&row, &[vocabulary]), Err(unknown(0)));
        assert!(matches!(model.log_likelihoods(&row, &[]), Err(Error::WrongSizes { .. })));
    }
}

#[test]
fn weights_that_do_not_fit_together_are_refused_by_name() {
    let mut weights = llama(Pairs::Halves, Storage::F32);
    weights.layers[2].up = weights.layers[2].down.clone();
    let message = Model::new(Weights::Llama(weights)).unwrap_err().to_string();
    assert_eq!(message, "up of layer 2: expected 96 × 64 numbers, found 64 × 96");
    let mut weights = llama(Pairs::Halves, Storage::F32);
    weights.key_value_heads = 3;
    assert!(Model::new(Weights::Llama(weights)).is_err());
    let mut weights = bert();
    weights.layers[0].attention_norm.gain.pop();
    assert!(Model::new(Weights::Bert(weights)).unwrap_err().to_string().contains("gain of attention norm"));
}

/// Wants to stop when it is asked for the second time.
struct Impatient(AtomicUsize);

impl Monitor for Impatient {
    fn progress(&self, _: usize, _: usize) {}
    fn should_stop(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= 1
    }
}

#[test]
fn a_monitor_stops_a_forward_pass_between_layers() {
    for weights in weights() {
        let model = Model::new(weights).unwrap();
        let monitor = Impatient(AtomicUsize::new(0));
        let mut attention = ExactAttention::new(model.shape());
        assert_eq!(model.forward(&[1, 2, 3], 0, &mut attention, &monitor).unwrap(), None);
        assert_eq!(monitor.0.load(Ordering::Relaxed), 2);
    }
}
