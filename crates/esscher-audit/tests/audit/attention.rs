//! Exact attention in blocks and from a cache against its definition.

use crate::worlds::{difference, numbers};
use esscher_audit::Error;
use esscher_audit::head::Order;
use esscher_audit::layer::LayerHeads;
use esscher_audit::model::{ExactAttention, ExactCache, LayerAttention, LayerInput, Recorder, Shape};

/// Weighted means in single precision.
const ROUNDING: f32 = 3e-6;

fn shape(heads: usize, key_value_heads: usize, head_dimension: usize, order: Order) -> Shape {
    Shape {
        layers: 2,
        heads,
        key_value_heads,
        head_dimension,
        width: 24,
        vocabulary: 1,
        context: 5000,
        order,
    }
}

struct Text {
    shape: Shape,
    count: usize,
    tilts: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    residual: Vec<f32>,
}

impl Text {
    fn new(shape: Shape, count: usize) -> Self {
        let queries = count * shape.heads * shape.head_dimension;
        let keys = count * shape.key_value_heads * shape.head_dimension;
        Text {
            shape,
            count,
            // θ = q/√d: scores of order one, whose rounding is that of their weights.
            tilts: numbers(1, queries, 1.0 / (shape.head_dimension as f32).sqrt()),
            keys: numbers(2, keys, 1.0),
            values: numbers(3, keys, 1.0),
            residual: numbers(4, count * shape.width, 1.0),
        }
    }

    fn part(&self, start: usize, count: usize) -> LayerInput<'_> {
        let queries = self.shape.heads * self.shape.head_dimension;
        let keys = self.shape.key_value_heads * self.shape.head_dimension;
        let end = start + count;
        LayerInput {
            layer: 1,
            start,
            count,
            tilts: &self.tilts[start * queries..end * queries],
            keys: &self.keys[start * keys..end * keys],
            values: &self.values[start * keys..end * keys],
            residual: &self.residual[start * self.shape.width..end * self.shape.width],
        }
    }

    /// Σ e^{θ·k} v / Σ e^{θ·k} in double precision, literally.
    fn expected(&self) -> Vec<f32> {
        let Shape { heads, key_value_heads, head_dimension: dimension, order, .. } = self.shape;
        let mut output = Vec::new();
        for token in 0..self.count {
            for head in 0..heads {
                let tilt = &self.tilts[(token * heads + head) * dimension..][..dimension];
                let place =
                    |other: usize| (other * key_value_heads + head / (heads / key_value_heads)) * dimension;
                let seen = if order == Order::Causal { token + 1 } else { self.count };
                let (mut total, mut sum) = (0.0, vec![0.0; dimension]);
                for other in 0..seen {
                    let key = &self.keys[place(other)..][..dimension];
                    let score: f64 = tilt.iter().zip(key).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let weight = score.exp();
                    total += weight;
                    for (sum, value) in sum.iter_mut().zip(&self.values[place(other)..][..dimension]) {
                        *sum += weight * f64::from(*value);
                    }
                }
                output.extend(sum.iter().map(|sum| (sum / total) as f32));
            }
        }
        output
    }
}

#[test]
fn blocks_give_the_weighted_mean_of_values_at_odd_sizes() {
    for order in [Order::Causal, Order::Whole] {
        for (heads, key_value_heads, dimension) in [(6, 2, 16), (3, 3, 10), (4, 1, 64)] {
            for count in [1, 2, 63, 64, 65, 130, 300] {
                let text = Text::new(shape(heads, key_value_heads, dimension, order), count);
                let mut output = vec![f32::NAN; text.tilts.len()];
                ExactAttention::new(&text.shape).attend(&text.part(0, count), &mut output).unwrap();
                let found = difference(&output, &text.expected());
                assert!(
                    found < ROUNDING,
                    "{order:?}, {heads}/{key_value_heads} heads, {count} tokens: {found}"
                );
            }
        }
    }
}

