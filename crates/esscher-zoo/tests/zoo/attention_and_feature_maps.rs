//! Softmax attention, linear attention with its feature maps, LUNA and InLine agree in all of their forms.

use crate::common::check_all;
use esscher_core::numerics::Stream;
use esscher_zoo::agreement::{Drawn, Gates, check_agreement, relative_difference};
use esscher_zoo::diagnostics::attention_matrix;
use esscher_zoo::feature_maps::{Elu, FeatureMap, Hedgehog, Identity, LunaMap, Performer, Relu, T2r, Taylor};
use esscher_zoo::inline::local_residual::{
    Neighbourhood, convolve, convolve_backward, residual_weights, residual_weights_backward,
};
use esscher_zoo::inline::{Inline, Kernel};
use esscher_zoo::linear_attention::{LinearAttention, Normaliser};
use esscher_zoo::luna::Luna;
use esscher_zoo::mechanism::{
    Chunked, Definition, Given, Gradient, In, Initial, Mechanism, Order, Pass, State, stream,
};
use esscher_zoo::selective_rope::{Rotated, Rotation, Temperatures};
use esscher_zoo::softmax::taylor_realisation::truncation_error;
use esscher_zoo::softmax::{Reach, Softmax};
use esscher_zoo::traced;
use esscher_zoo::{Number, Real};

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

/// Outputs and the gradient of Σ o in all ports, by the chunked form.
fn chunked<T: Real>(mechanism: &(impl In<T> + ?Sized), given: &Given<'_, T>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let initial: State<T> = Definition::<T>::init(mechanism);
    let (mut state, mut outputs) = (initial.clone(), vec![T::zero(); given.length]);
    let saved = mechanism.forward(given, &mut state, &mut outputs);
    let mut gradient = Gradient::zeros(given);
    let zeros = State { seen: state.seen, numbers: vec![T::zero(); state.numbers.len()] };
    let pass = Pass {
        given,
        initial: &initial,
        outputs: &outputs,
        saved: &saved.0,
        output_slopes: &vec![T::one(); given.length],
        state_slopes: &zeros,
    };
    mechanism.backward(&pass, &mut gradient);
    let values = |numbers: &[T]| numbers.iter().map(|x| x.value()).collect::<Vec<_>>();
    (values(&outputs), gradient.tokens.iter().map(|slopes| values(slopes)).collect())
}

/// 300 tokens, so that the scores of a query lie in two blocks of keys; from token 280 on, scores of one pair overflow.
fn check_overflow<T: Real>(mechanism: &(impl In<T> + ?Sized), size: f64) {
    let (length, late, width) = (300, 280, mechanism.signature().tokens[0].width);
    let numbers = |large: f64| -> Vec<T> {
        let number = |t: usize| if t < late { 0.5 } else { large };
        (0..length).flat_map(|t| vec![T::constant(number(t)); width]).collect()
    };
    let (query, key) = (numbers(size), numbers(2.0 * size));
    let value: Vec<T> = (0..length).map(|t| T::constant((t % 7) as f64)).collect();
    let angle = vec![T::zero(); length * (width / 2)];
    let tokens: Vec<&[T]> = [&query[..], &key, &value, &angle][..mechanism.signature().tokens.len()].into();
    let given = Given { length, tokens: &tokens, parameters: &[] };
    let broken = |numbers: &[f64]| numbers.iter().map(|x| x.is_nan()).collect::<Vec<_>>();
    // Whoever sees all tokens sees a large key with a large query in the late rows only.
    let expected: Vec<bool> = (0..length).map(|t| t >= late).collect();
    let reference: Vec<f64> =
        Definition::<T>::reference(mechanism, &given).outputs.iter().map(|x| x.value()).collect();
    let recurrent: Vec<f64> =
        stream(mechanism, &given, &mut Definition::<T>::init(mechanism)).iter().map(|x| x.value()).collect();
    let (outputs, gradient) = chunked::<T>(mechanism, &given);
    for (form, found) in [("reference", &reference), ("recurrent", &recurrent), ("chunked", &outputs)] {
        assert_eq!(broken(found), expected, "{form} of {mechanism:?} at {size:e}");
    }
    // 1e-5: rounding of sums of 300 terms in single precision.
    assert!(relative_difference(&outputs[..late], &reference[..late], 0.0) < 1e-5, "{mechanism:?}");
    // A late query looks at all keys and values of its window.
    assert!(broken(&gradient[2])[late..].iter().all(|&broken| broken), "{mechanism:?}");
    assert!(broken(&gradient[0]).iter().zip(0..length * width).all(|(&b, i)| b == (i / width >= late)));
}

