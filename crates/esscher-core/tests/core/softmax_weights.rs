//! The exact scalars: against high-precision references, closed forms, identities, differences and each other.

use crate::common::{length, lengths};
use esscher_core::numerics::{Stream, normal, softmax};
use esscher_core::prompt::PromptLength;
use esscher_core::softmax_weights::{MAX_SCORE_DEVIATION, MomentTable, RELATIVE_TOLERANCE, WeightMoments};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

fn named(moments: &WeightMoments, name: &str) -> Option<f64> {
    Some(match name {
        "bias" => moments.mean_bias,
        "mse" => moments.mean_squared_error,
        "sum_p2" => moments.sum_of_squares,
        "sum_p3" => moments.sum_of_cubes,
        "sum_p4" => moments.sum_of_fourths,
        "sum_p2_squared" => moments.squared_sum_of_squares,
        "sum_p2_sum_p3" => moments.squares_times_cubes,
        "sum_p2_cubed" => moments.cubed_sum_of_squares,
        "var_mean" => moments.variance,
        "var_second_moment" => moments.squared_variance,
        "var_mse" => moments.variance_squared_error,
        "var_times_sum_p2" => moments.variance_times_squares,
        "cross" => moments.cross,
        "frob" => moments.frobenius,
        _ => return None,
    })
}

const NAMES: [&str; 14] = [
    "bias",
    "mse",
    "sum_p2",
    "sum_p3",
    "sum_p4",
    "sum_p2_squared",
    "sum_p2_sum_p3",
    "sum_p2_cubed",
    "var_mean",
    "var_second_moment",
    "var_mse",
    "var_times_sum_p2",
    "cross",
    "frob",
];

/// Compares every value of a reference file; returns how many there were.
fn compare_with(reference: &str) -> usize {
    let reference: Value = serde_json::from_str(reference).unwrap();
    let (mut compared, mut worst) = (0, (0.0, String::new()));
    for (tau, by_length) in reference.as_object().unwrap() {
        for (length, values) in by_length.as_object().unwrap() {
            let length = PromptLength::try_from(length.parse::<f64>().unwrap()).unwrap();
            let moments = WeightMoments::at(tau.parse().unwrap(), &[length]).unwrap()[0];
            for (name, value) in values.as_object().unwrap() {
                let Some(found) = named(&moments, name) else { continue };
                let expected: f64 = value.as_str().unwrap().parse().unwrap();
                let error = if expected == 0.0 { found.abs() } else { (found / expected - 1.0).abs() };
                let place = format!("{name} at τ = {tau}, L = {length}: {found:e}, expected {expected:e}");
                // Written so that a NaN fails.
                assert!(error < 0.1 * RELATIVE_TOLERANCE, "{error:e}: {place}");
                compared += 1;
                if error >= worst.0 {
                    worst = (error, place);
                }
            }
        }
    }
    println!("largest relative error of {compared} values: {:e}, {}", worst.0, worst.1);
    compared
}

#[test]
fn moments_equal_the_160_bit_reference() {
    assert_eq!(compare_with(include_str!("../reference/softmax_moments.json")), 6 * 7 * 10);
}

#[test]
fn moments_equal_the_320_bit_reference_from_tau_0_to_10_and_one_token_to_a_trillion() {
    assert_eq!(compare_with(include_str!("../reference/softmax_moments_wide.json")), 12 * 11 * 14);
}

