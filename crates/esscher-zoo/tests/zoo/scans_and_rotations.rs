//! Diagonal recurrences, time-invariant systems and rotations: every form agrees, and the identities that relate them hold.

use crate::common::check_all;
use esscher_core::numerics::Stream;
use esscher_zoo::Number;
use esscher_zoo::agreement::{Drawn, Gates, relative_difference};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::mechanism::{Definition, Given, Mechanism, stream};
use esscher_zoo::quasi_lstm::{Forget, QuasiLstm};
use esscher_zoo::rg_lru::RgLru;
use esscher_zoo::s4::S4;
use esscher_zoo::s6::S6;
use esscher_zoo::selective_rope::angle_network::{Activation, AngleNetwork, angles};
use esscher_zoo::selective_rope::equivalence::{largest_difference, turning_state};
use esscher_zoo::selective_rope::random_features::{Product, estimate, expectation};
use esscher_zoo::selective_rope::{Rotated, Rotation, Temperatures};
use esscher_zoo::swax::{LayerKind, WindowSchedule, layout};
use std::f64::consts::PI;

#[test]
fn the_quasi_lstm_agrees() {
    for forget in [Forget::Sigmoid, Forget::Reversed] {
        check_all(&QuasiLstm { width: 3, forget });
        check_all(&QuasiLstm { width: 1, forget });
    }
}

#[test]
fn s6_agrees() {
    check_all(&S6 { width: 3, expansion: 5 });
    check_all(&S6 { width: 1, expansion: 1 });
}

#[test]
fn s4_agrees() {
    check_all(&S4 { width: 3, pairs: 5 });
    check_all(&S4 { width: 1, pairs: 1 });
}

#[test]
fn the_rg_lru_agrees() {
    check_all(&RgLru { width: 3 });
    check_all(&RgLru { width: 1 });
}

/// σ(−x)^a = e^{−a softplus(x)}: with n = 1, a key of 1, a rate softplus(f) and inputs that undo the rate, S6 is the reversed quasi-LSTM.
#[test]
fn the_reversed_quasi_lstm_has_the_decay_of_s6() {
    let length = 40;
    let lstm = QuasiLstm { width: 3, forget: Forget::Reversed };
    let drawn = Drawn::new(&lstm, length, Gates::Moderate, 3);
    let exponent = drawn.parameters[0][0];
    let (x, forget, gate) = (&drawn.tokens[0], &drawn.tokens[1], &drawn.tokens[2]);
    let open = vec![800.0; length * 3];
    let expected = Definition::<f64>::reference(
        &lstm,
        &Given { length, tokens: &[x, forget, gate, &open], parameters: &[&[exponent]] },
    );
    let rate: Vec<f64> = forget.iter().map(|f| f.softplus()).collect();
    let input: Vec<f64> = x.iter().zip(gate).zip(&rate).map(|((x, i), r)| i.sigmoid() * x / r).collect();
    let ones = vec![1.0; length];
    let found = Definition::<f64>::reference(
        &S6 { width: 3, expansion: 1 },
        &Given {
            length,
            tokens: &[&input, &rate, &ones, &ones],
            parameters: &[&[exponent.ln(); 3], &[0.0; 3]],
        },
    );
    let difference = relative_difference(&found.outputs, &expected.outputs, 0.0);
    assert!(difference < 1e-13, "{difference:e}");
}

/// max(α, 0): with a negative exponent nothing is forgotten, and α has no slope.
#[test]
fn a_negative_exponent_keeps_everything() {
    use esscher_zoo::mechanism::{Chunked, Gradient, Pass, State};
    let lstm = QuasiLstm { width: 1, forget: Forget::Reversed };
    let rows: [&[f64]; 4] = [&[1.0, 2.0, 3.0], &[9.0, -9.0, 3.0], &[800.0; 3], &[800.0; 3]];
    let given = Given { length: 3, tokens: &rows, parameters: &[&[-0.5]] };
    let initial: State<f64> = lstm.init();
    let mut state = initial.clone();
    let mut outputs = [0.0; 3];
    let saved = lstm.forward(&given, &mut state, &mut outputs);
    assert_eq!(outputs, [1.0, 3.0, 6.0]);
    let mut gradient = Gradient::zeros(&given);
    let zeros = State { seen: 3, numbers: vec![0.0] };
    let pass = Pass {
        given: &given,
        initial: &initial,
        outputs: &outputs,
        saved: &saved.0,
        output_slopes: &[1.0; 3],
        state_slopes: &zeros,
    };
    lstm.backward(&pass, &mut gradient);
    assert_eq!(gradient.parameters, [[0.0]]);
    assert_eq!(gradient.tokens[1], [0.0; 3]);
}

