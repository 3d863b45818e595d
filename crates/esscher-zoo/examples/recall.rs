//! Trains a small model with any mechanism on recall: `recall <mechanism> [steps] [learning rate] [seed]`.
//!
//! Length 64, 4 pairs, vocabulary 128; width 64, two layers with a convolution of four taps before the projections.

use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::mechanism::Mechanism;
use esscher_zoo::softmax::Softmax;
use esscher_zoo::tasks::recall::{Filler, Recall};
use esscher_zoo::training::*;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let get = |i: usize, d: &str| arguments.get(i).cloned().unwrap_or(d.to_string());
    let (heads, w) = (2, 32);
    let mechanism: Arc<dyn Mechanism> = match get(1, "gla").as_str() {
        "gla" => Arc::new(GatedLinearAttention { key_width: w, value_width: w }),
        "softmax" => Arc::new(Softmax { key_width: w, value_width: w, reach: esscher_zoo::softmax::Reach::Causal }),
        _ => panic!(),
    };
    let steps = get(2, "1000").parse()?;
    let vocabulary = get(5, "128").parse()?;
    let layers = get(6, "2").parse()?;
    let schedule = Schedule { steps, batch: get(7, "64").parse()?, learning_rate: get(3, "3e-3").parse()?, ..Schedule::default() };
    let seed = get(4, "1").parse()?;
    let recurrent = get(1, "gla") != "softmax";
    let layer = LayerSpecification { mechanism, convolution: Some(4), norm: recurrent.then_some(Normalisation::RootMeanSquare), gate: recurrent, mlp: None };
    let specification = ModelSpecification { vocabulary, width: 64, heads, positions: None, layers: vec![layer; layers] };
    let task = Recall::new(vocabulary, 64, 4, Filler::Zero)?;
    let start = Instant::now();
    let trained = train(specification, &task, &schedule, seed, &mut |p| {
        if p.step % 100 == 0 { println!("{} loss {:.4} accuracy {:.3} norm {:.3} {:.1}s", p.step, p.loss, p.accuracy, p.gradient_norm, start.elapsed().as_secs_f64()); }
        Continue::Yes
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let test = evaluate(&trained.model, &task, seed, 1000)?;
    println!("{:?} {seconds:.1} s, loss {:.3} -> {:.3}; test {test:?}", trained.ended, trained.first_loss, trained.last_loss);
    Ok(())
}
