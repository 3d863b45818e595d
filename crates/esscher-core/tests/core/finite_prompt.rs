//! Exact finite prompts at a query: against references, simulation, the delta method and each other.

use crate::common::{
    Simulated, StopAfter, length, lengths, simulate, skew_gaussian, skew_head, skew_mixture,
};
use esscher_core::attention::{Attention, Softmax};
use esscher_core::measure::{Affine, Gaussian, Law, Measure, Mixture, Rademacher};
use esscher_core::numerics::linalg;
use esscher_core::prompt::{Deviation, FinitePrompt, PromptLength, delta_method, gaussian_gradient_constant};
use esscher_core::{Error, Mat, Quantity, Unwatched, mat};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;
use std::sync::Arc;

fn number(value: &Value) -> f64 {
    value.as_str().unwrap().parse().unwrap()
}

fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn matrix(value: &Value) -> Mat<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(vector).collect();
    Mat::from_fn(rows.len(), rows[0].len(), |i, j| rows[i][j])
}

/// The mixture and the value matrix of the reference file; U = I, so the query is the tilt.
fn reference_mixture(reference: &Value) -> (Mixture, Softmax) {
    let part = |name: &str| reference[name].as_array().unwrap();
    let components = (0..3)
        .map(|k| {
            let gaussian =
                Gaussian::new(&vector(&part("means")[k]), matrix(&part("covariances")[k]).as_ref()).unwrap();
            (number(&part("weights")[k]), Arc::new(gaussian) as Law)
        })
        .collect();
    let head = Softmax::new(Mat::identity(2, 2).as_ref(), matrix(&reference["value"]).as_ref()).unwrap();
    (Mixture::new(components).unwrap(), head)
}

#[test]
fn mixture_prompts_equal_the_320_bit_reference() {
    let reference: Value = serde_json::from_str(include_str!("../reference/gaussian_mixture.json")).unwrap();
    let (tokens, head) = reference_mixture(&reference);
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    let mut worst: f64 = 0.0;
    for case in reference["cases"].as_array().unwrap() {
        let query = vector(&case["theta"]);
        for (tokens, expected) in case["lengths"].as_object().unwrap() {
            let length = PromptLength::try_from(tokens.parse::<f64>().unwrap()).unwrap();
            let found = &prompt.at_query(&query, &[length]).unwrap()[0];
            let mut compare = |found: f64, expected: f64, size: f64, what: &str| {
                let error = (found - expected).abs() / size;
                assert!(error < 1e-9, "{what} at {query:?}, L = {tokens}: {found:e}, expected {expected:e}");
                worst = worst.max(error);
            };
            let bias = vector(&expected["bias"]);
            let bias_size = linalg::squared_norm(&bias).sqrt().max(1e-300);
            for (found, expected) in found.bias.iter().zip(&bias) {
                // At tilt zero the bias vanishes: then it must be nothing against the spread.
                let size = bias_size.max(1e-6 / length.as_f64());
                compare(*found, *expected, size, "bias");
            }
            let moment = matrix(&expected["second_moment"]);
            for i in 0..2 {
                for j in 0..2 {
                    let found = found.covariance[(i, j)] + found.bias[i] * found.bias[j];
                    compare(found, moment[(i, j)], linalg::trace(moment.as_ref()), "second moment");
                }
            }
            compare(found.errors.output / linalg::trace(moment.as_ref()), 1.0, 1.0, "output error");
            compare(found.participation / number(&expected["participation"]), 1.0, 1.0, "participation");
            let norm = linalg::squared_norm(&query);
            if norm > 0.0 {
                let gradient = found.errors.score_gradient / norm;
                compare(gradient / number(&expected["gradient_error"]), 1.0, 1.0, "gradient error");
            }
        }
    }
    println!("largest relative error {worst:e}");
}