#[test]
fn a_cache_gives_the_same_whether_tokens_come_one_by_one_or_in_pieces() {
    for (heads, key_value_heads, dimension) in [(6, 2, 16), (3, 3, 10)] {
        let text = Text::new(shape(heads, key_value_heads, dimension, Order::Causal), 200);
        let expected = text.expected();
        let mut cache = ExactCache::new(&text.shape).unwrap();
        let mut output = vec![f32::NAN; text.tilts.len()];
        let width = heads * dimension;
        let mut start = 0;
        for count in [1, 1, 70, 1, 3, 100, 1, 1, 22] {
            let part = &mut output[start * width..(start + count) * width];
            cache.attend(&text.part(start, count), part).unwrap();
            start += count;
        }
        assert_eq!((start, cache.len()), (200, 200));
        assert!(difference(&output, &expected) < ROUNDING);
    }
}

#[test]
fn a_long_cache_is_read_in_several_blocks() {
    let text = Text::new(shape(4, 2, 8, Order::Causal), 2500);
    let mut cache = ExactCache::new(&text.shape).unwrap();
    let before = text.part(0, 2499);
    cache.extend(1, before.keys, before.values).unwrap();
    let mut output = vec![f32::NAN; 32];
    cache.attend(&text.part(2499, 1), &mut output).unwrap();
    assert!(difference(&output, &text.expected()[2499 * 32..]) < ROUNDING);
    assert_eq!(cache.bytes(), 2500 * 2 * 8 * 2 * 4);
}

#[test]
fn huge_scores_neither_overflow_nor_vanish() {
    let mut text = Text::new(shape(2, 1, 8, Order::Causal), 150);
    text.keys.iter_mut().for_each(|key| *key *= 300.0);
    for attention in [
        &mut ExactAttention::new(&text.shape) as &mut dyn LayerAttention,
        &mut ExactCache::new(&text.shape).unwrap(),
    ] {
        let mut output = vec![f32::NAN; text.tilts.len()];
        attention.attend(&text.part(0, 150), &mut output).unwrap();
        assert!(output.iter().all(|number| number.is_finite()));
        assert_eq!(output[..8], text.values[..8], "the first token sees only itself");
    }
}

#[test]
fn layers_whose_scores_single_precision_does_not_hold_are_not_taken_apart() {
    let mut text = Text::new(shape(2, 1, 8, Order::Causal), 70);
    let mut taken = |tilt: f32, key: f32, value: f32| {
        (text.tilts[9], text.keys[3], text.values[5]) = (tilt, key, value);
        LayerHeads::new(&text.shape, &text.part(0, 70)).map(|_| ())
    };
    taken(1e19, -1e18, 1e15).unwrap();
    let message = taken(1.0, 1.0, -1.04e15).unwrap_err().to_string();
    assert!(message.contains("layer 1: values reach 1.04e15, expected at most 1e15"), "{message}");
    let message = taken(1e20, -1e20, 1.0).unwrap_err().to_string();
    assert!(message.contains("layer 1: scores may reach 8e40"), "{message}");
    for (tilt, key, value) in [(f32::NAN, 1.0, 1.0), (1.0, f32::INFINITY, 1.0), (1.0, 1.0, f32::NAN)] {
        assert!(matches!(taken(tilt, key, value), Err(Error::ScoresOverflow { layer: 1, .. })));
    }
}

/// Whoever has by far the largest score has all weight.
#[test]
fn scores_beyond_single_precision_are_compared_all_the_same() {
    for order in [Order::Causal, Order::Whole] {
        let mut text = Text::new(shape(2, 1, 8, order), 70);
        text.tilts.iter_mut().for_each(|tilt| *tilt *= 1e20);
        text.keys.iter_mut().for_each(|key| *key *= 1e20);
        let mut expected = Vec::new();
        for (place, tilt) in text.tilts.chunks_exact(8).enumerate() {
            let score = |key: &[f32]| {
                tilt.iter().zip(key).map(|(tilt, key)| f64::from(*tilt) * f64::from(*key)).sum::<f64>()
            };
            let seen = if order == Order::Causal { place / 2 + 1 } else { 70 };
            let tokens = text.keys.chunks_exact(8).zip(text.values.chunks_exact(8)).take(seen);
            let best = tokens.max_by(|(one, _), (other, _)| score(one).total_cmp(&score(other))).unwrap();
            expected.extend_from_slice(best.1);
        }
        let mut output = vec![f32::NAN; text.tilts.len()];
        ExactAttention::new(&text.shape).attend(&text.part(0, 70), &mut output).unwrap();
        assert_eq!(output, expected);
        if order == Order::Causal {
            let mut cache = ExactCache::new(&text.shape).unwrap();
            cache.attend(&text.part(0, 60), &mut output[..60 * 16]).unwrap();
            for token in 60..70 {
                cache.attend(&text.part(token, 1), &mut output[token * 16..(token + 1) * 16]).unwrap();
            }
            assert_eq!(output, expected, "from a cache");
        }
    }
}

