//! How long a prompt must be for attention to come as close to its infinite-prompt limit as a tolerance asks.

pub mod answer;
mod ask;
mod compute;
mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "horizon",
    title: "How long must a prompt be?",
    summary: "The smallest prompt length whose root-mean-square error is at most a tolerance, if the error falls with the length.",
    example: r#"kind = "horizon"
tolerance = 0.01
query = [0.5]

[tokens]
family = "gaussian"
dimension = 1
"#,
}
