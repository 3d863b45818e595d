//! Diagnostics of mechanisms and comparisons of dynamical systems, each checked where the answer is known.

use esscher_core::numerics::Stream;
use esscher_zoo::agreement::{Drawn, Gates, relative_difference};
use esscher_zoo::diagnostics::{
    Neighbourhood, SAME_ROW, Verdict, attention_matrix, confusion, exponential_kernel, kernel_of_rows,
    kernel_spectrum, local_mass, query_rows, rank_condition, static_approximation, toy_figure,
};
use esscher_zoo::dynamical_system::{decay_coupling, expand, reversed_sigmoid, simulate, state_space_twin};
use esscher_zoo::feature_maps::{Elu, FeatureMap, Identity, Relu, Taylor};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::inline::{Inline, Kernel};
use esscher_zoo::linear_attention::{LinearAttention, Normaliser};
use esscher_zoo::mechanism::{Definition, Mechanism, Order};
use esscher_zoo::metala::{Augmentation, MetaLinearAttention};
use esscher_zoo::quasi_lstm::{Forget, QuasiLstm};
use esscher_zoo::s4::S4;
use esscher_zoo::softmax::{Reach, Softmax};

fn relu(width: usize, value_width: usize, order: Order) -> LinearAttention<Relu> {
    LinearAttention { map: Relu { width }, value_width, normaliser: Normaliser::Sum, order }
}

/// A matrix times the values is the output, and for softmax the rows are laws.
#[test]
fn rows_of_attention_answer_any_values() {
    let softmax = Softmax { key_width: 3, value_width: 2, reach: Reach::Causal };
    let gated = GatedLinearAttention { key_width: 3, value_width: 2 };
    let recurrent = QuasiLstm { width: 2, forget: Forget::Sigmoid };
    let time_invariant = S4 { width: 2, pairs: 2 };
    let mechanisms: [&dyn Mechanism; 4] = [&softmax, &gated, &recurrent, &time_invariant];
    for mechanism in mechanisms {
        let drawn = Drawn::new(mechanism, 17, Gates::Moderate, 1);
        drawn.with::<f64, _>(0, 17, |given| {
            let port = mechanism.dynamical_system().map_or(2, |system| system.input_port());
            let outputs = Definition::<f64>::reference(mechanism, given).outputs;
            for channel in 0..2 {
                let rows = attention_matrix(mechanism, given, channel).unwrap();
                let found: Vec<f64> = (0..17)
                    .map(|t| (0..17).map(|r| rows.row(t)[r] * given.row(port, r)[channel]).sum())
                    .collect();
                let expected: Vec<f64> = outputs.iter().skip(channel).step_by(2).copied().collect();
                assert!(relative_difference(&found, &expected, 0.0) < 1e-10, "{mechanism:?}");
                assert!((0..17).all(|t| rows.row(t)[t + 1..].iter().all(|&weight| weight == 0.0)));
            }
        });
    }
    let drawn = Drawn::new(&softmax, 17, Gates::Moderate, 1);
    drawn.with::<f64, _>(0, 17, |given| {
        let rows = attention_matrix(&softmax, given, 0).unwrap();
        assert!((0..17).all(|t| (rows.row(t).iter().sum::<f64>() - 1.0).abs() < 1e-12));
        // The last row is what the last query reads after all tokens.
        let last = query_rows(&softmax, given, given.row(0, 16), 1).unwrap();
        assert!(relative_difference(last.row(0), rows.row(16), 0.0) < 1e-12);
    });
}

#[test]
fn a_mechanism_that_is_not_linear_in_its_values_has_no_rows() {
    let mechanism =
        MetaLinearAttention { key_width: 3, value_width: 2, augmentation: Augmentation::SelfAttending };
    let drawn = Drawn::new(&mechanism, 9, Gates::Moderate, 1);
    let refused = drawn.with::<f64, _>(0, 9, |given| attention_matrix(&mechanism, given, 0));
    assert!(refused.unwrap_err().to_string().contains("not linear"));
}