/// A constant input through a unit integrator held for long: y → 2 Re Σ C (−1/A) u, whatever the step.
#[test]
fn zero_order_hold_keeps_the_steady_state_of_s4() {
    let s4 = S4 { width: 1, pairs: 2 };
    let length = 400;
    let (log_real, imaginary) = ([-0.7, 0.2], [0.4, 3.0]);
    let (readout_real, readout_imaginary) = ([0.3, -1.1], [0.8, 0.5]);
    let steady: f64 = (0..2)
        .map(|s| {
            let (a, b) = (-f64::exp(log_real[s]), imaginary[s]);
            // Re(−C/A).
            -2.0 * (readout_real[s] * a + readout_imaginary[s] * b) / (a * a + b * b)
        })
        .sum();
    for step in [0.3f64, 1.0] {
        let given = Given {
            length,
            tokens: &[&vec![1.0; length]],
            parameters: &[&[step.ln()], &log_real, &imaginary, &readout_real, &readout_imaginary, &[0.25]],
        };
        let mut state = Definition::<f64>::init(&s4);
        let outputs = stream(&s4, &given, &mut state);
        assert!((outputs[length - 1] - 0.25 - steady).abs() < 1e-12, "{outputs:?} {steady}");
    }
}

#[test]
fn the_rg_lru_starts_with_its_decays_between_nine_tenths_and_one() {
    let signature = RgLru { width: 50 }.signature();
    let esscher_zoo::mechanism::Initial::Values(lambda) = &signature.parameters[0].initial else {
        panic!("lambda starts at given values")
    };
    let decays: Vec<f64> = lambda.iter().map(|x| (-8.0 * x.softplus()).exp()).collect();
    assert!(decays.iter().all(|decay| (0.9..=0.999).contains(decay)), "{decays:?}");
    let mean = decays.iter().sum::<f64>() / 50.0;
    assert!((mean - 0.9495).abs() < 1e-9, "{mean}");
}

fn rotations() -> [Rotation; 5] {
    [
        Rotation::None,
        Rotation::Fixed { base: 10_000.0 },
        Rotation::Selective { temperatures: Temperatures::One },
        Rotation::Selective { temperatures: Temperatures::Rope { largest: 1.0, base: 500_000.0 } },
        Rotation::Selective { temperatures: Temperatures::Rfa { largest: 2.0 } },
    ]
}

#[test]
fn rotated_gated_linear_attention_agrees() {
    for rotation in rotations() {
        check_all(&Rotated { inner: GatedLinearAttention { key_width: 5, value_width: 3 }, rotation });
    }
    let rotation = rotations()[2];
    check_all(&Rotated { inner: GatedLinearAttention { key_width: 4, value_width: 1 }, rotation });
    check_all(&Rotated { inner: GatedLinearAttention { key_width: 1, value_width: 1 }, rotation });
}

/// Any mechanism with queries and keys can be rotated, not only attention.
#[test]
fn rotated_s6_agrees() {
    for rotation in [rotations()[1], rotations()[3]] {
        check_all(&Rotated { inner: S6 { width: 2, expansion: 5 }, rotation });
    }
}

#[test]
fn only_queries_and_keys_can_be_rotated() {
    assert!(Rotated::new(GatedLinearAttention { key_width: 4, value_width: 1 }, rotations()[1]).is_ok());
    let refused = Rotated::new(RgLru { width: 3 }, rotations()[1]);
    assert!(refused.is_err_and(|error| error.to_string().contains("query and key")));
}

/// Decays alike inside of each pair: turning the state is turning queries and keys. Decays of their own: it is not.
#[test]
fn a_state_that_turns_equals_turned_queries_and_keys_only_for_tied_decays() {
    let length = 40;
    for rotation in rotations() {
        let mechanism = Rotated { inner: GatedLinearAttention { key_width: 7, value_width: 2 }, rotation };
        let mut drawn = Drawn::new(&mechanism, length, Gates::Moderate, 11);
        let untied = drawn.with(0, length, |given| largest_difference(&mechanism, given));
        for row in drawn.tokens[3].chunks_exact_mut(7) {
            row.copy_within(0..3, 3);
        }
        let tied = drawn.with(0, length, |given| largest_difference(&mechanism, given));
        assert!(tied < 1e-12, "{rotation:?}: tied decays differ by {tied:e}");
        match rotation {
            Rotation::None => assert!(untied < 1e-12, "{untied:e}"),
            // Rotations by small temperatures differ less: these are the ones that turn all pairs.
            Rotation::Selective { temperatures: Temperatures::One } => {
                assert!(untied > 0.1, "untied decays differ by {untied:e} only");
            }
            _ => assert!(untied > 1e-3, "{rotation:?}: untied decays differ by {untied:e} only"),
        }
    }
}

