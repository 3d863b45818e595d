//! What is asked: models, lengths, times of the flow, and the tasks it is trained on.

use crate::asking::{self, Covariates, InitialScale, Tasks};
use esscher_core::prompt::PromptLength;
use esscher_core::regression::Method;
use esscher_lab::specification::{Bounds, Kind, choices, integer, one_of, real, shared, table};
use esscher_lab::{keys, named};

named! {
    /// What is trained.
    pub enum Model {
        /// Softmax attention at finite length.
        Softmax = "softmax",
        /// Attention on the infinite prompt.
        Infinite = "infinite",
        /// Linear attention at finite length.
        Linear = "linear",
        /// Two softmax heads of opposite scores.
        OppositeHeads = "opposite-heads",
    }
}

keys! {
    /// Where does gradient flow take a layer?
    pub struct Ask {
        /// What is trained
        models: Vec<Model> = choices::<Model>().or(["softmax", "infinite"]),
        /// Prompt lengths
        lengths: Option<Vec<PromptLength>> = asking::lengths();
            if models.iter().any(|model| *model != Model::Infinite);
            else "the infinite prompt alone is asked for: it has no length",
        /// When the flow ends, if it does not stand still before
        end_time: f64 = real(Bounds::Between(1e-6, 1e15)).or(20.0),
        /// Times at which it is shown
        rows: u64 = integer(1..=10_000).or(40_u64),
        /// The scale of the initial layer
        initial: InitialScale = shared::<InitialScale>(),
        /// How the flow is integrated; by default stiff if it is longer than 1000
        method: Method = methods() => methods().or(if end_time > 1e3 { "stiff" } else { "explicit" }),
        /// Tolerance of its steps
        tolerance: f64 = real(Bounds::Between(1e-13, 1e-3)).or(1e-9),
        /// A flow stands still where its gradient is below this
        stationary: f64 = real(Bounds::Between(1e-14, 1e-3)).or(1e-10),
        /// The regression tasks
        task: Task = table::<Task>(),
        /// Covariates that are not Gaussian are drawn
        sampling: Option<Sampling> = table::<Sampling>();
            if task.covariates.iter().any(|covariates| *covariates != Covariates::Gaussian),
    }
}

keys! {
    /// Tasks and the laws of their covariates.
    pub struct Task {
        /// The tasks, one for each dimension
        tasks: Tasks = shared::<Tasks>(),
        /// The laws of the covariates
        covariates: Vec<Covariates> = choices::<Covariates>().or(["gaussian"]),
    }
}

keys! {
    /// How covariates are drawn.
    pub struct Sampling {
        /// Prompts of a set of draws
        prompts: u64 = integer(1..=1_000_000).or(128_u64),
        /// Independent sets; two at least, a single one has no standard error
        draws: u64 = integer(2..=1000).or(4_u64),
    }
}

fn methods() -> impl Kind<Value = Method, Default = &'static str> {
    one_of(&[("explicit", Method::Explicit), ("stiff", Method::Stiff)])
}
