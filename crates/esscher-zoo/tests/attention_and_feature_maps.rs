//! Softmax attention, linear attention with its feature maps, LUNA and InLine agree in all of their forms.

mod common;

use common::check_all;
use esscher_zoo::agreement::{Drawn, Gates, check_agreement};
use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::mechanism::{Chunked, Definition, Given, Gradient, Mechanism};
use esscher_zoo::softmax::{Reach, Softmax};
use std::time::Instant;

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

/// Not a check: prints nanoseconds per token. `cargo test --release -- --ignored --nocapture speed`
#[test]
#[ignore = "a measurement"]
fn speed() {
    let length = 4096;
    let softmax = |reach| Softmax { key_width: 64, value_width: 64, reach };
    let mechanisms: Vec<Box<dyn Mechanism>> = vec![
        Box::new(softmax(Reach::Causal)),
        Box::new(softmax(Reach::Whole)),
        Box::new(softmax(Reach::Window(256))),
        Box::new(GatedLinearAttention { key_width: 64, value_width: 64 }),
    ];
    for mechanism in &mechanisms {
        let mechanism = mechanism.as_ref();
        let drawn = Drawn::new(mechanism, length, Gates::Moderate, 0);
        drawn.with::<f32, _>(0, length, |given| {
            let initial = Definition::<f32>::init(mechanism);
            let mut outputs = vec![0.0; length * mechanism.signature().output];
            let slopes = vec![1.0; outputs.len()];
            let mut best = [f64::INFINITY; 2];
            for _ in 0..3 {
                let mut state = initial.clone();
                let start = Instant::now();
                let saved = mechanism.forward(given, &mut state, &mut outputs);
                best[0] = best[0].min(start.elapsed().as_secs_f64());
                let start = Instant::now();
                let mut gradient = Gradient::zeros(given);
                mechanism.backward(given, &initial, &outputs, &saved, &slopes, &state, &mut gradient);
                best[1] = best[1].min(start.elapsed().as_secs_f64());
            }
            let each = best.map(|seconds| 1e9 * seconds / length as f64);
            println!("{mechanism:?}: {:.0} ns forward, {:.0} ns backward", each[0], each[1]);
        });
    }
}
