//! What is asked: mechanisms, the task, the model and its training.

use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, integer, one_of, real, some_of};
use esscher_zoo::catalogue::names;
use esscher_zoo::tasks::recall::Filler;
use esscher_zoo::training::Schedule;

fn known() -> Vec<(&'static str, &'static str)> {
    names().map(|name| (name, name)).collect()
}

const FILLERS: [(&str, Filler); 2] = [("zero", Filler::Zero), ("uniform", Filler::Uniform)];

keys! {
    /// Which small models learn to recall?
    pub struct Ask {
        /// The mechanisms to train, by their names in the catalogue
        mechanisms: Vec<&'static str> = some_of(&known()),
        /// Number of tokens that there are; half of them are keys
        vocabulary: u64 = integer(4..=65_536).or(128_u64),
        /// Tokens of a sequence
        length: u64 = integer(4..=4096).or(64_u64),
        /// Pairs of a key and its value in a sequence
        pairs: u64 = integer(1..=1024).or(4_u64),
        /// What stands between the pairs and the questions
        filler: Filler = one_of(&FILLERS).or("zero"),
        /// Width of the model
        width: u64 = integer(1..=1024).or(64_u64),
        /// Heads of a layer
        heads: u64 = integer(1..=64).or(2_u64),
        /// Layers
        layers: u64 = integer(1..=32).or(2_u64),
        /// Tokens that the short convolution before a mechanism sees; 0 for none
        convolution: u64 = integer(0..=16).or(4_u64),
        /// Training steps
        steps: u64 = integer(1..=10_000_000).or(1500_u64),
        /// Sequences of a step
        batch: u64 = integer(1..=8192).or(Schedule::default().batch as u64),
        /// The largest learning rate
        learning_rate: f64 = real(Bounds::Between(0.0, 10.0)).or(Schedule::default().learning_rate),
        /// Steps until the learning rate is largest
        warm_up: u64 = integer(0..=1_000_000).or(Schedule::default().warm_up as u64),
        /// Weight decay
        weight_decay: f64 = real(Bounds::Between(0.0, 10.0)).or(Schedule::default().weight_decay),
        /// Training ends at this accuracy over a stretch of steps
        until_accuracy: f64 = real(Bounds::Between(0.0, 2.0)).or(0.995),
        /// Trainings of each mechanism, each with a seed of its own
        seeds: u64 = integer(1..=1000).or(1_u64),
        /// Examples to test on
        test_examples: u64 = integer(1..=1_000_000).or(1000_u64),
    }
}
