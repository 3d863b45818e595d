//! Concentration: how fast finite prompts approach their limit, by exact integrals and by simulation.

pub mod answer;
mod ask;
mod compute;
pub mod describe;
pub mod panels;
mod rates;
mod states;

pub use ask::{Ask, Engines, ExactAverage, Simulation};
pub use compute::log_covariances;

crate::question::question! {
    name: "concentration",
    title: "How fast finite prompts approach their limit",
    summary: "Mean squared errors of outputs and gradients against the prompt length, with slopes and fitted rates.",
    example: r#"kind = "concentration"
engine = "both"
quantities = ["output", "score-gradient", "value-gradient"]
sigmas = [1]
lengths = { from = 10, to = 1e6, per_decade = 2 }
fit_from = 100

[head]
score = 0.5

[[law]]
name = "normal tokens"
family = "gaussian"
dimension = 2

[[law]]
name = "random signs"
family = "rademacher"
dimension = 2

[queries]
family = "gaussian"
dimension = 2

[sampled]
trials = 200
queries = 16
longest = 10000
"#,
}