#[test]
fn values_whose_sums_overflow_have_their_mean() {
    let mut text = Text::new(shape(2, 1, 8, Order::Causal), 70);
    let expected = text.expected();
    text.values.iter_mut().for_each(|value| *value *= 5e37);
    let mut output = vec![f32::NAN; text.tilts.len()];
    let mut cache = ExactCache::new(&text.shape).unwrap();
    for attention in [&mut ExactAttention::new(&text.shape) as &mut dyn LayerAttention, &mut cache] {
        attention.attend(&text.part(0, 70), &mut output).unwrap();
        let small: Vec<f32> = output.iter().map(|entry| entry / 5e37).collect();
        assert!(difference(&small, &expected) < ROUNDING);
    }
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let text = Text::new(shape(2, 1, 8, Order::Causal), 10);
    let mut output = vec![0.0; text.tilts.len()];
    let short = &mut output[..16];
    let late = ExactAttention::new(&text.shape).attend(&text.part(3, 1), short);
    assert!(matches!(late, Err(Error::WrongStart { expected: 0, found: 3, .. })), "{late:?}");
    let mut cache = ExactCache::new(&text.shape).unwrap();
    let late = cache.attend(&text.part(3, 1), short);
    assert!(matches!(late, Err(Error::WrongStart { expected: 0, found: 3, .. })), "{late:?}");
    let narrow = cache.attend(&text.part(0, 2), short);
    assert!(
        matches!(&narrow, Err(Error::WrongSizes { found, .. }) if *found == [32, 16, 16, 16]),
        "{narrow:?}"
    );
    assert_eq!(cache.extend(7, &[], &[]), Err(Error::NoLayer { layer: 7, layers: text.shape.layers }));
    let whole = ExactCache::new(&shape(2, 1, 8, Order::Whole));
    assert!(matches!(whole, Err(Error::NeedsCausal { .. })));
}

#[test]
fn a_recorder_keeps_every_head_contiguous() {
    let text = Text::new(shape(6, 2, 4, Order::Causal), 9);
    let mut recorder = Recorder::new(ExactCache::new(&text.shape).unwrap(), &text.shape);
    let mut output = vec![0.0; text.tilts.len()];
    let (first, second) = output.split_at_mut(5 * 24);
    recorder.attend(&text.part(0, 5), first).unwrap();
    recorder.attend(&text.part(5, 4), second).unwrap();
    assert!(difference(&output, &text.expected()) < ROUNDING);
    let (recording, _) = recorder.finish();
    let head = recording.head(1, 4).unwrap();
    assert_eq!((head.len(), head.dimension), (9, 4));
    for token in 0..9 {
        assert_eq!(head.tilts[token * 4..][..4], text.tilts[(token * 6 + 4) * 4..][..4]);
        assert_eq!(head.keys[token * 4..][..4], text.keys[(token * 2 + 1) * 4..][..4]);
        assert_eq!(head.values[token * 4..][..4], text.values[(token * 2 + 1) * 4..][..4]);
    }
    let norm = text.residual[24..48].iter().map(|x| x * x).sum::<f32>().sqrt();
    assert!((recording.layers[1].residual_norms[1] - norm).abs() < 1e-5);
    assert!(recording.head(1, 6).is_none() && recording.head(2, 0).is_none());
}