/// Two tokens: p = 1/(1 + e^{−τD}) with D = g₁ − g₂ ~ N(0, 2), one ordinary integral.
#[test]
fn two_tokens_equal_an_integral_over_their_difference() {
    for tau in [0.0, 0.1, 0.77, 1.0, 3.3, 6.0, 9.5, 14.0] {
        let moments = WeightMoments::at(tau, &[length(2)]).unwrap()[0];
        let step = 0.002;
        let [mut squares, mut cubes, mut variance, mut squared, mut cross] = [0.0; 5];
        for k in -8000..=8000 {
            let g = step * f64::from(k);
            let difference = 2f64.sqrt() * g;
            let p = 1.0 / (1.0 + (-tau * difference).exp());
            let q = 1.0 / (1.0 + (tau * difference).exp());
            let weight = step * normal::density(g);
            squares += weight * (p * p + q * q);
            cubes += weight * (p.powi(3) + q.powi(3));
            variance += weight * p * q * difference * difference;
            squared += weight * (p * q * difference * difference).powi(2);
            cross += weight * 2.0 * (p * q * difference).powi(2);
        }
        for (found, expected) in [
            (moments.sum_of_squares, squares),
            (moments.sum_of_cubes, cubes),
            (moments.variance, variance),
            (moments.squared_variance, squared),
            (moments.cross, cross),
        ] {
            assert!((found / expected - 1.0).abs() < 1e-12, "τ = {tau}: {found} {expected}");
        }
    }
}

/// Plain simulation of the weights, five standard errors: false alarms below 1e-5 over the test.
#[test]
fn simulated_weights_agree_within_standard_errors() {
    for (tau, tokens) in [(0.5, 5), (1.5, 20), (4.0, 50)] {
        let draws: Vec<[f64; 4]> = (0..40_000)
            .map(|trial| {
                let mut stream = Stream::new(11, trial, 0);
                let normals: Vec<f64> = (0..tokens).map(|_| stream.normal()).collect();
                let scores: Vec<f64> = normals.iter().map(|g| tau * g).collect();
                let (p, _) = softmax(&scores);
                let mean: f64 = p.iter().zip(&normals).map(|(p, g)| p * g).sum();
                let squares: f64 = p.iter().map(|p| p * p).sum();
                let variance: f64 = p.iter().zip(&normals).map(|(p, g)| p * (g - mean).powi(2)).sum();
                [(mean - tau).powi(2), squares, variance, variance * squares]
            })
            .collect();
        let exact = WeightMoments::at(tau, &[length(tokens)]).unwrap()[0];
        let expected =
            [exact.mean_squared_error, exact.sum_of_squares, exact.variance, exact.variance_times_squares];
        for (k, expected) in expected.iter().enumerate() {
            let values: Vec<f64> = draws.iter().map(|draw| draw[k]).collect();
            crate::common::Simulated::of(&values).agrees_with(*expected, "moment");
        }
    }
}

/// c₁ = E G/τ and c₂ = (E G² − E S₂)/τ² from the definition, and their slopes by differences in τ².
#[test]
fn shrinkage_is_the_mean_and_second_moment_of_the_output() {
    let all = lengths(&[1, 2, 3, 7, 100, 1_000_000]);
    for tau in [0.0f64, 1e-8, 0.1, 0.6, 1.3, 2.7, 5.0, 9.0] {
        let moments = WeightMoments::at(tau, &all).unwrap();
        let square = tau * tau;
        let at = |square: f64| WeightMoments::at(square.sqrt(), &all).unwrap();
        let step = 1e-3 * square.max(0.05);
        // One-sided where τ² − step would be negative: fourth-order formulas on both sides.
        let (nodes, weights): (Vec<f64>, [f64; 5]) = if square > 2.5 * step {
            ((-2..=2).map(|k| square + step * f64::from(k)).collect(), [1.0, -8.0, 0.0, 8.0, -1.0])
        } else {
            ((0..=4).map(|k| square + step * f64::from(k)).collect(), [-25.0, 48.0, -36.0, 16.0, -3.0])
        };
        let samples: Vec<_> = nodes.iter().map(|&square| at(square)).collect();
        for (index, moments) in moments.iter().enumerate() {
            let found = moments.shrinkage();
            if tau > 0.5 {
                let mean = 1.0 + moments.mean_bias / tau;
                let second_of_mean = moments.mean_squared_error + 2.0 * tau * moments.mean_bias + square;
                let second = (second_of_mean - moments.sum_of_squares) / square;
                assert!((found.first() - mean).abs() < 1e-12);
                assert!((found.second() - second).abs() < 1e-11, "τ = {tau}, {:?}", all[index]);
            }
            let slope = |part: fn(&esscher_core::softmax_weights::Shrinkage) -> f64| {
                let values = samples.iter().map(|moments| part(&moments[index].shrinkage()));
                values.zip(weights).map(|(value, weight)| weight * value).sum::<f64>() / (12.0 * step)
            };
            let (first, second) = (slope(|s| -s.first_deficit), slope(|s| -s.second_deficit));
            let close = |a: f64, b: f64| (a - b).abs() < 1e-8 * (a.abs() + moments.sum_of_squares);
            assert!(
                close(found.first_slope, first),
                "c₁′ τ = {tau}, L = {}: {} {first}",
                all[index],
                found.first_slope
            );
            assert!(
                close(found.second_slope, second),
                "c₂′ τ = {tau}, L = {}: {} {second}",
                all[index],
                found.second_slope
            );
        }
    }
    let one = WeightMoments::at(0.0, &lengths(&[5])).unwrap()[0].shrinkage();
    assert!((one.first_slope + 4.0 / 25.0).abs() < 1e-14, "c₁′(0) = −(L−1)/L²");
    assert!((one.second_slope - (-1.0 / 5.0 - 5.0 / 25.0 + 6.0 / 125.0)).abs() < 1e-13);
}