/// Splitting a Gaussian into two equal components changes the engine, not the answer.
#[test]
fn the_mixture_engine_and_the_gaussian_engine_agree() {
    let (head, gaussian) = (skew_head(), skew_gaussian());
    let halves: Vec<(f64, Law)> =
        vec![(0.25, Arc::new(gaussian.clone())), (0.75, Arc::new(gaussian.clone()))];
    let one = FinitePrompt::exact(&head, &gaussian).unwrap();
    let two = FinitePrompt::exact(&head, &Mixture::new(halves).unwrap()).unwrap();
    let lengths = lengths(&[1, 2, 3, 4, 5, 10, 1000, 1_000_000, 1_000_000_000_000]);
    for scale in [0.0, 1e-8, 0.3, 1.0, 3.0, 8.0, 15.0, 60.0, 300.0, 1000.0] {
        let query = [scale, -0.7 * scale];
        let pairs =
            one.at_query(&query, &lengths).unwrap().into_iter().zip(two.at_query(&query, &lengths).unwrap());
        for (one, two) in pairs {
            let close = |a: f64, b: f64, what: &str| {
                assert!(
                    (a - b).abs() <= (one.tolerance + two.tolerance) * a.abs(),
                    "{what} at scale {scale}, L = {}: {a:e} {b:e}",
                    one.length
                );
            };
            close(one.errors.output, two.errors.output, "output");
            close(one.errors.score_gradient, two.errors.score_gradient, "score gradient");
            close(one.errors.value_gradient, two.errors.value_gradient, "value gradient");
            close(one.participation, two.participation, "participation");
            for i in 0..2 {
                // At τ = 0 the bias vanishes: compare it with the spread of the output.
                let spread = one.errors.output.sqrt();
                assert!((one.bias[i] - two.bias[i]).abs() < 1e-9 * one.bias[i].abs() + 1e-15 * spread);
                let size = linalg::trace(one.covariance.as_ref());
                for j in 0..2 {
                    assert!((one.covariance[(i, j)] - two.covariance[(i, j)]).abs() < 1e-9 * size);
                }
            }
        }
    }
}

fn simulation_agrees(tokens: &dyn Measure, query: &[f64], tokens_per_prompt: u64, trials: u32) {
    let head = skew_head();
    let exact = FinitePrompt::exact(&head, tokens).unwrap();
    let exact = &exact.at_query(query, &[length(tokens_per_prompt)]).unwrap()[0];
    let draws = simulate(&head, tokens, query, tokens_per_prompt as usize, trials);
    let of = |part: &dyn Fn(&crate::common::PromptDraw) -> f64| {
        Simulated::of(&draws.iter().map(part).collect::<Vec<_>>())
    };
    of(&|draw| draw.output).agrees_with(exact.errors.output, "output error");
    of(&|draw| draw.score_gradient).agrees_with(exact.errors.score_gradient, "score gradient error");
    of(&|draw| draw.value_gradient).agrees_with(exact.errors.value_gradient, "value gradient error");
    of(&|draw| draw.participation).agrees_with(exact.participation, "participation");
    for i in 0..2 {
        of(&|draw| draw.output_offset[i]).agrees_with(exact.bias[i], "bias");
        for j in 0..2 {
            let second = exact.covariance[(i, j)] + exact.bias[i] * exact.bias[j];
            of(&|draw| draw.output_offset[i] * draw.output_offset[j]).agrees_with(second, "second moment");
        }
    }
}

#[test]
fn simulated_gaussian_prompts_agree_within_standard_errors() {
    for (tokens, trials) in [(1, 20_000), (2, 20_000), (7, 40_000), (40, 40_000), (400, 5_000)] {
        simulation_agrees(&skew_gaussian(), &[1.3, -0.8], tokens, trials);
    }
    simulation_agrees(&skew_gaussian(), &[5.0, 2.0], 30, 40_000);
    simulation_agrees(&skew_gaussian(), &[0.0, 0.0], 10, 20_000);
}

#[test]
fn simulated_mixture_prompts_agree_within_standard_errors() {
    for (tokens, trials) in [(1, 20_000), (2, 20_000), (7, 40_000), (40, 40_000), (400, 5_000)] {
        simulation_agrees(&skew_mixture(), &[1.3, -0.8], tokens, trials);
    }
    simulation_agrees(&skew_mixture(), &[4.0, 2.0], 30, 40_000);
    simulation_agrees(&skew_mixture(), &[0.0, 0.0], 10, 20_000);
}