/// One layer of rotations counts modulo two: a first token writes (1, 0), ones turn by π, and cos Φ_t is read.
#[test]
fn half_turns_compute_parity() {
    let mechanism = Rotated {
        inner: GatedLinearAttention { key_width: 2, value_width: 1 },
        rotation: Rotation::Selective { temperatures: Temperatures::One },
    };
    let length = 200;
    let mut draws = Stream::new(1, 0, 0);
    let bits: Vec<bool> = (0..length).map(|t| t > 0 && draws.bits() % 2 == 1).collect();
    let query: Vec<f64> = [2f64.sqrt(), 0.0].repeat(length);
    let mut key = vec![0.0; 2 * length];
    key[0] = 1.0;
    let (value, keep_all) = (vec![1.0; length], vec![0.0; 2 * length]);
    let angle: Vec<f64> = bits.iter().map(|&bit| if bit { PI } else { 0.0 }).collect();
    let given = Given { length, tokens: &[&query, &key, &value, &keep_all, &angle], parameters: &[] };
    let read = Definition::<f64>::reference(&mechanism, &given).outputs;
    let turned = turning_state(&mechanism, &given);
    let mut odd = false;
    for t in 0..length {
        odd ^= bits[t];
        let expected = if odd { -1.0 } else { 1.0 };
        assert!((read[t] - expected).abs() < 1e-10 && (turned[t] - expected).abs() < 1e-10, "token {t}");
    }
}

/// Rotary positions: scores depend on differences of positions only, provided that the channels of a pair decay alike.
#[test]
fn fixed_rotations_see_where_a_sequence_begins_only_with_untied_decays() {
    let mechanism =
        Rotated { inner: GatedLinearAttention { key_width: 6, value_width: 2 }, rotation: rotations()[1] };
    let shifted = |drawn: &Drawn| {
        drawn.with::<f64, _>(0, 30, |given| {
            let run = |seen: usize| {
                let mut state = Definition::<f64>::init(&mechanism);
                state.seen = seen;
                stream(&mechanism, given, &mut state)
            };
            relative_difference(&run(1000), &run(0), 0.0)
        })
    };
    let mut drawn = Drawn::new(&mechanism, 30, Gates::Moderate, 2);
    let untied = shifted(&drawn);
    drawn.tokens[3].chunks_exact_mut(6).for_each(|row| row.copy_within(0..3, 3));
    let tied = shifted(&drawn);
    assert!(tied < 1e-11 && untied > 1e-2, "tied {tied:e}, untied {untied:e}");
}

#[test]
fn temperatures_have_the_largest_that_was_asked_for() {
    let rope = Temperatures::Rope { largest: 3.0, base: 500_000.0 }.values(8);
    assert_eq!(rope[0], 3.0);
    assert!((rope[4] - 3.0 / 500_000f64.sqrt()).abs() < 1e-15);
    let rfa = Temperatures::Rfa { largest: 3.0 }.values(8);
    assert_eq!((rfa[0], rfa[7]), (0.0, 3.0));
    assert!(rfa.is_sorted());
    assert_eq!(Temperatures::Rfa { largest: 3.0 }.values(1), [3.0]);
}

/// Means of 200 000 features within five standard errors of e^{q·k}: a false alarm once in 1.7 million.
#[test]
fn random_rotations_average_to_the_exponential_kernel() {
    let (query, key) = ([0.3, -0.5, 0.7], [0.6, 0.1, 0.4]);
    let exponential: f64 = query.iter().zip(&key).map(|(q, k)| q * k).sum::<f64>().exp();
    assert!((expectation(&query, &key, Product::Conjugated, 1.0) - exponential).abs() < 1e-12);
    let mut stream = Stream::new(7, 0, 0);
    let found = estimate(&query, &key, Product::Conjugated, 1.0, 200_000, &mut stream);
    assert!((found.mean - exponential).abs() < 5.0 * found.standard_error, "{found:?}, {exponential}");
    assert!(found.standard_error < 5e-3, "{found:?}");
    // Without the conjugate the same features tend to e^{−q·k}.
    let plain = estimate(&query, &key, Product::Plain, 1.0, 200_000, &mut stream);
    assert!((plain.mean - 1.0 / exponential).abs() < 5.0 * plain.standard_error, "{plain:?}");
    assert!((plain.mean - exponential).abs() > 50.0 * plain.standard_error, "{plain:?}");
}

