//! Times training steps of a small model: `training_step <softmax|gla> <file for the first weights>`; see bench/zoo_step_against_pytorch.
//!
//! Two layers of width 64 with two heads and a gated map of 128, vocabulary 512, 32 sequences of 128 tokens that are all
//! labelled. Prints the losses of the first steps, the CPU seconds of a step and where they go.

use esscher_zoo::gated_linear_attention::GatedLinearAttention;
use esscher_zoo::softmax::{Reach, Softmax};
use esscher_zoo::tasks::{Example, Segment, Task};
use esscher_zoo::training::{
    Continue, LayerSpecification, Mlp, Model, ModelSpecification, Normalisation, Options, Schedule,
    train_from,
};
use std::sync::Arc;
use std::time::Instant;

const VOCABULARY: usize = 512;
const LENGTH: usize = 128;
const BATCH: usize = 32;
const STEPS: usize = 24;

/// Sequences from a formula that the PyTorch script knows too; the label is the next token.
struct Fixed;

impl Task for Fixed {
    fn vocabulary(&self) -> usize {
        VOCABULARY
    }

    fn length(&self) -> usize {
        LENGTH
    }

    fn example(&self, _seed: u64, _segment: Segment, index: u32) -> Example {
        let sequence = u64::from(index) % BATCH as u64;
        let token = |t: u64| ((7 * t * t + 31 * sequence * t + 3 * sequence) % VOCABULARY as u64) as u32;
        Example {
            tokens: (0..LENGTH as u64).map(token).collect(),
            labels: (1..=LENGTH as u64).map(|t| Some(token(t))).collect(),
        }
    }
}

/// Seconds that all threads of this process have run, where the system tells; else seconds since the start.
fn seconds(start: Instant) -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let run: f64 = threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .sum();
    if run > 0.0 { run * 1e-9 } else { start.elapsed().as_secs_f64() }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut layer = match arguments.next().as_deref() {
        Some("softmax") => {
            LayerSpecification::plain(Softmax { key_width: 32, value_width: 32, reach: Reach::Causal })
        }
        Some("gla") => LayerSpecification {
            norm: Some(Normalisation::RootMeanSquare),
            gate: true,
            ..LayerSpecification::plain(GatedLinearAttention { key_width: 32, value_width: 32 })
        },
        _ => return Err("expected softmax or gla".into()),
    };
    layer.mlp = Some(Mlp { hidden: 128 });
    let specification = ModelSpecification {
        vocabulary: VOCABULARY,
        width: 64,
        heads: 2,
        positions: None,
        layers: vec![layer; 2],
    };
    let model = Model::new(specification, 1)?;
    if let Some(path) = arguments.next() {
        std::fs::write(path, model.to_bytes()?)?;
    }
    let schedule = Schedule {
        steps: 1_000_000_000,
        batch: BATCH,
        examples: Some(BATCH as u32),
        learning_rate: 1e-3,
        warm_up: 1,
        ..Schedule::default()
    };
    // Once without the profile, whose clocks cost a little, and once with it.
    let start = Instant::now();
    let mut times = Vec::new();
    let mut last = seconds(start);
    train_from(model.clone(), &Fixed, &schedule, 1, &Options::default(), &mut |progress| {
        if progress.step < 4 {
            println!("loss{} {:.6}", progress.step, progress.loss);
        }
        let now = seconds(start);
        times.push(now - last);
        last = now;
        if progress.step + 1 < STEPS { Continue::Yes } else { Continue::No }
    })?;
    println!("seconds {:.6}", times.into_iter().fold(f64::INFINITY, f64::min));
    let profile = esscher_zoo::training::tape::Profile::default();
    let options = Options { profile: Some(Arc::clone(&profile)), ..Options::default() };
    train_from(model, &Fixed, &schedule, 1, &options, &mut |progress| {
        if progress.step + 1 < STEPS { Continue::Yes } else { Continue::No }
    })?;
    let profile = profile.lock().map_err(|_| "the profile was lost")?;
    for (name, spent) in profile.iter() {
        let milliseconds = |time: std::time::Duration| 1e3 * time.as_secs_f64() / STEPS as f64;
        println!(
            "part {name:<16} forward {:7.3} ms, backward {:7.3} ms",
            milliseconds(spent.forward),
            milliseconds(spent.backward)
        );
    }
    Ok(())
}
