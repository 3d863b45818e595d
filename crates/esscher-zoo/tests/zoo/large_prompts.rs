//! What becomes of every mechanism's output as the prompt grows, checked by simulation against closed forms.
//!
//! Statistical checks use fixed seeds and allow five standard errors: false alarm below 1e-6 each.

use esscher_core::measure::{Empirical, Gaussian, Law, Mixture, Rademacher, Sphere};
use esscher_core::numerics::{Stream, linalg, statistics::Summary};
use esscher_core::{Accuracy, Unwatched, mat};
use esscher_zoo::catalogue::{Sizes, find};
use esscher_zoo::delta_rule::DeltaRule;
use esscher_zoo::feature_maps::{Elu, FeatureMap, Hedgehog, Identity, Performer, Relu, T2r, Taylor};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::inline::{Inline, Kernel};
use esscher_zoo::large_prompt::{
    Activation, ConstantGates, Contender, Draws, Fate, FeatureMoments, LargePrompt, Reading, Ridge, Setting,
    Source, TokenMoments, Trials, compare, feature_moments, finite, positive_feature_moments, sampled_limit,
    softmax_limit, stationary,
};
use esscher_zoo::linear_attention::{LinearAttention, Normaliser};
use esscher_zoo::luna::Luna;
use esscher_zoo::mechanism::Order;
use esscher_zoo::metala::{Augmentation, MetaLinearAttention};
use esscher_zoo::mlstm::MatrixLstm;
use esscher_zoo::normalized_attention::{self, NormalizedAttention};
use esscher_zoo::quasi_lstm::{Forget, QuasiLstm};
use esscher_zoo::rg_lru::RgLru;
use esscher_zoo::s4::S4;
use esscher_zoo::s6::S6;
use esscher_zoo::selective_rope::{Rotated, Rotation};
use esscher_zoo::softmax::{Reach, Softmax};
use esscher_zoo::ssd::StateSpaceDuality;
use std::sync::Arc;

fn gaussian() -> Law {
    let covariance = mat![[1.0, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 0.6]];
    Arc::new(Gaussian::new(&[0.3, -0.2, 0.5], covariance.as_ref()).unwrap())
}

/// Keys of width 2 and values of width 2 of tokens in dimension 3.
fn setting(tokens: Law) -> Setting {
    let key = mat![[1.0, 0.2, 0.0], [0.0, -0.5, 0.9]];
    let value = mat![[0.4, 0.0, 1.0], [0.0, 1.0, -0.3]];
    Setting::new(tokens, &[0.7, -0.4], key.as_ref(), value.as_ref())
}

/// Distance of a simulated mean from what it should be, in standard errors, the worst coordinate.
fn worst(found: &[f64], errors: &[f64], expected: &[f64]) -> f64 {
    let scores = found.iter().zip(errors).zip(expected).map(|((f, s), e)| (f - e).abs() / s.max(1e-14));
    scores.fold(0.0, f64::max)
}

#[test]
fn gated_linear_attention_keeps_the_stationary_law_of_its_geometric_sums() {
    let mechanism = GatedLinearAttention { key_width: 2, value_width: 2 };
    let mixture =
        Mixture::new(vec![(0.3, Arc::new(Rademacher::new(3).unwrap()) as Law), (0.7, gaussian())]).unwrap();
    for tokens in [gaussian(), Arc::new(mixture) as Law] {
        let setting = setting(tokens).with("log_decay", Source::Constant(vec![0.9f64.ln(), 0.7f64.ln()]));
        let law = mechanism.stationary(&setting, &Draws::default()).unwrap().unwrap();
        assert!((law.horizon - 10.0).abs() < 1e-9);
        let trials = Trials { lengths: vec![200], trials: 4000, seed: 3 };
        let found =
            finite(&mechanism, &setting, &trials, Reading::Output, None, &Unwatched).unwrap().unwrap();
        let at = &found.lengths[0];
        assert!(worst(&at.mean, &at.standard_error, &law.mean.value) < 5.0, "{at:?} {law:?}");
        // The variance of the formula is itself sampled, from 16384 draws: as uncertain as 1/4 of the simulated one.
        assert!((at.variance.value - law.variance).abs() < 6.0 * at.variance.error, "{at:?} {law:?}");
    }
}

