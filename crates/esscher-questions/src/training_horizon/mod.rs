//! How long prompts must be for training to end within ε of the noise floor: L(ε), by dimension.

pub mod answer;
mod ask;
mod compute;
pub mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "training-horizon",
    title: "How long prompts must be",
    summary: "The smallest prompt length at which gradient flow ends within a given excess of the noise floor.",
    example: r#"kind = "training-horizon"
excesses = [5.0, 2.0, 1.0]
initial_fraction = 0.5

[task]
covariance = "isotropic"
dimensions = [100]
noise = 0.1
"#,
}
