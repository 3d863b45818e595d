//! Memories that decay, are normalised or are corrected: all forms agree, and what their definitions promise holds.

mod common;

use common::check_all;
use esscher_zoo::agreement::{Drawn, Gates};
use esscher_zoo::mechanism::{Chunked, Definition, Given, Gradient, stream};
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
        mechanism.backward(&given, &initial, &outputs, &saved, &[1.0], &initial, &mut gradient);
        // o = 1/η and η ≈ e^z, so do/dz = −o.
        assert!((outputs[0] / 60f32.exp() - 1.0).abs() < 1e-5, "{normaliser:?}: {outputs:?}");
        assert!((gradient.tokens[3][0] / outputs[0] + 1.0).abs() < 1e-5, "{normaliser:?}");
    }
}