#[test]
fn simulations_do_not_depend_on_threads_nor_on_other_lengths() {
    let mechanism = GatedLinearAttention { key_width: 2, value_width: 2 };
    let run = |threads: usize, lengths: &[usize]| {
        let trials = Trials { lengths: lengths.to_vec(), trials: 20, seed: 1 };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| finite(&mechanism, &setting(gaussian()), &trials, Reading::Output, None, &Unwatched))
            .unwrap()
            .unwrap()
            .lengths
    };
    let (one, three) = (run(1, &[5, 300, 700]), run(3, &[5, 300, 700]));
    assert_eq!(one, three);
    assert_eq!(run(2, &[300])[0], one[1]);
}

/// Stein's closed forms against sums over 200,000 draws.
#[test]
fn moments_of_feature_maps_are_those_of_sums() {
    let law = gaussian();
    let setting = setting(law.clone());
    let (key, value) = (setting.projection("key").unwrap(), setting.projection("value").unwrap());
    let components = TokenMoments::of(&setting).unwrap();
    let query = [0.7, -0.4];
    let mut tokens = vec![0.0; 3 * 200_000];
    law.sample(&mut Stream::new(5, 0, 0), &mut tokens).unwrap();
    let check = |name: &str, weight: &dyn Fn(&[f64]) -> f64, found: FeatureMoments| {
        let mut sums = [Summary::new(); 3];
        for token in tokens.chunks_exact(3) {
            let (k, v) = (linalg::apply(key, token), linalg::apply(value, token));
            let weight = weight(&k);
            sums[0].add(weight);
            sums[1].add(weight * v[0]);
            sums[2].add(weight * v[1]);
        }
        let expected = [found.weight, found.weighted_value[0], found.weighted_value[1]];
        for (sum, expected) in sums.iter().zip(expected) {
            let (mean, error) = (sum.mean().unwrap(), sum.standard_error().unwrap());
            assert!((mean - expected).abs() < 5.0 * error, "{name}: {mean} ± {error}, {expected} by Stein");
        }
    };
    for activation in [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu(0.1),
        Activation::EluPlusOne,
        Activation::Exponential(0.2),
    ] {
        let weight =
            |k: &[f64]| (0..2).map(|a| activation.value(query[a]) * activation.value(k[a])).sum::<f64>();
        let ridges = Ridge::elementwise(&query, activation);
        check(&format!("{activation:?}"), &weight, feature_moments(&components, &ridges));
    }
    for order in 1..4 {
        let activation = Activation::Taylor(order);
        let weight = |k: &[f64]| activation.value(0.8 * linalg::dot(&query, k));
        check("Taylor", &weight, feature_moments(&components, &Ridge::of_score(&query, 0.8, activation)));
    }
    let (directions, coefficients) = (vec![vec![0.5, -1.0], vec![-0.3, 0.2]], [0.7, 1.3]);
    let weight = |k: &[f64]| {
        let k: Vec<f64> = k.iter().map(|x| 0.8 * x).collect();
        let size = linalg::squared_norm(&k);
        directions
            .iter()
            .zip(coefficients)
            .map(|(w, c)| c * (linalg::dot(w, &k) - 0.5 * size).exp())
            .sum::<f64>()
    };
    let found = positive_feature_moments(&components, 0.8, &directions, &coefficients).unwrap();
    check("positive features", &weight, found);
}

fn linear<M: FeatureMap>(map: M, normaliser: Normaliser) -> LinearAttention<M> {
    LinearAttention { map, value_width: 2, normaliser, order: Order::Causal }
}

fn softmax(reach: Reach) -> Softmax {
    Softmax { key_width: 2, value_width: 2, reach }
}

/// Decays are made fast, so that the lengths of the test are many horizons.
fn quick_setting(tokens: Law) -> Setting {
    setting(tokens)
        .with_gates(ConstantGates {
            log_decay: 0.8f64.ln(),
            rate: 0.3,
            fraction: 0.5,
            logit: 0.2,
            angle: 0.5,
        })
        .with_parameter("log_step", &[0.3f64.ln(), 0.5f64.ln()])
        .with_parameter("lambda", &[-2.0, -1.0])
}