/// tan(ϑ/2) makes the product without the conjugate right; with it, only 1 does.
#[test]
fn the_best_deviation_of_features_is_one() {
    let (size, between) = (1.3f64, 1.1f64);
    let (query, key) = ([size, 0.0], [size * between.cos(), size * between.sin()]);
    let exponential = (size * size * between.cos()).exp();
    let error =
        |product, deviation| (expectation(&query, &key, product, deviation) / exponential - 1.0).abs();
    assert!(error(Product::Plain, (between / 2.0).tan()) < 1e-12);
    assert!(error(Product::Conjugated, (between / 2.0).tan()) > 0.1);
    assert!(error(Product::Conjugated, 1.0) < 1e-12);
    assert!(error(Product::Plain, 1.0) > 0.1);
}

#[test]
fn the_angle_network_is_causal_and_blind_to_the_size_of_tokens() {
    let mut stream = Stream::new(3, 0, 0);
    let mut normals = |count: usize| -> Vec<f64> { (0..count).map(|_| stream.normal()).collect() };
    let (down, up, convolution, bias, gate) =
        (normals(2 * 5), normals(3 * 2), normals(3 * 4), normals(3), normals(6));
    let tokens = normals(9 * 5);
    let network = AngleNetwork {
        width: 5,
        pairs: 3,
        down: &down,
        up: &up,
        convolution: &convolution,
        activation: Activation::Silu,
        bias: Some(&bias),
        gate: Some(&gate),
    };
    let all = angles(&network, &tokens);
    let first = angles(&network, &tokens[..6 * 5]);
    assert_eq!(first, all[..6 * 3]);
    let scaled: Vec<f64> = tokens.iter().map(|x| 7.0 * x).collect();
    assert!(relative_difference(&angles(&network, &scaled), &all, 0.0) < 1e-11);
    // Without maps what remains is the drift, and half of it behind a gate of argument zero.
    let (nothing, closed) = (vec![0.0; 6], vec![0.0; 6]);
    let still = AngleNetwork { up: &nothing, gate: Some(&closed), ..network };
    let drift: Vec<f64> = bias.iter().map(|b| 0.5 * b.exp()).collect();
    assert!(relative_difference(&angles(&still, &tokens), &drift.repeat(9), 0.0) < 1e-15);
}

#[test]
fn swax_takes_turns() {
    let kinds = layout(24);
    assert_eq!(kinds.iter().filter(|&&kind| kind == LayerKind::Mlstm).count(), 12);
    assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]));
}

/// 9 000 windows at probability 3/4: within five standard deviations, a false alarm once in 1.7 million seeds.
#[test]
fn swax_windows_have_their_frequencies() {
    let (steps, probability) = (10_000, 0.75);
    let schedule = WindowSchedule::new(steps, 128, 2048, probability, 5).expect("a schedule");
    assert_eq!(schedule.settled_from(), 9_000);
    let windows: Vec<usize> = (0..steps).map(|step| schedule.window_at(step)).collect();
    let short = windows[..9_000].iter().filter(|&&window| window == 128).count() as f64;
    let deviation = (9_000.0 * probability * (1.0 - probability)).sqrt();
    assert!((short - 9_000.0 * probability).abs() < 5.0 * deviation, "{short}");
    assert!(windows.iter().all(|window| [128, 2048].contains(window)));
    assert!(windows[9_000..].iter().all(|&window| window == 2048));
    assert_eq!(schedule.window_at(steps + 7), 2048);
    assert_eq!(schedule.window_in_tests(), 2048);
    // Neighbouring batches know nothing of each other.
    let both = windows[..9_000].windows(2).filter(|pair| pair == &[128, 128]).count() as f64 / 8_999.0;
    assert!((both - probability * probability).abs() < 0.03, "{both}");
}

#[test]
fn swax_refuses_windows_and_probabilities_that_make_no_sense() {
    for (short, long, probability) in [(0, 9, 0.5), (10, 9, 0.5), (1, 9, 1.5), (1, 9, f64::NAN)] {
        assert!(WindowSchedule::new(100, short, long, probability, 0).is_err());
    }
}