#[test]
fn collinear_queries_are_confused_by_normalised_relu_attention_but_not_by_softmax_and_inline() {
    let figure = toy_figure();
    let softmax = Softmax { key_width: 2, value_width: 1, reach: Reach::Whole };
    let rows = figure.rows(&softmax, &[]).unwrap();
    let told_apart = confusion(&rows, &figure.queries, 2, SAME_ROW).unwrap();
    assert_eq!((told_apart.pairs, told_apart.confused), (6, 0));
    // The weights that the figure prints, to its two digits: on the first key for softmax and InLine, all for ReLU.
    let near = |found: f64, printed: f64| (found - printed).abs() < 0.01;
    assert!(near(rows.row(0)[0], 0.31) && near(rows.row(3)[0], 0.44), "{rows:?}");
    let rows = figure.rows(&relu(2, 1, Order::Whole), &[]).unwrap();
    let confused = confusion(&rows, &figure.queries, 2, SAME_ROW).unwrap();
    assert_eq!((confused.pairs, confused.confused), (6, 6));
    assert!((0..4).all(|key| near(rows.row(0)[key], [0.32, 0.23, 0.25, 0.19][key])), "{rows:?}");
    let inline = Inline { kernel: Kernel::Identity, key_width: 2, value_width: 1, order: Order::Whole };
    let rows = figure.rows(&inline, &[]).unwrap();
    assert_eq!(confusion(&rows, &figure.queries, 2, SAME_ROW).unwrap().confused, 0);
    assert!((0..4).all(|query| near(rows.row(query)[0], [0.31, 0.35, 0.39, 0.42][query])), "{rows:?}");
    assert!(rank_condition(&figure.keys, 2).unwrap().holds());
}

#[test]
fn keys_in_a_hyperplane_fail_the_rank_condition_and_softmax_confuses_queries_across_it() {
    // All keys have first coordinate 1: queries that differ there only get the same rows.
    let keys = [1.0, 0.3, 1.0, -0.8, 1.0, 1.7];
    let condition = rank_condition(&keys, 2).unwrap();
    assert_eq!((condition.keys, condition.keys_with_ones, condition.holds()), (2, 2, false));
    let figure =
        esscher_zoo::diagnostics::ToyFigure { keys: keys.to_vec(), queries: vec![0.0, 0.5, 9.0, 0.5] };
    let rows = figure.rows(&Softmax { key_width: 2, value_width: 1, reach: Reach::Whole }, &[]).unwrap();
    assert_eq!(confusion(&rows, &figure.queries, 2, SAME_ROW).unwrap().confused, 1);
}

/// Random positive queries in dimension 4, some pairs on a common ray.
#[test]
fn confusion_counts_the_pairs_on_common_rays() {
    let mut stream = Stream::new(8, 0, 0);
    let mut queries: Vec<f64> = (0..24 * 4).map(|_| stream.normal()).collect();
    for ray in 0..5 {
        let twice: Vec<f64> = queries[ray * 4..ray * 4 + 4].iter().map(|x| 2.0 * x).collect();
        queries.extend(twice);
    }
    let linear = relu(4, 1, Order::Whole);
    let softmax = Softmax { key_width: 4, value_width: 1, reach: Reach::Whole };
    let count = |mechanism: &dyn Mechanism| {
        let drawn = Drawn::new(mechanism, 12, Gates::Moderate, 2);
        let rows = drawn.with::<f64, _>(0, 12, |given| query_rows(mechanism, given, &queries, 0)).unwrap();
        confusion(&rows, &queries, 4, SAME_ROW).unwrap()
    };
    let (linear, softmax) = (count(&linear), count(&softmax));
    assert_eq!(linear.pairs, 29 * 28 / 2);
    assert!(linear.confused >= 5 && softmax.confused == 0, "{linear:?} {softmax:?}");
}