/// Var G is E G² − (E G)²: from simulation-free identities at L = 2, where G = g₁p + g₂q, and at the frozen end,
/// where it is the variance of the largest of ten normals (0.344343824…, from tables of order statistics).
#[test]
fn the_variance_of_the_mean_score_survives_freezing() {
    for tau in [0.0, 0.4, 3.0, 30.0, 1000.0] {
        let moments = WeightMoments::at(tau, &[length(2)]).unwrap()[0];
        // G = (g₁+g₂)/2 + (p − q)(g₁−g₂)/2, the two parts independent given the difference D ~ N(0, 2).
        let (step, mut mean, mut second) = (0.001, 0.0, 0.0);
        for k in -9000..=9000 {
            let difference = 2f64.sqrt() * step * f64::from(k);
            let lean = 0.5 * difference * (0.5 * tau * difference).tanh();
            let weight = step * normal::density(step * f64::from(k));
            mean += weight * lean;
            second += weight * lean * lean;
        }
        let expected = 0.5 + second - mean * mean;
        // At large τ the test's own rule has a kink at D = 0: error of order step².
        assert!(
            (moments.mean_variance / expected - 1.0).abs() < 1e-6,
            "τ = {tau}: {}",
            moments.mean_variance
        );
    }
    let frozen = WeightMoments::at(MAX_SCORE_DEVIATION, &[length(10)]).unwrap()[0];
    assert!((frozen.mean_variance - 0.344_343_824).abs() < 1e-7, "{}", frozen.mean_variance);
}

/// The gap between the tabulated and the direct moments, over the whole range, is the table's tolerance.
#[test]
fn the_table_interpolates_within_its_tolerance() {
    let all = lengths(&[2, 10, 1000, 1_000_000, 1_000_000_000, 1_000_000_000_000]);
    let table = MomentTable::new(25.0, &all).unwrap();
    let mut worst: f64 = 0.0;
    for k in 0..400 {
        // Irrational steps: never a node.
        let tau = 25.0 * (f64::from(k) * 0.618_033_988_749_895).fract();
        for (tabulated, direct) in table.at(tau).unwrap().iter().zip(WeightMoments::at(tau, &all).unwrap()) {
            for name in NAMES {
                let (a, b) = (named(tabulated, name).unwrap(), named(&direct, name).unwrap());
                let error = (a - b).abs() / b.abs().max(direct.sum_of_squares);
                assert!(error < MomentTable::TOLERANCE, "{name} at τ = {tau}: {error:e}");
                worst = worst.max(error);
            }
        }
    }
    println!("largest interpolation error {worst:e}");
    assert!(table.at(25.1).is_err() && table.at(f64::NAN).is_err());
}

