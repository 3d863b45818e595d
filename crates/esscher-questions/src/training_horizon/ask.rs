//! What is asked: tasks, the scale to start from, and the excess risks to reach.

use crate::asking::{InitialScale, Tasks};
use esscher_lab::keys;
use esscher_lab::specification::{Bounds, Kind, integers, reals, shared, table};

keys! {
    /// How long must prompts be for training to reach the noise floor?
    pub struct Ask {
        /// The excess risks ε over the noise floor, each run once
        excesses: Vec<f64> = reals(Bounds::Between(1e-9, 1e6), 1..=50),
        /// The scale of the initial layer
        initial: InitialScale = shared::<InitialScale>(),
        /// Multiples of L(ε) at which training is followed too
        beyond: Vec<u64> = integers(2..=1_000_000, 0..=10).or([]),
        /// The regression tasks
        task: Tasks = table::<Tasks>(),
    }
}
