//! Gradient-flow training on in-context linear regression: softmax at finite prompts beside infinite prompts and linear
//! attention.

pub mod answer;
mod ask;
mod compute;
pub mod describe;
mod flows;

pub use ask::{Ask, Model};

crate::question::question! {
    name: "training",
    title: "Training on in-context linear regression",
    summary: "Gradient flow of one layer on in-context linear regression, at finite and infinite prompts.",
    example: r#"kind = "training"
models = ["softmax", "infinite", "linear"]
lengths = [100, 1e4]
end_time = 20
rows = 40
initial_scale = 0.5

[task]
covariance = "toeplitz"
dimensions = [3]
correlation = 0.5
noise = 0.1
"#,
}