#[test]
fn frozen_weights_pick_the_largest_normal() {
    // E max of 10 normals = 1.538752730835, E max² = 2.7111...: as τ → ∞, G → max and A → 0.
    let moments = WeightMoments::at(MAX_SCORE_DEVIATION, &[length(10)]).unwrap()[0];
    let mean = MAX_SCORE_DEVIATION * (1.0 - moments.sum_of_squares);
    assert!((mean - 1.538_752_730_8).abs() < 1e-6, "{mean}");
    assert!(moments.variance < 1e-10);
}

#[test]
fn a_sweep_equals_its_lengths_one_by_one() {
    let all = PromptLength::logarithmic(PromptLength::MIN, PromptLength::MAX, 25);
    for tau in [0.2, 2.0, 7.0] {
        for (together, &alone) in WeightMoments::at(tau, &all).unwrap().iter().zip(&all) {
            let alone = WeightMoments::at(tau, &[alone]).unwrap()[0];
            for name in ["mse", "var_mse", "cross", "sum_p2_cubed", "var_second_moment"] {
                let (a, b) = (named(together, name).unwrap(), named(&alone, name).unwrap());
                assert!((a - b).abs() <= 1e-12 * a.abs(), "{name} τ = {tau}");
            }
        }
    }
}

#[test]
fn impossible_deviations_and_lengths_are_refused() {
    for tau in [-1.0, f64::NAN, f64::INFINITY, 1.1e4] {
        assert!(WeightMoments::at(tau, &[length(2)]).unwrap_err().to_string().contains("τ"));
    }
    assert!(WeightMoments::at(1.0, &[]).unwrap().is_empty());
    for found in [0.0, -3.0, 2.5, 1e13, f64::NAN, f64::INFINITY] {
        let text = PromptLength::try_from(found).unwrap_err().to_string();
        assert!(text.contains("whole number of tokens from 1"), "{text}");
    }
    assert!(PromptLength::new(0).is_err() && PromptLength::new(1_000_000_000_001).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(3), ..ProptestConfig::default() })]

    /// E (Σp)² = 1 whatever τ and L: the quadrature's own error, and the order that any weights obey.
    #[test]
    fn the_quadrature_closes_everywhere(tau in 0.0f64..30.0, log_length in 0.0f64..27.63) {
        let tokens = PromptLength::new(log_length.exp().round() as u64).unwrap();
        let moments = WeightMoments::at(tau, &[tokens]).unwrap()[0];
        prop_assert!((moments.closure - 1.0).abs() < 1e-12, "{}", moments.closure);
        let s2 = moments.sum_of_squares;
        prop_assert!(1.0 / tokens.as_f64() <= s2 * (1.0 + 1e-12) && s2 <= 1.0 + 1e-12);
        prop_assert!(moments.sum_of_cubes <= s2 * (1.0 + 1e-12));
        prop_assert!(s2 * s2 <= moments.squared_sum_of_squares * (1.0 + 1e-12));
        prop_assert!(moments.variance.powi(2) <= moments.squared_variance * (1.0 + 1e-11));
        prop_assert!(moments.mean_bias.powi(2) <= moments.mean_squared_error * (1.0 + 1e-12));
    }

    #[test]
    fn every_score_deviation_is_answered_or_refused(tau in prop::num::f64::ANY, tokens in 1u64..1_000_000_000_000) {
        let lengths = [PromptLength::new(tokens).unwrap()];
        // Any float, which is refused or answered, and a large one inside the range.
        for tau in [tau, 1e3 * tau.sin().abs()] {
            if let Ok(moments) = WeightMoments::at(tau, &lengths) {
                prop_assert!(moments[0].mean_squared_error.is_finite());
                prop_assert!(moments[0].variance_squared_error >= 0.0 && moments[0].mean_variance >= 0.0);
            } else {
                prop_assert!(!(0.0..=MAX_SCORE_DEVIATION).contains(&tau));
            }
        }
    }
}