#[test]
fn local_mass_of_equal_weights_is_chance_and_of_a_short_memory_is_more() {
    let softmax = Softmax { key_width: 3, value_width: 1, reach: Reach::Causal };
    let mut drawn = Drawn::new(&softmax, 40, Gates::Moderate, 3);
    drawn.tokens[0].fill(0.0);
    let line = Neighbourhood::Line { radius: 3 };
    let equal =
        drawn.with::<f64, _>(0, 40, |given| local_mass(&attention_matrix(&softmax, given, 0).unwrap(), line));
    let equal = equal.unwrap();
    assert!((equal.share - equal.chance).abs() < 1e-12);
    let memory = QuasiLstm { width: 1, forget: Forget::Sigmoid };
    let drawn = Drawn::new(&memory, 40, Gates::Moderate, 3);
    let short =
        drawn.with::<f64, _>(0, 40, |given| local_mass(&attention_matrix(&memory, given, 0).unwrap(), line));
    let short = short.unwrap();
    assert!(short.share > 0.9 && short.chance < 0.4, "{short:?}");
    let grid = Neighbourhood::Grid { columns: 14, radius: 1 };
    assert_eq!((0..196).filter(|&other| grid.near(30, other)).count(), 9);
    assert_eq!((0..196).filter(|&other| grid.near(0, other)).count(), 4);
}

#[test]
fn dynamic_decay_gives_softmax_rows_and_bounded_keys_with_fixed_decay_do_not() {
    let softmax = Softmax { key_width: 3, value_width: 1, reach: Reach::Causal };
    let drawn = Drawn::new(&softmax, 60, Gates::Moderate, 4);
    let rows = drawn.with::<f64, _>(0, 60, |given| attention_matrix(&softmax, given, 0)).unwrap();
    let found = static_approximation(&rows, &[0.5, 0.9, 1.0], 1.0).unwrap();
    assert!(found.dynamic_error < 1e-12);
    let [half, slow, none] = found.fixed_errors[..] else { panic!("three decays") };
    assert!(half.1 > 0.5 && slow.1 > 0.01 && slow.1 < half.1 && none.1 < 1e-12, "{found:?}");
}

#[test]
fn kernels_of_feature_maps_are_positive_definite_and_rows_are_no_kernels() {
    let mut stream = Stream::new(6, 0, 0);
    let points: Vec<f64> = (0..20 * 3).map(|_| stream.normal()).collect();
    let of = |spectrum: esscher_zoo::diagnostics::KernelSpectrum| spectrum.verdict;
    assert_eq!(of(kernel_spectrum(exponential_kernel, &points, 3).unwrap()), Verdict::PositiveDefinite);
    fn kernel(map: &impl FeatureMap, x: &[f64], y: &[f64]) -> f64 {
        let (x, y) = (map.apply_rows(x, &[]), map.apply_rows(y, &[]));
        x.iter().zip(&y).map(|(a, b)| a * b).sum()
    }
    let (elu, taylor) = (Elu { width: 3 }, Taylor::new(3, 2));
    assert_eq!(
        of(kernel_spectrum(|x, y| kernel(&elu, x, y), &points, 3).unwrap()),
        Verdict::PositiveDefinite
    );
    assert_eq!(
        of(kernel_spectrum(|x, y| kernel(&taylor, x, y), &points, 3).unwrap()),
        Verdict::PositiveDefinite
    );
    let distance = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    assert_eq!(of(kernel_spectrum(distance, &points, 3).unwrap()), Verdict::Indefinite);
    let softmax = Softmax { key_width: 3, value_width: 1, reach: Reach::Whole };
    let drawn = Drawn::new(&softmax, 20, Gates::Moderate, 4);
    let rows = drawn.with::<f64, _>(0, 20, |given| attention_matrix(&softmax, given, 0)).unwrap();
    assert_eq!(of(kernel_of_rows(&rows).unwrap()), Verdict::NotSymmetric);
}

#[test]
fn more_states_never_express_less() {
    let gated = GatedLinearAttention { key_width: 3, value_width: 2 };
    let time_invariant = S4 { width: 2, pairs: 2 };
    let mechanisms: [&dyn Mechanism; 2] = [&gated, &time_invariant];
    for mechanism in mechanisms {
        let system = mechanism.dynamical_system().unwrap();
        let drawn = Drawn::new(mechanism, 11, Gates::Moderate, 7);
        drawn.with::<f64, _>(0, 11, |given| {
            let steps = system.realise(given);
            let inputs = given.tokens[system.input_port()];
            let expected = simulate(&steps, system.states(), inputs);
            for wanted in [system.states(), system.states() + 1, system.states() + 9] {
                let found = simulate(&expand(&steps, system.states(), wanted).unwrap(), wanted, inputs);
                assert_eq!(found, expected);
            }
            assert!(expand(&steps, system.states(), system.states() - 1).is_err());
        });
    }
}