/// A singular covariance: all tokens on a plane of R³.
#[test]
fn simulated_prompts_on_a_plane_agree_within_standard_errors() {
    let root = mat![[1.0, 0.2], [0.3, -0.8], [0.5, 0.5]];
    let covariance = &root * root.transpose();
    simulation_agrees(
        &Gaussian::new(&[0.1, 0.2, -0.3], covariance.as_ref()).unwrap(),
        &[1.1, 0.4],
        25,
        40_000,
    );
}

/// Entries of 10³⁰⁸ are finite, their trace is not.
#[test]
fn an_overflowing_trace_of_the_delta_method_is_an_error() {
    let value = Mat::from_fn(2, 2, |i, j| if i == j { 1e154 } else { 0.0 });
    let head = Softmax::new(Mat::identity(2, 2).as_ref(), value.as_ref()).unwrap();
    let tokens = Gaussian::standard(2).unwrap();
    assert!(matches!(delta_method(&head, &tokens, &[0.0, 0.0]), Err(Error::Overflow { .. })));
}

/// L · error − constant is of order 1/L: at L = 10¹² the first nine digits are those of the constant.
#[test]
fn long_prompts_approach_the_constants_of_the_delta_method() {
    let (head, query) = (skew_head(), [1.3, -0.8]);
    let longest = PromptLength::MAX;
    let scale = longest.as_f64();
    for tokens in [Arc::new(skew_gaussian()) as Law, Arc::new(skew_mixture())] {
        let constants = delta_method(&head, tokens.as_ref(), &query).unwrap();
        let exact =
            &FinitePrompt::exact(&head, tokens.as_ref()).unwrap().at_query(&query, &[longest]).unwrap()[0];
        assert!((exact.errors.output * scale / constants.output_error - 1.0).abs() < 1e-9);
        for i in 0..2 {
            assert!((exact.bias[i] * scale / constants.bias[i] - 1.0).abs() < 1e-9);
            for j in 0..2 {
                let gap = exact.covariance[(i, j)] * scale - constants.covariance[(i, j)];
                assert!(gap.abs() < 1e-9 * constants.output_error);
            }
        }
    }
    let constant = gaussian_gradient_constant(&head, &skew_gaussian(), &query).unwrap();
    let prompt = FinitePrompt::exact(&head, &skew_gaussian()).unwrap();
    let ratio = |length: PromptLength| {
        prompt.at_query(&query, &[length]).unwrap()[0].errors.score_gradient * length.as_f64() / constant
            - 1.0
    };
    // The approach is first order in 1/L, with a constant of about 1200 here.
    assert!(ratio(longest).abs() < 1e4 / longest.as_f64(), "{:e}", ratio(longest));
    let (near, far) = (ratio(length(10_000_000)), ratio(length(1_000_000)));
    assert!((far / near - 10.0).abs() < 0.1, "{far:e} {near:e}");
}

/// With V = I the constant is e^{τ²}[(|b|² + tr G)² + tr G² + 2bᵀGb], written out.
#[test]
fn the_gradient_constant_has_its_closed_form() {
    let covariance = mat![[1.0, 0.3], [0.3, 0.8]];
    let tokens = Gaussian::centred(covariance.as_ref()).unwrap();
    let head = Softmax::new(Mat::identity(2, 2).as_ref(), Mat::identity(2, 2).as_ref()).unwrap();
    let query = [0.6, -0.4];
    let shift = linalg::apply(covariance.as_ref(), &query);
    let (square, shift_norm) = (linalg::dot(&query, &shift), linalg::squared_norm(&shift));
    let bend = linalg::dot(&shift, &linalg::apply(covariance.as_ref(), &shift));
    let bracket = (shift_norm + 1.8).powi(2) + (1.0 + 0.64 + 2.0 * 0.09) + 2.0 * bend;
    let expected = linalg::squared_norm(&query) * square.exp() * bracket;
    let found = gaussian_gradient_constant(&head, &tokens, &query).unwrap();
    assert!((found / expected - 1.0).abs() < 1e-13);
}

