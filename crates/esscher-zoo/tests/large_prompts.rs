//! What becomes of every mechanism's output as the prompt grows, checked by simulation against closed forms.
//!
//! Statistical checks use fixed seeds and allow five standard errors: false alarm below 1e-6 each.

use esscher_core::mat;
use esscher_core::measure::{Gaussian, Law, Mixture, Rademacher};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::large_prompt::{
    Activation, Draws, LargePrompt, Reading, Ridge, Setting, Source, TokenMoments, Trials, feature_moments,
    finite, positive_feature_moments, stationary,
};
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
        let found = finite(&mechanism, &setting, &trials, Reading::Output, None).unwrap();
        let at = &found.lengths[0];
        assert!(worst(&at.mean, &at.standard_error, &law.mean.value) < 5.0, "{at:?} {law:?}");
        // The variance of the formula is itself sampled, from 16384 draws: as uncertain as 1/4 of the simulated one.
        assert!(
            (at.variance.value - law.variance).abs() < 6.0 * at.variance.absolute_error(),
            "{at:?} {law:?}"
        );
    }
}

fn error_of(limit: &esscher_zoo::large_prompt::Limit) -> f64 {
    match limit.accuracy {
        esscher_core::Accuracy::Sampled { standard_error } => standard_error,
        other => panic!("{other:?} is not sampled"),
    }
}

#[test]
fn simulations_do_not_depend_on_threads_nor_on_other_lengths() {
    let mechanism = GatedLinearAttention { key_width: 2, value_width: 2 };
    let run = |threads: usize, lengths: &[usize]| {
        let trials = Trials { lengths: lengths.to_vec(), trials: 20, seed: 1 };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| finite(&mechanism, &setting(gaussian()), &trials, Reading::Output, None))
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
    use esscher_core::numerics::{Stream, linalg, statistics::Summary};
    let law = gaussian();
    let setting = setting(law.clone());
    let (key, value) = (setting.projection("key").unwrap(), setting.projection("value").unwrap());
    let components = TokenMoments::of(&setting).unwrap();
    let query = [0.7, -0.4];
    let mut tokens = vec![0.0; 3 * 200_000];
    law.sample(&mut Stream::new(5, 0, 0), &mut tokens).unwrap();
    let check = |name: &str,
                 weight: &dyn Fn(&[f64]) -> f64,
                 found: esscher_zoo::large_prompt::FeatureMoments| {
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
