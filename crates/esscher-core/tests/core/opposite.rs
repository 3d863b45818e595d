//! A head and its opposite on one prompt: against references, closed forms, simulation, differences and limits.

use crate::common::{Simulated, length};
use esscher_core::Error;
use esscher_core::numerics::{Stream, softmax};
use esscher_core::softmax_weights::{OppositePair, WeightMoments};
use serde_json::Value;

fn pair(tau: f64, tokens: u64) -> OppositePair {
    OppositePair::at(tau, length(tokens)).unwrap()
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (found - expected).abs();
    assert!(error <= tolerance, "{what}: {found} against {expected}, error {error:e}");
}

const DEVIATIONS: [f64; 11] = [0.0, 1e-6, 0.1, 0.499, 0.5, 1.0, 2.0, 3.5, 6.0, 10.0, 20.0];
const LENGTHS: [u64; 9] = [2, 3, 5, 50, 1000, 30_000, 1_000_000, 1_000_000_000, 1_000_000_000_000];

#[test]
fn the_definitions_are_met_to_the_stated_tolerance() {
    let reference: Value = serde_json::from_str(include_str!("../reference/opposite_heads.json")).unwrap();
    for row in reference.as_array().unwrap() {
        let value = |name: &str| row[name].as_f64().unwrap();
        let (tau, tokens) = (value("tau"), value("length") as u64);
        let pair = pair(tau, tokens);
        let what = format!("τ = {tau}, L = {tokens}");
        for (found, name) in [
            (pair.first_deficit, "first_deficit"),
            (pair.second_deficit, "second_deficit"),
            (pair.spread, "spread"),
        ] {
            // The references of the deficits are differences from one and carry 1e-14 of their own.
            let own = if name == "spread" { 0.0 } else { 3e-14 };
            let tolerance = OppositePair::TOLERANCE * pair.first_deficit + own;
            assert_close(found, value(name), tolerance, &format!("{name}, {what}"));
        }
    }
    assert_eq!(reference.as_array().unwrap().len(), 21);
}

#[test]
fn the_weights_of_both_heads_sum_to_one_at_every_deviation_and_length() {
    for tau in DEVIATIONS {
        for tokens in LENGTHS {
            assert_close(pair(tau, tokens).closure, 1.0, 5e-13, &format!("τ = {tau}, L = {tokens}"));
        }
    }
}

#[test]
fn without_scores_everything_is_a_polynomial_in_one_over_the_length() {
    for tokens in LENGTHS {
        let share = 1.0 / tokens as f64;
        let pair = pair(0.0, tokens);
        for (found, expected) in [
            (pair.first_deficit, share),
            (pair.second_deficit, share),
            (pair.spread, 0.0),
            (pair.first_slope, -share * (1.0 - share)),
            (pair.second_slope, -share * (2.0 + 2.0 * share - 4.0 * share * share)),
            (pair.spread_slope, share * (1.0 - share)),
        ] {
            // Relative to 1/L: long prompts keep their digits.
            assert_close(found, expected, 1e-12 * share, &format!("L = {tokens}"));
        }
    }
}

#[test]
fn the_difference_of_two_heads_that_see_one_token_is_zero() {
    for tau in DEVIATIONS {
        let pair = pair(tau, 1);
        assert_eq!((pair.first(), pair.second(), pair.spread), (0.0, 0.0, 0.0));
        assert_eq!((pair.first_slope, pair.second_slope, pair.spread_slope), (0.0, 0.0, 0.0));
    }
}

#[test]
fn the_mean_is_that_of_one_head() {
    for tokens in [2, 1000, 1_000_000_000_000] {
        let (pair, single) = (pair(1.7, tokens), WeightMoments::at(1.7, &[length(tokens)]).unwrap()[0]);
        assert_eq!(pair.first_deficit, single.shrinkage().first_deficit);
        assert_eq!(pair.first_slope, single.shrinkage().first_slope);
    }
}

