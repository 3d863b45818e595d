//! Memories that decay, are normalised or are corrected: all forms agree, and what their definitions promise holds.

use crate::common::check_all;
use esscher_zoo::Real;
use esscher_zoo::agreement::{Drawn, Gates, relative_difference};
use esscher_zoo::delta_rule::DeltaRule;
use esscher_zoo::mechanism::{Chunked, Definition, Given, Gradient, Mechanism, Pass, stream};
use esscher_zoo::metala::static_approximation::{keys_for_fixed_decay, log_decays_for};
use esscher_zoo::metala::{Augmentation, MetaLinearAttention};
use esscher_zoo::mlstm::{EPSILON, MatrixLstm};
use esscher_zoo::normalized_attention::{Normaliser, NormalizedAttention};
use esscher_zoo::ssd::StateSpaceDuality;

#[test]
fn state_space_duality_agrees() {
    check_all(&StateSpaceDuality { key_width: 3, value_width: 5 });
    check_all(&StateSpaceDuality { key_width: 9, value_width: 1 });
}

#[test]
fn normalized_attention_agrees() {
    for normaliser in [Normaliser::Exponential, Normaliser::Softplus, Normaliser::Sigmoid] {
        check_all(&NormalizedAttention { key_width: 3, value_width: 5, normaliser });
    }
    check_all(&NormalizedAttention { key_width: 9, value_width: 1, normaliser: Normaliser::Exponential });
}

#[test]
fn mlstm_agrees() {
    check_all(&MatrixLstm { key_width: 3, value_width: 5 });
    check_all(&MatrixLstm { key_width: 9, value_width: 1 });
}

#[test]
fn mlstm_depends_on_its_stabiliser_only_through_epsilon() {
    let mechanism = MatrixLstm { key_width: 3, value_width: 5 };
    let drawn = Drawn::new(&mechanism, 20, Gates::Moderate, 3);
    let mut state = Definition::<f64>::init(&mechanism);
    drawn.with(0, 12, |given| stream(&mechanism, given, &mut state));
    // The same memory in units of e^{m + 4}.
    let shift = 4.0;
    let mut shifted = state.clone();
    let last = state.numbers.len() - 1;
    shifted.numbers[..last].iter_mut().for_each(|entry| *entry *= f64::exp(-shift));
    shifted.numbers[last] += shift;
    let bound = EPSILON * f64::exp(shifted.numbers[last]);
    let (plain, moved) = drawn.with(12, 20, |given| {
        (stream(&mechanism, given, &mut state), stream(&mechanism, given, &mut shifted))
    });
    let change = plain.iter().zip(&moved).map(|(a, b)| ((a - b) / a).abs()).fold(0.0, f64::max);
    // The divisor is at least 1 in units of e^0, so ε moves it by at most ε e^m of itself; and it does move it.
    assert!(change <= bound, "{change:e} > {bound:e}");
    assert!(change > 1e-2 * bound, "{change:e}");
}

#[test]
fn the_derivative_of_a_tiny_normaliser_is_finite_in_single_precision() {
    for normaliser in [Normaliser::Exponential, Normaliser::Softplus, Normaliser::Sigmoid] {
        let mechanism = NormalizedAttention { key_width: 1, value_width: 1, normaliser };
        let given = Given { length: 1, tokens: &[&[1.0f32], &[1.0], &[1.0], &[-60.0]], parameters: &[] };
        let initial = Definition::<f32>::init(&mechanism);
        let (mut state, mut outputs) = (initial.clone(), [0.0]);
        let saved = mechanism.forward(&given, &mut state, &mut outputs);
        let mut gradient = Gradient::zeros(&given);
        let pass = Pass {
            given: &given,
            initial: &initial,
            outputs: &outputs,
            saved: &saved.0,
            output_slopes: &[1.0],
            state_slopes: &initial,
        };
        mechanism.backward(&pass, &mut gradient);
        // o = 1/η and η ≈ e^z, so do/dz = −o.
        assert!((outputs[0] / 60f32.exp() - 1.0).abs() < 1e-5, "{normaliser:?}: {outputs:?}");
        assert!((gradient.tokens[3][0] / outputs[0] + 1.0).abs() < 1e-5, "{normaliser:?}");
    }
}

#[test]
fn metala_agrees() {
    for augmentation in [Augmentation::SelfAttending, Augmentation::Off] {
        check_all(&MetaLinearAttention { key_width: 3, value_width: 5, augmentation });
        check_all(&MetaLinearAttention { key_width: 9, value_width: 1, augmentation });
    }
}