#[test]
fn laws_without_an_exact_theory_say_so() {
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let error = FinitePrompt::exact(&head, &Rademacher::new(1).unwrap()).unwrap_err();
    assert!(error.to_string().contains("Rademacher"), "{error}");
}

fn two_atoms(size: f64) -> Mixture {
    let atom = |x: f64| Arc::new(esscher_core::measure::Empirical::atom(&[x]).unwrap()) as Law;
    Mixture::new(vec![(0.5, atom(-size)), (0.5, atom(size))]).unwrap()
}

/// Tokens ±c are two atoms, and L of them are a binomial sum: outputs and gradients must be within the stated
/// tolerance, which must itself be small.
#[test]
fn two_atoms_are_a_binomial_sum_within_the_stated_tolerance() {
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    for size in [0.5f64, 1.0, 3.0, 5.0, 7.0, 10.0, 15.0] {
        let prompt = FinitePrompt::exact(&head, &two_atoms(size)).unwrap();
        for tokens in [1u64, 2, 5, 9, 20, 60] {
            let [mut bias, mut error, mut gradient] = [0.0; 3];
            let mut probability = 0.5f64.powi(tokens as i32);
            for plus in 0..=tokens {
                // The weight of the plus signs and its complement; in the limit, plus signs weigh 1/(1 + e^{−2c}).
                let (up, down) = (plus as f64, (tokens - plus) as f64 * (-2.0 * size).exp());
                let (p, q) = (up / (up + down), down / (up + down));
                let limit = 1.0 / (1.0 + (2.0 * size).exp());
                let offset = -2.0 * size * (q - limit);
                let spread = 4.0 * size * size * (p * q - limit * (1.0 - limit));
                bias += probability * offset;
                error += probability * offset * offset;
                gradient += probability * spread * spread;
                probability *= (tokens - plus) as f64 / (plus as f64 + 1.0);
            }
            let found = &prompt.at_query(&[1.0], &[length(tokens)]).unwrap()[0];
            let allowed = found.tolerance;
            let place = format!("c = {size}, L = {tokens}, tolerance {allowed:e}");
            assert!(allowed < 1e-9, "{place}");
            assert!(
                (found.bias[0] - bias).abs() <= allowed * error.sqrt(),
                "{place}: bias {:e} {bias:e}",
                found.bias[0]
            );
            assert!(
                (found.errors.output / error - 1.0).abs() <= allowed,
                "{place}: {:e} {error:e}",
                found.errors.output
            );
            let found = found.errors.score_gradient;
            assert!((found / gradient - 1.0).abs() <= allowed, "{place}: gradient {found:e} {gradient:e}");
        }
    }
}

/// A sink and a bulk at long queries, against simulation: the prompt is frozen far from its limit.
#[test]
fn a_sink_and_a_bulk_are_right_at_long_queries() {
    let sink = Arc::new(esscher_core::measure::Empirical::atom(&[4.0]).unwrap()) as Law;
    let tokens = Mixture::new(vec![(0.05, sink), (0.95, Arc::new(Gaussian::standard(1).unwrap()))]).unwrap();
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    for (query, tokens_per_prompt) in [(7.0, 100), (50.0, 4), (50.0, 100)] {
        let exact = &prompt.at_query(&[query], &[length(tokens_per_prompt)]).unwrap()[0];
        let draws = simulate(&head, &tokens, &[query], tokens_per_prompt as usize, 20_000);
        let of = |part: &dyn Fn(&crate::common::PromptDraw) -> f64| {
            Simulated::of(&draws.iter().map(part).collect::<Vec<_>>())
        };
        of(&|draw| draw.output_offset[0]).agrees_with(exact.bias[0], "bias");
        of(&|draw| draw.output).agrees_with(exact.errors.output, "output error");
        of(&|draw| draw.score_gradient).agrees_with(exact.errors.score_gradient, "score gradient error");
        let mean = of(&|draw| draw.output_offset[0]).mean;
        of(&|draw| (draw.output_offset[0] - mean).powi(2)).agrees_with(exact.covariance[(0, 0)], "variance");
    }
}

