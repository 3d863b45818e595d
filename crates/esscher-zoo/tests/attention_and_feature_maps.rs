//! Softmax attention, linear attention with its feature maps, LUNA and InLine agree in all of their forms.

mod common;

use common::check_all;
use esscher_zoo::agreement::{Drawn, Gates, check_agreement};
use esscher_zoo::feature_maps::{Elu, FeatureMap, Hedgehog, Identity, LunaMap, Performer, Relu, T2r, Taylor};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::linear_attention::{LinearAttention, Normaliser};
use esscher_zoo::mechanism::{Chunked, Definition, Given, Gradient, Initial, Mechanism, Order};
use esscher_zoo::softmax::{Reach, Softmax};
use std::time::Instant;

#[test]
fn softmax_attention_agrees() {
    for reach in [Reach::Whole, Reach::Causal, Reach::Window(1), Reach::Window(9), Reach::Window(200)] {
        check_all(&Softmax { key_width: 3, value_width: 5, reach });
    }
    check_all(&Softmax { key_width: 1, value_width: 1, reach: Reach::Causal });
}

#[test]
fn softmax_attention_agrees_over_several_blocks_of_keys() {
    for reach in [Reach::Whole, Reach::Causal, Reach::Window(70), Reach::Window(300)] {
        let mechanism = Softmax { key_width: 3, value_width: 2, reach };
        if let Err(disagreement) = check_agreement(&mechanism, 531, Gates::Moderate, &[7, 300], 0) {
            panic!("{mechanism:?}: {disagreement}");
        }
    }
}

#[test]
fn softmax_attention_takes_scores_whose_exponentials_overflow() {
    let mechanism = Softmax { key_width: 1, value_width: 1, reach: Reach::Causal };
    let (query, value) = ([1e3_f32; 300], [1.0_f32; 300]);
    let key: Vec<f32> = (0..300).map(|t| t as f32).collect();
    let given = Given { length: 300, tokens: &[&query, &key, &value], parameters: &[] };
    let mut outputs = [0.0; 300];
    mechanism.forward(&given, &mut mechanism.init(), &mut outputs);
    assert!(outputs.iter().all(|o| (o - 1.0).abs() < 1e-6));
}

fn check_map<M: FeatureMap>(map: M, normaliser: Normaliser, value_width: usize) {
    for order in [Order::Causal, Order::Whole] {
        check_all(&LinearAttention { map: map.clone(), value_width, normaliser, order });
    }
}

#[test]
fn linear_attention_agrees_with_every_normaliser() {
    check_map(Elu { width: 3 }, Normaliser::Sum, 5);
    check_map(Elu { width: 1 }, Normaliser::Count, 1);
    check_map(Elu { width: 5 }, Normaliser::None, 2);
    check_map(Identity { width: 3 }, Normaliser::Count, 5);
    check_map(Identity { width: 1 }, Normaliser::None, 1);
    check_map(Relu { width: 5 }, Normaliser::Sum, 3);
    // Not the sum: there a single feature of the query cancels, and its derivative is the rounding of 0/φ(q).
    check_map(Relu { width: 1 }, Normaliser::Count, 1);
}

#[test]
fn linear_attention_agrees_with_taylor_features() {
    check_map(Taylor::new(3, 2), Normaliser::Sum, 2);
    check_map(Taylor::new(2, 4), Normaliser::Sum, 3);
    check_map(Taylor::new(3, 3), Normaliser::Count, 1);
    check_map(Taylor::new(3, 0), Normaliser::Sum, 1);
}

#[test]
fn linear_attention_agrees_with_random_features() {
    check_map(Performer { width: 3, features: 7, seed: 4 }, Normaliser::Sum, 2);
}

#[test]
fn linear_attention_agrees_with_trained_features() {
    check_map(Hedgehog { width: 3 }, Normaliser::Sum, 2);
    check_map(T2r { width: 3, features: 5 }, Normaliser::Sum, 2);
    check_map(LunaMap { width: 3, projections: 3, channels: 2, hidden: 5 }, Normaliser::Sum, 2);
}