#[test]
fn metala_reproduces_any_row_of_softmax_attention() {
    // One channel with the query 1 reads Σ_s weight_s v_s; values are unit vectors, so the outputs are the weights.
    let length = 40;
    let mechanism =
        MetaLinearAttention { key_width: 1, value_width: length, augmentation: Augmentation::Off };
    let scores: Vec<f64> = (0..length).map(|s| 9.0 * (1.7 * s as f64).sin()).collect();
    let weights: Vec<f64> = scores.iter().map(|score| score.exp()).collect();
    let log_decays = log_decays_for(&weights).unwrap();
    let units: Vec<f64> = (0..length * length).map(|i| f64::from(i % (length + 1) == 0)).collect();
    let ones = vec![1.0; length];
    let given = Given { length, tokens: &[&ones, &units, &log_decays], parameters: &[] };
    let mut state = Definition::<f64>::init(&mechanism);
    let mut outputs = vec![0.0; length * length];
    mechanism.forward(&given, &mut state, &mut outputs);
    for (t, row) in outputs.chunks_exact(length).enumerate() {
        let sum: f64 = weights[..=t].iter().sum();
        for s in 0..length {
            let expected = if s <= t { weights[s] / sum } else { 0.0 };
            assert!((row[s] - expected).abs() <= 1e-12 * expected, "{t} {s}: {} {expected}", row[s]);
        }
    }
}

#[test]
fn a_fixed_decay_needs_unbounded_keys() {
    let largest = |length: usize| {
        let keys = keys_for_fixed_decay(&vec![1.0 / length as f64; length], 0.9f64.ln()).unwrap();
        // They do give the weights: Σ_s α^{t−s} k_s over the sequence is 1.
        let kept = keys.iter().fold(0.0, |sum, key| 0.9 * sum + key);
        assert!((kept - 1.0).abs() < 1e-12);
        keys.into_iter().fold(0.0, f64::max)
    };
    // Uniform weights over t tokens need a key of α^{1−t}/t; decays that depend on the token need none above 1.
    for length in [10, 100, 1000] {
        let expected = 0.9f64.powi(1 - length as i32) / length as f64;
        assert!((largest(length) / expected - 1.0).abs() < 1e-10);
    }
    assert!(largest(1000) > 1e40);
    let log_decays = log_decays_for(&[1e-3; 1000]).unwrap();
    assert!(log_decays.iter().all(|log_decay| (0.0..=1.0).contains(&-log_decay.exp_m1())));
}

#[test]
fn the_delta_rule_agrees() {
    check_all(&DeltaRule { key_width: 3, value_width: 5 });
    check_all(&DeltaRule { key_width: 9, value_width: 1 });
    check_all(&DeltaRule { key_width: 1, value_width: 2 });
}

#[test]
fn the_delta_rule_replaces_what_a_key_recalled() {
    // The same key three times, and another at a right angle between: β = 1 keeps the last value of each.
    let mechanism = DeltaRule { key_width: 2, value_width: 1 };
    let keys = [1e3, 0.0, 0.0, 1e3, 1e3, 0.0, 1e3, 0.0];
    let queries = [1e3, 0.0, 0.0, 1e3, 0.0, 1e3, 1e3, 0.0];
    let values = [5.0, 7.0, 6.0, -2.0];
    let given = Given { length: 4, tokens: &[&queries, &keys, &values, &[1.0; 4]], parameters: &[] };
    let mut state = Definition::<f64>::init(&mechanism);
    let mut outputs = [0.0; 4];
    mechanism.forward(&given, &mut state, &mut outputs);
    for (found, expected) in outputs.iter().zip([5.0, 7.0, 7.0, -2.0]) {
        assert!((found - expected).abs() < 1e-10, "{outputs:?}");
    }
}

/// Outputs of all forms and derivatives of their sum in the keys, for queries and keys times a factor.
fn delta_rule_scaled<T: Real>(factor: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mechanism = DeltaRule { key_width: 2, value_width: 1 };
    let numbers = |numbers: &[f64], factor: f64| -> Vec<T> {
        numbers.iter().map(|x| T::constant(factor * x)).collect()
    };
    let query = numbers(&[1.0, 0.5, -1.25, 1.0, 0.75, 0.5], factor);
    let key = numbers(&[1.0, -0.25, 0.5, 1.0, 1.5, 1.0], factor);
    let (value, beta) = (numbers(&[5.0, 7.0, -2.0], 1.0), numbers(&[1.0, 0.5, 0.75], 1.0));
    let given = Given { length: 3, tokens: &[&query, &key, &value, &beta], parameters: &[] };
    let initial = Definition::<T>::init(&mechanism);
    let (mut state, mut outputs) = (initial.clone(), vec![T::zero(); 3]);
    let saved = mechanism.forward(&given, &mut state, &mut outputs);
    let mut gradient = Gradient::zeros(&given);
    let pass = Pass {
        given: &given,
        initial: &initial,
        outputs: &outputs,
        saved: &saved.0,
        output_slopes: &[T::one(); 3],
        state_slopes: &initial,
    };
    mechanism.backward(&pass, &mut gradient);
    let recurrent = stream(&mechanism, &given, &mut initial.clone());
    let reference = Definition::<T>::reference(&mechanism, &given).outputs;
    let values = |numbers: &[T]| numbers.iter().map(|x| x.value()).collect::<Vec<f64>>();
    ([outputs, recurrent, reference].iter().map(|x| values(x)).collect(), values(&gradient.tokens[1]))
}