#[test]
fn simulated_pairs_of_heads_agree_within_standard_errors() {
    // Tokens (g, ξ), tilt (τ, 0), value direction (0.8, −1.3): a = 0.8τ, q = 0.8² + 1.3².
    let value = [0.8, -1.3];
    for (tau, tokens) in [(0.7, 2), (3.0, 2), (0.5, 5), (2.0, 5), (1.0, 50), (6.0, 50)] {
        let draws: Vec<f64> = (0..40_000)
            .map(|trial| {
                let mut stream = Stream::new(31, trial, 0);
                let prompt: Vec<[f64; 2]> = (0..tokens).map(|_| [stream.normal(), stream.normal()]).collect();
                let output = |sign: f64| -> f64 {
                    let scores: Vec<f64> = prompt.iter().map(|token| sign * tau * token[0]).collect();
                    let (weights, _) = softmax(&scores);
                    let values = prompt.iter().map(|token| value[0] * token[0] + value[1] * token[1]);
                    weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
                };
                0.5 * (output(1.0) - output(-1.0))
            })
            .collect();
        let squares: Vec<f64> = draws.iter().map(|output| output * output).collect();
        let pair = pair(tau, tokens);
        let alignment = value[0] * tau;
        let size = value[0] * value[0] + value[1] * value[1];
        Simulated::of(&draws).agrees_with(pair.first() * alignment, "mean");
        let second = pair.second() * alignment * alignment + pair.spread * size;
        Simulated::of(&squares).agrees_with(second, "second moment");
    }
}

#[test]
fn slopes_are_the_derivatives_in_the_squared_deviation() {
    // Central differences of order eight; with this step their own error is below 2e-12 of the deficit.
    const WEIGHTS: [f64; 4] = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];
    for tau in [0.3, 1.0, 2.0, 4.0, 6.0, 12.0f64] {
        for tokens in [2, 5, 1000, 1_000_000_000, 1_000_000_000_000] {
            let sigma = tau * tau;
            let step = 0.01 * sigma.max(0.3);
            let at = |offset: i32| pair((sigma + f64::from(offset) * step).sqrt(), tokens);
            let neighbours: Vec<_> = (1..).zip(WEIGHTS).map(|(k, weight)| (weight, at(k), at(-k))).collect();
            let difference = |field: fn(&OppositePair) -> f64| -> f64 {
                let terms = neighbours.iter().map(|(weight, up, down)| weight * (field(up) - field(down)));
                terms.sum::<f64>() / step
            };
            let found = pair(tau, tokens);
            for (slope, expected) in [
                (found.first_slope, difference(|pair| -pair.first_deficit)),
                (found.second_slope, difference(|pair| -pair.second_deficit)),
                (found.spread_slope, difference(|pair| pair.spread)),
            ] {
                // Everything is of the order of the deficit, e^{τ²}/L at most: an absolute allowance would see nothing.
                let tolerance = OppositePair::TOLERANCE * found.first_deficit;
                assert_close(slope, expected, tolerance, &format!("τ = {tau}, L = {tokens}"));
            }
        }
    }
}

#[test]
fn long_prompts_have_a_spread_of_the_hyperbolic_sine_over_the_length() {
    let tokens = 1e9;
    for tau in [0.25, 0.5, 1.0, 1.5, 2.0f64] {
        let sigma = tau * tau;
        let pair = pair(tau, 1_000_000_000);
        // The next order is of size L² E S₃ → e^{3σ}, with coefficients up to 78 in the slopes: this allowance is above all of it.
        let tolerance = 20.0 * (4.0 * sigma).exp() / tokens;
        for (found, expected) in [
            (pair.first_deficit, sigma.exp()),
            (pair.second_deficit, sigma.exp() + sigma.sinh()),
            (pair.spread, sigma.sinh()),
            (pair.second_slope, -sigma.exp() - sigma.cosh()),
            (pair.spread_slope, sigma.cosh()),
        ] {
            assert_close(tokens * found, expected, tolerance * expected.abs(), &format!("τ = {tau}"));
        }
    }
}

#[test]
fn the_two_ways_to_sum_over_sites_join_smoothly() {
    // Below τ = 1/2 the kernel is computed, above it is convolved on the lattice.
    for tokens in LENGTHS {
        let (below, above) = (pair(0.5 - 1e-12, tokens), pair(0.5, tokens));
        let scale = above.first_deficit;
        assert_close(below.second_deficit, above.second_deficit, 1e-11 * scale, "C₂");
        assert_close(below.spread, above.spread, 1e-11 * scale, "D");
        assert_close(below.second_slope, above.second_slope, 1e-10 * scale, "C₂′");
    }
}

#[test]
fn deviations_that_make_no_sense_are_errors() {
    for tau in [-1e-300, f64::NAN, f64::INFINITY, 20.1] {
        assert!(matches!(OppositePair::at(tau, length(5)), Err(Error::OutOfRange { .. })), "{tau}");
    }
}