#[test]
fn attention_and_s6_cannot_keep_and_write_at_once_and_a_quasi_lstm_can() {
    let gates: Vec<f64> = (-40..=40).map(|z| f64::from(z) / 4.0).collect();
    let table = decay_coupling(&gates);
    let columns = |name: &str| {
        let column = table.mechanisms.iter().find(|one| one.mechanism == name).unwrap();
        assert_eq!(column.transition.len(), gates.len());
        column.transition.iter().copied().zip(column.input.iter().copied()).collect::<Vec<_>>()
    };
    for (kept, written) in columns("attention") {
        assert!((kept + written - 1.0).abs() < 1e-12);
    }
    for (kept, written) in columns("normalized attention") {
        assert!((kept - written).abs() <= 1e-12 * kept);
    }
    for (kept, written) in columns("S6") {
        assert!((kept - (-written).exp()).abs() < 1e-12);
    }
    // The most faithful memory of the table: S6 writes nothing, the quasi-LSTM half of its input.
    let most_kept = |name| columns(name).into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert!(most_kept("S6").0 > 0.9999 && most_kept("S6").1 < 1e-4);
    for name in ["quasi-LSTM", "reversed quasi-LSTM"] {
        assert!(most_kept(name).0 > 0.9999);
        assert!(columns(name).iter().all(|(_, written)| *written == 0.5));
    }
    let (straight, reversed) = (columns("quasi-LSTM"), columns("reversed quasi-LSTM"));
    assert!(straight.iter().zip(reversed.iter().rev()).all(|(a, b)| (a.0 - b.0).abs() < 1e-12));
}

#[test]
fn linear_attention_is_state_space_duality_with_the_decay_of_its_normaliser() {
    for (seed, fixed_query) in [(1, true), (2, false)] {
        for normaliser in [Normaliser::Sum, Normaliser::Count, Normaliser::None] {
            let elu =
                LinearAttention { map: Elu { width: 3 }, value_width: 2, normaliser, order: Order::Causal };
            let mut drawn = Drawn::new(&elu, 31, Gates::Moderate, seed);
            if fixed_query {
                drawn.tokens[0] = drawn.tokens[0][..3].repeat(31);
            }
            drawn.with::<f64, _>(0, 31, |given| {
                let twin = state_space_twin(&elu, given).unwrap();
                let expected = Definition::<f64>::reference(&elu, given).outputs;
                assert!(relative_difference(&twin.outputs().unwrap(), &expected, 0.0) < 1e-10);
                let increasing =
                    normaliser == Normaliser::Count || (normaliser == Normaliser::Sum && fixed_query);
                assert_eq!(twin.corrected, !increasing);
            });
        }
    }
    let identity = LinearAttention {
        map: Identity { width: 3 },
        value_width: 2,
        normaliser: Normaliser::Count,
        order: Order::Causal,
    };
    let drawn = Drawn::new(&identity, 31, Gates::Moderate, 3);
    drawn.with::<f64, _>(0, 31, |given| {
        let twin = state_space_twin(&identity, given).unwrap();
        let expected = Definition::<f64>::reference(&identity, given).outputs;
        assert!(relative_difference(&twin.outputs().unwrap(), &expected, 0.0) < 1e-10);
    });
}

#[test]
fn the_decay_of_s6_is_a_reversed_sigmoid() {
    let arguments: Vec<f64> = (-60..=60).map(|x| f64::from(x) / 2.0).collect();
    for exponent in [0.0, 0.3, 1.0, 7.5] {
        let table = reversed_sigmoid(exponent, &arguments);
        for (a, b) in table.decay.iter().zip(&table.reversed_sigmoid) {
            // Both are exponentials of numbers up to 225: relative rounding of so many units.
            assert!((a - b).abs() <= 500.0 * f64::EPSILON * a.abs());
        }
    }
}