/// Powers of two, so that nothing is rounded but the lengths; ε is 10⁻¹⁸ of the squares or less.
#[test]
fn the_delta_rule_does_not_see_the_size_of_large_keys() {
    fn check<T: Real>(exponents: &[i32], allowed: f64) {
        let factor = |exponent: i32| 2f64.powi(exponent);
        let (expected, slopes) = delta_rule_scaled::<T>(factor(30));
        for &exponent in exponents {
            let (found, found_slopes) = delta_rule_scaled::<T>(factor(exponent));
            for form in &found {
                let difference = relative_difference(form, &expected[2], 0.0);
                assert!(difference <= allowed, "2^{exponent}: {found:?} instead of {expected:?}");
            }
            // Derivatives in the keys fall with their size, down to where no double has all digits.
            let found_slopes: Vec<f64> =
                found_slopes.iter().map(|slope| slope * factor(exponent - 30)).collect();
            let difference = relative_difference(&found_slopes, &slopes, 0.0);
            assert!(difference <= allowed, "2^{exponent}: {found_slopes:?} instead of {slopes:?}");
        }
    }
    // A few roundings; 2^67 is 1e20, 2^532 is 1e160.
    check::<f32>(&[50, 62, 65, 67, 100, 120], 1e-6);
    check::<f64>(&[500, 510, 513, 532, 1000, 1015], 1e-14);
    // Of small keys ε is all there is: k̂ = 1000 k, whether or not the squares are doubles.
    let tiny = |form: &[f64], size: f64| (form[0] / (5.0 * 0.875 * 1e6 * size * size) - 1.0).abs();
    for form in delta_rule_scaled::<f64>(1e-100).0 {
        assert!(tiny(&form, 1e-100) < 1e-14, "{form:?}");
    }
    for form in delta_rule_scaled::<f32>(1e-20).0 {
        // The output is a number of single precision that has lost digits at its lower end.
        assert!(tiny(&form, 1e-20) < 1e-5, "{form:?}");
    }
}

#[test]
fn a_small_decay_is_not_lost_behind_a_large_one() {
    // One huge step, then small ones: differences of sums from the chunk's beginning would be off by 2⁻¹⁰ in single precision.
    let mechanism = StateSpaceDuality { key_width: 1, value_width: 1 };
    let length = 60;
    let steps: Vec<f32> = (0..length).map(|t| if t == 0 { 2e4 } else { 1e-3 }).collect();
    let ones = vec![1f32; length];
    let given = Given { length, tokens: &[&ones, &ones, &ones, &steps], parameters: &[&[0.0], &[0.0]] };
    let mut state = Definition::<f32>::init(&mechanism);
    let mut outputs = vec![0f32; length];
    mechanism.forward(&given, &mut state, &mut outputs);
    for (t, &output) in outputs.iter().enumerate() {
        let expected: f64 = (0..=t).map(|r| f64::from(steps[r]) * (-1e-3 * (t - r) as f64).exp()).sum();
        assert!((f64::from(output) / expected - 1.0).abs() < 1e-6, "{t}: {output} {expected}");
    }
}

#[test]
fn long_sequences_stay_accurate_in_single_precision() {
    let (key_width, value_width) = (8, 8);
    let mechanisms: [&dyn Mechanism; 5] = [
        &StateSpaceDuality { key_width, value_width },
        &NormalizedAttention { key_width, value_width, normaliser: Normaliser::Exponential },
        &MatrixLstm { key_width, value_width },
        &MetaLinearAttention { key_width, value_width, augmentation: Augmentation::SelfAttending },
        &DeltaRule { key_width, value_width },
    ];
    let length = 3000;
    for mechanism in mechanisms {
        for gates in Gates::ALL {
            let drawn = Drawn::new(mechanism, length, gates, 1);
            let mut state = Definition::<f64>::init(mechanism);
            let expected = drawn.with(0, length, |given| stream(mechanism, given, &mut state));
            let mut rounded = Definition::<f32>::init(mechanism);
            let mut outputs = vec![0f32; length * value_width];
            drawn.with(0, length, |given| mechanism.forward(given, &mut rounded, &mut outputs));
            let outputs: Vec<f64> = outputs.into_iter().map(f64::from).collect();
            let difference = relative_difference(&outputs, &expected, 0.0);
            assert!(difference <= 2e-4, "{mechanism:?}, {gates:?} gates: {difference:e}");
        }
    }
}