/// φ(q)·φ(k) at the map's starting parameters.
fn kernel<M: FeatureMap>(map: &M, query: &[f64], key: &[f64]) -> f64 {
    let parameters: Vec<Vec<f64>> = map
        .parameters()
        .into_iter()
        .map(|parameter| match parameter.initial {
            Initial::Constant(value) => vec![value; parameter.size],
            Initial::Values(values) => values,
            Initial::Normal(_) => panic!("no starting values"),
        })
        .collect();
    let parameters: Vec<&[f64]> = parameters.iter().map(Vec::as_slice).collect();
    let features = [query, key].map(|x| map.apply_rows(x, &parameters));
    features[0].iter().zip(&features[1]).map(|(q, k)| q * k).sum()
}

const TWO: [[f64; 3]; 2] = [[0.3, -1.2, 0.8], [-0.5, -0.9, 0.4]];

#[test]
fn taylor_features_give_the_exponential_cut_off() {
    let [query, key] = TWO;
    let score = (0.3 * -0.5 + 1.2 * 0.9 + 0.8 * 0.4) / 3f64.sqrt();
    let mut term = 1.0;
    let mut sum = 0.0;
    let choose = |order: usize| (1..=3).fold(1, |product, i| product * (order + i) / i);
    for order in 0..7 {
        sum += term;
        term *= score / (order + 1) as f64;
        let map = Taylor::new(3, order);
        assert_eq!(map.feature_width(), choose(order));
        assert!((kernel(&map, &query, &key) - sum).abs() < 1e-14);
    }
}

#[test]
fn random_features_average_to_the_exponential() {
    let [query, key] = TWO;
    let score = (0.3 * -0.5 + 1.2 * 0.9 + 0.8 * 0.4) / 3f64.sqrt();
    let found = kernel(&Performer { width: 3, features: 100_000, seed: 1 }, &query, &key);
    // The variance of one product is e^{2s}(e^{|q+k|²/√d} − 1); five deviations, a false alarm in two million seeds.
    let square: f64 = query.iter().zip(&key).map(|(q, k)| (q + k).powi(2)).sum::<f64>() / 3f64.sqrt();
    let deviation = score.exp() * ((square.exp() - 1.0) / 100_000.0).sqrt();
    assert!((found - score.exp()).abs() < 5.0 * deviation, "{found} is not {}", score.exp());
}

#[test]
fn hedgehog_starts_with_products_of_softmaxes_of_both_signs() {
    let softmax = |x: [f64; 3]| {
        let signed = x.map(|x| (2.0 * x).exp()).into_iter().chain(x.map(|x| (-2.0 * x).exp()));
        let all: Vec<f64> = signed.collect();
        let total: f64 = all.iter().sum();
        all.into_iter().map(move |e| e / total).collect::<Vec<_>>()
    };
    let [query, key] = TWO;
    let expected: f64 = softmax(query).iter().zip(softmax(key)).map(|(q, k)| q * k).sum();
    assert!((kernel(&Hedgehog { width: 3 }, &query, &key) - expected).abs() < 1e-14);
}

/// Not a check: prints nanoseconds per token. `cargo test --release -- --ignored --nocapture speed`
#[test]
#[ignore = "a measurement"]
fn speed() {
    let length = 4096;
    let softmax = |reach| Softmax { key_width: 64, value_width: 64, reach };
    let mechanisms: Vec<Box<dyn Mechanism>> = vec![
        Box::new(softmax(Reach::Causal)),
        Box::new(softmax(Reach::Whole)),
        Box::new(softmax(Reach::Window(256))),
        Box::new(GatedLinearAttention { key_width: 64, value_width: 64 }),
    ];
    for mechanism in &mechanisms {
        let mechanism = mechanism.as_ref();
        let drawn = Drawn::new(mechanism, length, Gates::Moderate, 0);
        drawn.with::<f32, _>(0, length, |given| {
            let initial = Definition::<f32>::init(mechanism);
            let mut outputs = vec![0.0; length * mechanism.signature().output];
            let slopes = vec![1.0; outputs.len()];
            let mut best = [f64::INFINITY; 2];
            for _ in 0..3 {
                let mut state = initial.clone();
                let start = Instant::now();
                let saved = mechanism.forward(given, &mut state, &mut outputs);
                best[0] = best[0].min(start.elapsed().as_secs_f64());
                let start = Instant::now();
                let mut gradient = Gradient::zeros(given);
                mechanism.backward(given, &initial, &outputs, &saved, &slopes, &state, &mut gradient);
                best[1] = best[1].min(start.elapsed().as_secs_f64());
            }
            let each = best.map(|seconds| 1e9 * seconds / length as f64);
            println!("{mechanism:?}: {:.0} ns forward, {:.0} ns backward", each[0], each[1]);
        });
    }
}