#[test]
fn scores_that_overflow_are_no_number_in_every_form() {
    let rotated = |rotation| Rotated {
        inner: Softmax { key_width: 2, value_width: 1, reach: Reach::Causal },
        rotation,
    };
    let mechanisms: [&dyn Mechanism; 6] = [
        &Softmax { key_width: 1, value_width: 1, reach: Reach::Causal },
        &Softmax { key_width: 3, value_width: 1, reach: Reach::Whole },
        &Softmax { key_width: 3, value_width: 1, reach: Reach::Window(64) },
        &Softmax { key_width: 2, value_width: 1, reach: Reach::Window(1) },
        &rotated(Rotation::Fixed { base: 1e4 }),
        &rotated(Rotation::Selective { temperatures: Temperatures::One }),
    ];
    for mechanism in mechanisms {
        check_overflow::<f64>(mechanism, 1e200);
        check_overflow::<f64>(mechanism, 1e160);
        check_overflow::<f32>(mechanism, 1e30);
        check_overflow::<f32>(mechanism, 1e20);
    }
    // −∞ + ∞, which a fused sum takes for −∞: the true score is 0, and the largest.
    let mechanism = Softmax { key_width: 2, value_width: 1, reach: Reach::Whole };
    let tokens: [&[f64]; 3] = [&[1e200, 1e200, 1.0, 0.0], &[-1e200, 1e200, 0.0, -1.0], &[1.0, 0.0]];
    let given = Given { length: 2, tokens: &tokens, parameters: &[] };
    let (outputs, _) = chunked::<f64>(&mechanism, &given);
    assert!(outputs[0].is_nan() && Definition::<f64>::reference(&mechanism, &given).outputs[0].is_nan());
    let weights = attention_matrix(&mechanism, &given, 0).unwrap_err().to_string();
    assert!(weights.contains("an output of the mechanism overflows"), "{weights}");
}

#[test]
fn large_entries_that_do_not_meet_are_answered() {
    let mechanism = Softmax { key_width: 2, value_width: 1, reach: Reach::Causal };
    let tokens: [&[f64]; 3] = [&[1e200, 0.0, 0.0, 1.0], &[0.0, 3.0, 0.0, 1e200], &[1.0, 2.0]];
    let (outputs, gradient) =
        chunked::<f64>(&mechanism, &Given { length: 2, tokens: &tokens, parameters: &[] });
    assert_eq!(outputs, [1.0, 2.0]);
    assert_eq!(gradient[2], [1.0, 1.0]);
}