/// Components whose scores differ by 10⁴ leave a wide gap in the integral.
#[test]
fn scores_far_apart_are_integrated_across_the_gap() {
    let tokens = two_atoms(1.0);
    let head = Softmax::new(mat![[1e4]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let found =
        &FinitePrompt::exact(&head, &tokens).unwrap().at_query(&[1.0], &lengths(&[1, 2, 10])).unwrap();
    // All tokens are −1 with probability 2^{−L}; then the output is −1 instead of 1.
    for deviation in found {
        let expected = 4.0 * 0.5f64.powf(deviation.length.as_f64());
        assert!((deviation.errors.output / expected - 1.0).abs() < 1e-9, "{:?}", deviation.errors.output);
    }
}

#[test]
fn a_stopped_sweep_returns_the_completed_queries() {
    let prompt = FinitePrompt::exact(&skew_head(), &skew_gaussian()).unwrap();
    let queries = Mat::from_fn(100, 2, |i, j| (i as f64 * 0.1 + j as f64).sin());
    let all = prompt.at_queries(queries.as_ref(), &lengths(&[10]), &Unwatched).unwrap();
    assert_eq!(all.deviations.len(), 100);
    let some = prompt.at_queries(queries.as_ref(), &lengths(&[10]), &StopAfter::looks(2)).unwrap();
    let completed = some.deviations.len();
    assert!(0 < completed && completed < 100);
    assert_eq!(some.completion, esscher_core::Completion::Stopped { completed, total: 100 });
    let error = |list: &[Deviation]| list[0].errors.output;
    assert!(some.deviations.iter().zip(&all.deviations).all(|(a, b)| error(a) == error(b)));
}

#[test]
fn zero_value_rows_and_flat_queries_are_fine() {
    let head = Softmax::new(mat![[0.0]].as_ref(), mat![[0.0]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &Gaussian::standard(1).unwrap()).unwrap();
    let found = &prompt.at_query(&[3.0], &lengths(&[5])).unwrap()[0];
    assert_eq!(found.errors.output, 0.0);
    assert!((found.errors.value_gradient - 0.2).abs() < 1e-14);
    assert_eq!(head.output_dimension(), 1);
}

/// The error can be the chance that a dominant atom is absent, however small.
#[test]
fn rare_absences_of_a_dominant_atom_are_counted() {
    let atom = |x: f64| Arc::new(esscher_core::measure::Empirical::atom(&[x]).unwrap()) as Law;
    let tokens = Mixture::new(vec![(1.0 - 1e-6, atom(0.0)), (1e-6, atom(1.0))]).unwrap();
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    // All twelve tokens at 1, where the limit is at 0: probability 10⁻⁷².
    let found = prompt.at_query(&[-100.0], &lengths(&[12])).unwrap()[0].errors.output;
    assert!((found * 1e72 - 1.0).abs() < 1e-9, "{found:e}");
}

/// Tokens s·z read by U/s have the same scores: outputs scale with s and the gradient in U with s², to the last bit for
/// powers of two, as far as there are doubles; beyond, the answer is an error and never 0 or ∞.
#[test]
fn errors_scale_with_their_tokens_to_both_ends_of_the_doubles() {
    let all = lengths(&[1, 2, 10, 1_000_000_000_000]);
    let query = [0.6, -0.8];
    let head = skew_head();
    let laws: [Law; 2] = [Arc::new(skew_gaussian()), Arc::new(skew_mixture())];
    for law in laws {
        let plain = FinitePrompt::exact(&head, law.as_ref()).unwrap().at_query(&query, &all).unwrap();
        for exponent in [-500, -240, -90, 1, 90, 240, 480] {
            let scale = 2f64.powi(exponent);
            let score = Mat::from_fn(3, 2, |i, j| head.score()[(i, j)] / scale);
            let head = Softmax::new(score.as_ref(), head.value()).unwrap();
            let tokens = Affine::scaled(scale, law.clone()).unwrap();
            let found = FinitePrompt::exact(&head, &tokens).unwrap().at_query(&query, &all);
            // Errors of the gradient in U scale with s⁴, and are a trillion times smaller in the longest prompt.
            let leaves_the_doubles = 4 * exponent.abs() > 980;
            assert_eq!(found.is_err(), leaves_the_doubles, "2^{exponent}: {found:?}");
            match found {
                Err(Error::Overflow { .. }) => assert!(exponent > 0),
                Err(Error::Underflow { .. }) => assert!(exponent < 0),
                Err(other) => panic!("2^{exponent}: {other}"),
                Ok(found) => {
                    for (found, plain) in found.iter().zip(&plain) {
                        assert_eq!(found.errors.output, scale * plain.errors.output * scale);
                        assert_eq!(found.errors.value_gradient, scale * plain.errors.value_gradient * scale);
                        let fourth = scale * (scale * plain.errors.score_gradient * scale) * scale;
                        assert_eq!(found.errors.score_gradient, fourth);
                        assert_eq!(found.bias[0], scale * plain.bias[0]);
                        assert_eq!(found.participation, plain.participation);
                    }
                }
            }
        }
    }
}

/// What does not vary has no error, however small it is; what varies has one, however small it is.
#[test]
fn zero_is_the_error_of_what_does_not_vary_alone() {
    let read = |value: f64, variance: f64, query: f64| {
        let head = Softmax::new(mat![[1.0]].as_ref(), mat![[value]].as_ref()).unwrap();
        let tokens = Gaussian::new(&[1e-200], mat![[variance]].as_ref()).unwrap();
        FinitePrompt::exact(&head, &tokens).unwrap().at_query(&[query], &lengths(&[10])).map(|found| {
            let errors = found[0].errors;
            [errors.output, errors.score_gradient, errors.value_gradient]
        })
    };
    assert_eq!(read(1e-200, 0.0, 1.0).unwrap(), [0.0; 3]);
    assert_eq!(read(0.0, 1.0, 1.0).unwrap()[..2], [0.0; 2]);
    assert_eq!(read(1.0, 1.0, 0.0).unwrap()[1], 0.0);
    for (value, variance, query) in
        [(1e-200, 1.0, 1.0), (1.0, 1e-310, 1.0), (1.0, 1.0, 1e-200), (1e-320, 1.0, 1.0)]
    {
        let found = read(value, variance, query);
        assert!(matches!(found, Err(Error::Underflow { .. })), "{value:e} {variance:e} {query:e}: {found:?}");
    }
    // The constants of long prompts, too.
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1e-200]].as_ref()).unwrap();
    let tokens = Gaussian::standard(1).unwrap();
    assert!(matches!(delta_method(&head, &tokens, &[1.0]), Err(Error::Underflow { .. })));
    assert!(matches!(gaussian_gradient_constant(&head, &tokens, &[1.0]), Err(Error::Underflow { .. })));
    // Of tokens of size 10⁻¹²⁰ the output has an error, although that of the gradient in U is none.
    let head = Softmax::new(mat![[1.0]].as_ref(), mat![[1.0]].as_ref()).unwrap();
    let tokens = Gaussian::centred(mat![[1e-240]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    let errors = |quantity| prompt.errors_at_query(quantity, &[1.0], &lengths(&[10]));
    assert!((errors(Quantity::Output).unwrap()[0] / 1e-241 - 1.0).abs() < 1e-12);
    assert!(matches!(errors(Quantity::ScoreGradient), Err(Error::Underflow { .. })));
    // One direction 10²²⁰ times wider than the one that V reads: a tenth of its variance, at τ = 0.
    let head = Softmax::new(mat![[0.0, 0.0], [0.0, 0.0]].as_ref(), mat![[1.0, 0.0]].as_ref()).unwrap();
    let tokens = Gaussian::centred(mat![[1e-300, 0.0], [0.0, 1e140]].as_ref()).unwrap();
    let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
    let found = prompt.at_query(&[1.0, 1.0], &lengths(&[10])).unwrap()[0].errors.output;
    assert!((found / 1e-301 - 1.0).abs() < 1e-12, "{found:e}");
}

/// Scores too large for double precision are refused, not answered wrongly.
#[test]
fn scores_beyond_rounding_are_refused() {
    for scale in [1e10, 1e15, 1e18, 1e300] {
        let head = Softmax::new(mat![[scale]].as_ref(), mat![[1.0]].as_ref()).unwrap();
        let found = FinitePrompt::exact(&head, &two_atoms(1.0)).unwrap().at_query(&[1.0], &lengths(&[2]));
        assert!(found.is_err(), "{scale:e}: {found:?}");
    }
}

#[test]
fn the_papers_bounds_and_the_rate_exponent_have_their_stated_values() {
    use esscher_core::prompt::{
        BoundConstants, output_bound, rate_exponent, score_gradient_bound, trajectory_bound,
    };
    let constants = BoundConstants { factor: 3.0, exponent: 0.5 };
    let (sigma, tokens) = (2.0f64, length(1000));
    let log = 1000f64.ln();
    let decay = 1000f64.powf(-0.125);
    let output = output_bound(tokens, sigma, constants).unwrap();
    assert!((output / (3.0 * 64.0 * log * decay) - 1.0).abs() < 1e-14);
    let gradient = score_gradient_bound(tokens, sigma, constants).unwrap();
    assert!((gradient / (3.0 * 4096.0 * log * log * decay) - 1.0).abs() < 1e-14);
    for bound in [output_bound, score_gradient_bound] {
        assert!(bound(length(1), sigma, constants).unwrap_err().to_string().contains("from 2"));
        assert!(bound(tokens, 0.9, constants).is_err());
        assert!(bound(tokens, sigma, BoundConstants { factor: 0.0, exponent: 1.0 }).is_err());
    }
    assert!((trajectory_bound(0.1, 2.0, 3.0).unwrap() / (0.3 * 6f64.exp()) - 1.0).abs() < 1e-14);
    assert_eq!(trajectory_bound(0.0, 1e3, 1.0).unwrap(), 0.0);
    assert_eq!(rate_exponent(0.5).unwrap(), 1.0);
    assert!((rate_exponent(0.5f64.sqrt()).unwrap() - 1.0).abs() < 1e-15);
    assert!((rate_exponent(1.0).unwrap() - (1.25f64.sqrt() - 0.5)).abs() < 1e-15);
    assert!((rate_exponent(1e8).unwrap() * 1e16 - 1.0).abs() < 1e-12);
    assert!(rate_exponent(-1.0).is_err());
}

/// Random Gaussians and atoms in the plane.
fn any_mixture() -> impl Strategy<Value = Mixture> {
    let component = (
        0.01f64..1.0,
        prop::array::uniform2(-3.0f64..3.0),
        prop::array::uniform3(-1.5f64..1.5),
        any::<bool>(),
    );
    prop::collection::vec(component, 2..5).prop_map(|components| {
        let law = |mean: [f64; 2], [a, b, c]: [f64; 3], atom: bool| {
            let root = if atom { Mat::zeros(2, 2) } else { mat![[a, 0.0], [b, c]] };
            Arc::new(Gaussian::new(&mean, (&root * root.transpose()).as_ref()).unwrap()) as Law
        };
        Mixture::new(components.into_iter().map(|(w, mean, root, atom)| (w, law(mean, root, atom))).collect())
            .unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// With one token everything is a moment of the law itself; and an answer does not depend on which other
    /// lengths were asked for.
    #[test]
    fn one_token_is_the_law_and_company_does_not_matter(tokens in any_mixture(), direction in 0.0f64..6.3, size in 0.0f64..12.0) {
        let value = mat![[1.0, 0.5], [-0.3, 2.0]];
        let head = Softmax::new(Mat::identity(2, 2).as_ref(), value.as_ref()).unwrap();
        let query = [size * direction.cos(), size * direction.sin()];
        let prompt = FinitePrompt::exact(&head, &tokens).unwrap();
        let found = &prompt.at_query(&query, &lengths(&[1])).unwrap()[0];
        let allowed = found.tolerance;
        prop_assert!(allowed < 1e-6);
        let gap = linalg::difference(&tokens.mean().unwrap(), &tokens.tilted_mean(&query).unwrap());
        let bias = linalg::apply(value.as_ref(), &gap);
        let covariance = &value * tokens.covariance().unwrap() * value.transpose();
        let error = linalg::trace(covariance.as_ref()) + linalg::squared_norm(&bias);
        prop_assert!((found.errors.output - error).abs() <= (allowed + 1e-12) * error, "{} {}", found.errors.output, error);
        for i in 0..2 {
            prop_assert!((found.bias[i] - bias[i]).abs() <= (allowed + 1e-12) * error.sqrt());
            for j in 0..2 {
                prop_assert!((found.covariance[(i, j)] - covariance[(i, j)]).abs() <= (allowed + 1e-12) * error);
            }
        }
        let bend = &value * tokens.tilted_covariance(&query).unwrap();
        let gradient = linalg::squared_frobenius(bend.as_ref()) * linalg::squared_norm(&query);
        prop_assert!((found.errors.score_gradient - gradient).abs() <= (allowed + 1e-10) * gradient, "{} {}", found.errors.score_gradient, gradient);
        prop_assert!((found.participation - 1.0).abs() < 1e-12);

        // Errors below 10⁻⁶⁰ come from deviates that the engine leaves out.
        let alone = &prompt.at_query(&query, &lengths(&[50])).unwrap()[0];
        prop_assume!(alone.errors.output > 1e-60);
        let together = &prompt.at_query(&query, &lengths(&[50, 1_000_000_000_000])).unwrap()[0];
        let allowed = alone.tolerance.max(together.tolerance) + 1e-12;
        prop_assert!((alone.errors.output - together.errors.output).abs() <= allowed * alone.errors.output, "{:e} {:e} {allowed:e}", alone.errors.output, together.errors.output);
        prop_assert!((alone.errors.score_gradient - together.errors.score_gradient).abs() <= allowed * alone.errors.score_gradient);
        for i in 0..2 {
            prop_assert!((alone.bias[i] - together.bias[i]).abs() <= allowed * alone.errors.output.sqrt());
        }
    }

    /// Whatever numbers come in, an answer is finite and not negative, or an error.
    #[test]
    fn no_input_makes_a_finite_prompt_panic_or_answer_nonsense(
        entries in prop::collection::vec(prop::num::f64::ANY, 8),
        exponent in -200i32..200,
        tokens in 1u64..1_000_000_000_000,
    ) {
        for scale in [None, Some(10f64.powi(exponent)), Some(10f64.powi(exponent % 4))] {
            let entry = |k: usize| scale.map_or(entries[k], |scale| entries[k].sin() * scale);
            let weights = [entries[0].sin().abs() + 1e-12, 10f64.powi(exponent.min(0))];
            let Ok(head) = Softmax::new(mat![[entry(1)]].as_ref(), mat![[entry(2)]].as_ref()) else { continue };
            let Ok(wide) = Gaussian::new(&[entry(3)], mat![[entry(4).abs()]].as_ref()) else { continue };
            let Ok(atom) = esscher_core::measure::Empirical::atom(&[entry(5)]) else { continue };
            let parts: Vec<(f64, Law)> = vec![(weights[0], Arc::new(wide.clone())), (weights[1], Arc::new(atom))];
            let Ok(mixture) = Mixture::new(parts) else { continue };
            for law in [&wide as &dyn Measure, &mixture] {
                let Ok(prompt) = FinitePrompt::exact(&head, law) else { continue };
                let all = [length(1), length(2), length(tokens)];
                for found in prompt.at_query(&[entry(6)], &all).unwrap_or_default() {
                    let numbers = [found.errors.output, found.errors.score_gradient, found.errors.value_gradient, found.participation];
                    prop_assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{found:?}");
                    prop_assert!(found.bias[0].is_finite() && found.covariance[(0, 0)] >= 0.0, "{found:?}");
                }
                let _ = delta_method(&head, law, &[entry(6)]);
            }
        }
    }
}