/// Every mechanism's fate and limit, on prompts of 128 and 512 tokens.
///
/// Errors of the two lengths are in the ratio 4 (limit, growth per token) or 1 (stationary law), within five standard errors of the
/// logarithm and 0.1 for what 1/L adds; means of stationary laws are the limit within five standard errors.
#[test]
fn every_mechanism_meets_its_fate() {
    let inline = |kernel| Inline { kernel, key_width: 2, value_width: 2, order: Order::Whole };
    let luna =
        Luna { key_width: 2, value_width: 2, projections: 3, channels: 2, hidden: 4, order: Order::Causal };
    let normalized = |normaliser| NormalizedAttention { key_width: 2, value_width: 2, normaliser };
    let metala = |augmentation| MetaLinearAttention { key_width: 2, value_width: 2, augmentation };
    let rotated = Rotated::new(softmax(Reach::Causal), Rotation::Fixed { base: 10_000.0 }).unwrap();
    let mechanisms: Vec<(Fate, Box<dyn LargePrompt>)> = vec![
        (Fate::Limit, Box::new(softmax(Reach::Causal))),
        (Fate::Limit, Box::new(softmax(Reach::Whole))),
        (Fate::StationaryLaw, Box::new(softmax(Reach::Window(9)))),
        (Fate::Limit, Box::new(rotated)),
        (Fate::Limit, Box::new(linear(Elu { width: 2 }, Normaliser::Sum))),
        (Fate::Limit, Box::new(linear(Relu { width: 2 }, Normaliser::Sum))),
        (Fate::Limit, Box::new(linear(Identity { width: 2 }, Normaliser::Count))),
        (Fate::Grows, Box::new(linear(Identity { width: 2 }, Normaliser::None))),
        (Fate::Limit, Box::new(linear(Taylor::new(2, 2), Normaliser::Sum))),
        (Fate::Limit, Box::new(linear(Performer { width: 2, features: 7, seed: 3 }, Normaliser::Sum))),
        (Fate::Limit, Box::new(linear(T2r { width: 2, features: 6 }, Normaliser::Sum))),
        (Fate::Limit, Box::new(linear(Hedgehog { width: 2 }, Normaliser::Sum))),
        (Fate::Limit, Box::new(luna)),
        (Fate::Limit, Box::new(inline(Kernel::Identity))),
        (Fate::Limit, Box::new(inline(Kernel::Relu))),
        (Fate::Limit, Box::new(inline(Kernel::LeakyRelu))),
        (Fate::Limit, Box::new(inline(Kernel::Exponential))),
        (Fate::Grows, Box::new(normalized(normalized_attention::Normaliser::Exponential))),
        (Fate::Grows, Box::new(normalized(normalized_attention::Normaliser::Softplus))),
        (Fate::StationaryLaw, Box::new(GatedLinearAttention { key_width: 2, value_width: 2 })),
        (Fate::StationaryLaw, Box::new(StateSpaceDuality { key_width: 2, value_width: 2 })),
        (Fate::StationaryLaw, Box::new(S6 { width: 2, expansion: 2 })),
        (Fate::StationaryLaw, Box::new(S4 { width: 2, pairs: 2 })),
        (Fate::StationaryLaw, Box::new(QuasiLstm { width: 2, forget: Forget::Sigmoid })),
        (Fate::StationaryLaw, Box::new(QuasiLstm { width: 2, forget: Forget::Reversed })),
        (Fate::StationaryLaw, Box::new(RgLru { width: 2 })),
        (Fate::StationaryLaw, Box::new(MatrixLstm { key_width: 2, value_width: 2 })),
        (Fate::StationaryLaw, Box::new(metala(Augmentation::Off))),
        (Fate::StationaryLaw, Box::new(metala(Augmentation::SelfAttending))),
        (Fate::StationaryLaw, Box::new(DeltaRule { key_width: 2, value_width: 2 })),
    ];
    // And those of the catalogue that are not above.
    let named =
        ["softmax-selective-rope", "gla-rope", "gla-selective-rope", "linear-elu-whole", "inline-causal"];
    let mechanisms: Vec<(Fate, Box<dyn LargePrompt>)> = mechanisms
        .into_iter()
        .chain(named.map(|name| {
            let entry = find(name).unwrap();
            (entry.claims.fate, (entry.build)(Sizes::new(2, 2).unwrap()))
        }))
        .collect();
    let setting = quick_setting(gaussian());
    let trials = Trials { lengths: vec![128, 512], trials: 400, seed: 11 };
    let draws = Draws { tokens: 2048, prompts: 32, ..Draws::default() };
    let mut surprises = Vec::new();
    for (fate, mechanism) in &mechanisms {
        let mut expect = |holds: bool, what: String| {
            if !holds {
                surprises.push(format!("{mechanism:?}: {what}"));
            }
        };
        expect(mechanism.fate() == *fate, format!("{:?}", mechanism.fate()));
        let limit = mechanism.limit(&setting, &draws).unwrap();
        let found =
            finite(mechanism.as_ref(), &setting, &trials, fate.reading(), Some(&limit.value), &Unwatched)
                .unwrap()
                .unwrap()
                .lengths;
        let error = |at: usize| match fate {
            Fate::StationaryLaw => found[at].variance,
            Fate::Limit | Fate::Grows => found[at].squared_distance.unwrap(),
        };
        let (short, long) = (error(0), error(1));
        let relative = (short.error / short.value).hypot(long.error / long.value);
        let (expected, allowance) = match fate {
            Fate::StationaryLaw => (1f64, 0.0),
            Fate::Limit | Fate::Grows => (4f64, 0.1),
        };
        let ratio = short.value / long.value;
        expect(
            (ratio / expected).ln().abs() < 5.0 * relative + allowance && relative < 0.25,
            format!(
                "errors in the ratio {ratio}, ± {relative} of it, instead of {expected}; {limit:?}, {found:?}"
            ),
        );
        match fate {
            Fate::Limit => {}
            Fate::StationaryLaw => {
                let sampled = limit.error;
                let errors: Vec<f64> =
                    found[1].standard_error.iter().map(|error| error.hypot(sampled)).collect();
                let score = worst(&found[1].mean, &errors, &limit.value);
                expect(score < 5.0, format!("the mean is {score} standard errors off; {limit:?}, {found:?}"));
            }
            // What is read per token does not vanish: the output itself is four times as large after four times as many tokens.
            Fate::Grows => {
                let score = worst(&found[1].mean, &found[1].standard_error, &[0.0, 0.0]);
                expect(score > 10.0, format!("nothing grows; {limit:?}, {found:?}"));
            }
        }
        if let Some(law) = mechanism.stationary(&setting, &draws).unwrap() {
            let variance = found[1].variance;
            let close = (variance.value - law.variance).abs() < 5.0 * variance.error;
            expect(law.variance_is_exact && law.horizon < 32.0 && close, format!("{variance:?}, {law:?}"));
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}

/// The headline: what softmax reads from an infinite Gaussian prompt is what InLine computes, at every query; of other laws it is not.
#[test]
fn inline_attention_has_the_gaussian_limit_of_softmax_at_every_query() {
    let inline = Inline { kernel: Kernel::Identity, key_width: 2, value_width: 2, order: Order::Whole };
    let signs: Law = Arc::new(Rademacher::new(3).unwrap());
    let mut stream = Stream::new(4, 0, 0);
    for size in [0.01, 0.3, 1.0, 5.0, 40.0] {
        let query = [size * stream.normal(), size * stream.normal()];
        let at = |tokens: Law| setting(tokens).with("query", Source::Constant(query.to_vec()));
        let limits = |setting: &Setting| {
            let inline = inline.limit(setting, &Draws::default()).unwrap();
            let softmax = softmax(Reach::Causal).limit(setting, &Draws::default()).unwrap();
            assert!(inline.accuracy == Accuracy::Exact);
            inline.distance(&softmax).unwrap() / linalg::norm(&softmax.value).max(1.0)
        };
        assert!(limits(&at(gaussian())) < 1e-12);
        // To first order in the query the two agree for any law; at large queries softmax saturates and InLine does not.
        let apart = limits(&at(signs.clone()));
        assert!(
            if size < 0.5 { apart < 0.1 * size * size } else { size < 40.0 || apart > 1.0 },
            "{size}: {apart}"
        );
    }
}

/// Closed forms against sampling, and for laws that are no mixtures of Gaussians.
#[test]
fn closed_limits_are_those_of_long_prompts() {
    let corners = Empirical::from_tokens(3, &[1.0, -1.0, 0.5, -0.5, 1.0, 1.0]).unwrap();
    let atoms = Mixture::new(vec![(0.4, gaussian()), (0.6, Arc::new(corners) as Law)]).unwrap();
    let sphere: Law = Arc::new(Sphere::new(3, 1.5).unwrap());
    let draws = Draws { tokens: 2048, prompts: 32, seed: 77 };
    let elu = linear(Elu { width: 2 }, Normaliser::Sum);
    let taylor = linear(Taylor::new(2, 3), Normaliser::Count);
    let learnt = linear(T2r { width: 2, features: 5 }, Normaliser::Sum);
    let positive = linear(Performer { width: 2, features: 9, seed: 1 }, Normaliser::None);
    let identity = Inline { kernel: Kernel::Identity, key_width: 2, value_width: 2, order: Order::Whole };
    let state_space = S6 { width: 2, expansion: 2 };
    let mechanisms: [&dyn LargePrompt; 6] = [&elu, &taylor, &learnt, &positive, &identity, &state_space];
    for (tokens, gaussian) in [(Arc::new(atoms) as Law, true), (sphere, false)] {
        let setting = quick_setting(tokens);
        for mechanism in mechanisms {
            let limit = mechanism.limit(&setting, &Draws { seed: 5, ..draws }).unwrap();
            let second_moments =
                mechanism.fate() == Fate::StationaryLaw || format!("{mechanism:?}").contains("Inline");
            assert_eq!(limit.accuracy == Accuracy::Exact, gaussian || second_moments, "{mechanism:?}");
            let length = if mechanism.fate() == Fate::StationaryLaw { 256 } else { draws.tokens };
            let sampled =
                sampled_limit(mechanism, &setting, &draws.in_prompts_of(length), mechanism.fate().reading())
                    .unwrap();
            let distance = limit.distance(&sampled).unwrap();
            let allowed = 5.0 * limit.error.hypot(sampled.error);
            assert!(distance < allowed, "{mechanism:?}: {distance} of {allowed}, {limit:?}, {sampled:?}");
        }
    }
}

/// The mean that the delta rule reads is that of the least-squares map from normalised keys to values.
#[test]
fn the_delta_rule_recalls_least_squares() {
    let rule = DeltaRule { key_width: 2, value_width: 2 };
    let law = gaussian();
    let setting = setting(law.clone());
    let limit = rule.limit(&setting, &Draws::default()).unwrap();
    let (key, value) = (setting.projection("key").unwrap(), setting.projection("value").unwrap());
    let unit = |vector: &[f64]| -> Vec<f64> {
        let size = (linalg::squared_norm(vector) + esscher_zoo::delta_rule::EPSILON).sqrt();
        vector.iter().map(|x| x / size).collect()
    };
    let count = 400_000;
    let mut tokens = vec![0.0; 3 * count];
    law.sample(&mut Stream::new(12, 0, 0), &mut tokens).unwrap();
    let (mut keys, mut products) = ([[0.0; 2]; 2], [[0.0; 2]; 2]);
    for token in tokens.chunks_exact(3) {
        let (k, v) = (unit(&linalg::apply(key, token)), linalg::apply(value, token));
        for a in 0..2 {
            for b in 0..2 {
                keys[a][b] += k[a] * k[b];
                products[a][b] += k[a] * v[b];
            }
        }
    }
    let query = unit(setting.constant("query").unwrap());
    let determinant = keys[0][0] * keys[1][1] - keys[0][1] * keys[1][0];
    let solved = [
        (keys[1][1] * query[0] - keys[0][1] * query[1]) / determinant,
        (keys[0][0] * query[1] - keys[1][0] * query[0]) / determinant,
    ];
    let expected: Vec<f64> =
        (0..2).map(|c| solved[0] * products[0][c] + solved[1] * products[1][c]).collect();
    // The regression itself has an error of order 1/√count, a tenth of the simulation's or less.
    let distance = linalg::norm(&linalg::difference(&expected, &limit.value));
    assert!(distance < 5.0 * limit.error, "{expected:?} {limit:?}");
}

#[test]
fn a_comparison_tells_limits_distances_and_rates() {
    let inline = Inline { kernel: Kernel::Identity, key_width: 2, value_width: 2, order: Order::Whole };
    let (soft, elu) = (softmax(Reach::Causal), linear(Elu { width: 2 }, Normaliser::Sum));
    let gated = GatedLinearAttention { key_width: 2, value_width: 2 };
    let contenders = [
        Contender { name: "softmax", mechanism: &soft },
        Contender { name: "InLine", mechanism: &inline },
        Contender { name: "linear", mechanism: &elu },
        Contender { name: "gated", mechanism: &gated },
    ];
    let setting = setting(gaussian());
    let trials = Trials { lengths: vec![64, 128, 256, 512], trials: 400, seed: 2 };
    let table = compare(&contenders, &setting, &trials, &Draws::default(), &Unwatched).unwrap().unwrap();
    assert_eq!(table[0].limit, softmax_limit(&setting).unwrap());
    assert_eq!(table[0].distance_to_softmax, Some(0.0));
    assert!(table[1].distance_to_softmax.unwrap() < 1e-12);
    assert!(table[2].distance_to_softmax.unwrap() > 0.01);
    for row in &table[..3] {
        let rate = row.rate.as_ref().unwrap();
        // Five standard errors, and 0.05 for the curvature that 1/L adds.
        assert!((rate.exponent - 1.0).abs() < 5.0 * rate.standard_error + 0.05, "{}: {rate:?}", row.name);
    }
    let rate = table[3].rate.as_ref().unwrap();
    assert!(rate.exponent.abs() < 5.0 * rate.standard_error, "{rate:?}");
}

#[test]
fn gates_that_depend_on_the_token_have_no_closed_form_and_are_sampled() {
    let mechanism = GatedLinearAttention { key_width: 2, value_width: 2 };
    let gate = Source::Function(Arc::new(|token: &[f64], row: &mut [f64]| {
        row.fill(-0.2 - 0.1 * token[0] * token[0]);
    }));
    let setting = setting(gaussian()).with("log_decay", gate);
    let draws = Draws { tokens: 256, prompts: 64, seed: 1 };
    assert!(
        stationary(&mechanism, &setting, &draws)
            .unwrap_err()
            .to_string()
            .contains("changes from token to token")
    );
    let limit = mechanism.limit(&setting, &draws).unwrap();
    assert!(limit.accuracy == Accuracy::Sampled);
    // A gate that its meaning does not allow is refused by name.
    let setting =
        setting.with("log_decay", Source::Function(Arc::new(|_: &[f64], row: &mut [f64]| row.fill(0.5))));
    let refused = finite(
        &mechanism,
        &setting,
        &Trials { lengths: vec![3], trials: 2, seed: 0 },
        Reading::Output,
        None,
        &Unwatched,
    );
    assert!(refused.unwrap_err().to_string().contains("log_decay"));
}

#[test]
fn no_amount_of_tokens_is_too_large_to_be_refused() {
    let mechanism = GatedLinearAttention { key_width: 2, value_width: 2 };
    let setting = setting(gaussian());
    let trials = Trials { lengths: vec![1, usize::MAX], trials: 2, seed: 1 };
    let refused =
        finite(&mechanism, &setting, &trials, Reading::Output, None, &Unwatched).unwrap_err().to_string();
    assert!(refused.contains("at most 10¹² tokens in all prompts together"), "{refused}");
    let draws = Draws { tokens: usize::MAX, prompts: u32::MAX, seed: 1 };
    assert!(sampled_limit(&mechanism, &setting, &draws, Reading::Output).is_err());
    // Outputs whose squares vanish have a spread all the same.
    let tiny: Law = Arc::new(Gaussian::centred(isotropic(1e-100).as_ref()).unwrap());
    let trials = Trials { lengths: vec![4], trials: 4, seed: 1 };
    let refused =
        finite(&mechanism, &self::setting(tiny), &trials, Reading::Output, None, &Unwatched).unwrap_err();
    assert!(refused.to_string().contains("underflows double precision"), "{refused}");
}

/// This variance in every coordinate of a token.
fn isotropic(variance: f64) -> esscher_core::Mat<f64> {
    esscher_core::Mat::from_fn(3, 3, |i, j| if i == j { variance } else { 0.0 })
}