/// e^{s − ℓ} of two equal scores is 1/2 at any size of the scores, of which ℓ keeps no ln 2.
#[test]
fn gradients_of_large_equal_scores_share_the_weight() {
    let mechanism = Softmax { key_width: 1, value_width: 1, reach: Reach::Whole };
    let tokens: [&[f64]; 3] = [&[1e10; 2], &[1e10; 2], &[0.0, 1.0]];
    let (outputs, gradient) =
        chunked::<f64>(&mechanism, &Given { length: 2, tokens: &tokens, parameters: &[] });
    assert_eq!(outputs, [0.5; 2]);
    for slope in &gradient[2] {
        // Two queries give each value half of their weight.
        assert!((slope - 1.0).abs() < 1e-15, "{gradient:?}");
    }
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

#[test]
fn luna_agrees() {
    for order in [Order::Causal, Order::Whole] {
        check_all(&Luna { key_width: 3, value_width: 2, projections: 3, channels: 2, hidden: 5, order });
        check_all(&Luna { key_width: 2, value_width: 1, projections: 1, channels: 3, hidden: 4, order });
    }
}

#[test]
fn inline_attention_agrees() {
    for order in [Order::Causal, Order::Whole] {
        for kernel in [Kernel::Identity, Kernel::Relu, Kernel::LeakyRelu, Kernel::Exponential] {
            check_all(&Inline { kernel, key_width: 3, value_width: 5, order });
        }
        check_all(&Inline { kernel: Kernel::Identity, key_width: 1, value_width: 1, order });
    }
}

fn normals(seed: u64, count: usize) -> Vec<f64> {
    let mut numbers = vec![0.0; count];
    Stream::new(seed, 0, 0).fill_normals(&mut numbers);
    numbers
}

fn assert_near(found: &[f64], expected: &[f64]) {
    let difference = relative_difference(found, expected, 0.0);
    assert!(difference < 1e-12, "differs by {difference:e}");
}

#[test]
fn the_local_residual_is_a_convolution_with_zeros_around() {
    let channels = 3;
    let value = normals(1, 14 * channels);
    let at = |row: isize, column: isize, columns: isize, c: usize| {
        let token = row * columns + column;
        let inside = row >= 0 && (0..columns).contains(&column) && token < 14;
        if inside { value[token as usize * channels + c] } else { 0.0 }
    };
    for (neighbourhood, columns) in [
        (Neighbourhood::CausalLine, 14),
        (Neighbourhood::CentredLine, 14),
        (Neighbourhood::Grid { columns: 4 }, 4),
        (Neighbourhood::Grid { columns: 1 }, 1),
    ] {
        let size = neighbourhood.size();
        let weight = normals(2, channels * size);
        let mut expected = Vec::new();
        for t in 0..14 {
            for c in 0..channels {
                let mut sum = 0.0;
                for index in 0..size {
                    let i = index as isize;
                    let (down, right) = match neighbourhood {
                        Neighbourhood::CausalLine => (0, i - 2),
                        Neighbourhood::CentredLine => (0, i - 1),
                        Neighbourhood::Grid { .. } => (i / 3 - 1, i % 3 - 1),
                    };
                    sum += weight[c * size + index] * at(t / columns + down, t % columns + right, columns, c);
                }
                expected.push(sum);
            }
        }
        assert_near(&convolve(neighbourhood, channels, &value, &weight), &expected);

        let slopes = normals(3, value.len());
        let all: Vec<f64> = value.iter().chain(&weight).copied().collect();
        let (_, gradient) = traced::gradient(&all, |numbers| {
            let (value, weight) = numbers.split_at(value.len());
            weigh(&convolve(neighbourhood, channels, value, weight), &slopes)
        });
        let (mut to_value, mut to_weight) = (vec![0.0; value.len()], vec![0.0; weight.len()]);
        convolve_backward(neighbourhood, channels, &value, &weight, &slopes, &mut to_value, &mut to_weight);
        assert_near(&[to_value, to_weight].concat(), &gradient);
    }
}

fn weigh<N: Number>(numbers: &[N], by: &[f64]) -> N {
    numbers.iter().zip(by).fold(N::zero(), |sum, (&x, &weight)| sum + x * N::constant(weight))
}

#[test]
fn weights_of_the_local_residual_have_their_gradient() {
    let (mean, first, second) = (normals(1, 5), normals(2, 4 * 5), normals(3, 18 * 4));
    let slopes = normals(4, 18);
    let all = [mean.clone(), first.clone(), second.clone()].concat();
    let (_, gradient) = traced::gradient(&all, |numbers| {
        let (mean, rest) = numbers.split_at(5);
        let (first, second) = rest.split_at(20);
        weigh(&residual_weights(mean, first, second), &slopes)
    });
    let (mut to_mean, mut to_first, mut to_second) = (vec![0.0; 5], vec![0.0; 20], vec![0.0; 72]);
    residual_weights_backward(&mean, &first, &second, &slopes, &mut to_mean, &mut to_first, &mut to_second);
    assert_near(&[to_mean, to_first, to_second].concat(), &gradient);
    // GELU(0) = 0 and GELU(1) = 0.8412 (0.8413 in the form with the normal distribution).
    assert!((residual_weights(&[1.0], &[1.0], &[1.0])[0] - 0.8412_f64).abs() < 1e-4);
}

#[test]
fn taylor_systems_approach_softmax_attention() {
    let softmax = Softmax { key_width: 3, value_width: 2, reach: Reach::Causal };
    let drawn = Drawn::new(&softmax, 23, Gates::Moderate, 3);
    drawn.with::<f64, _>(0, 23, |given| {
        let errors = truncation_error(given, &[0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
        for pair in errors.windows(2) {
            assert!(pair[1].1 < pair[0].1, "{errors:?}");
        }
        let largest = (0..23)
            .flat_map(|t| (0..=t).map(move |r| (t, r)))
            .map(|(t, r)| given.row(0, t).iter().zip(given.row(1, r)).map(|(q, k)| q * k).sum::<f64>())
            .fold(0.0, |largest: f64, product| largest.max(product.abs() / 3f64.sqrt()));
        assert!((3.0..6.0).contains(&largest), "the largest score is {largest}");
        assert!(errors[9].1 < 1e-8, "{errors:?}");
    });
}
