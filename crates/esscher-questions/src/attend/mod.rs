//! The output of a head at given queries, beside its Gaussian limit and the errors of finite prompts.

pub mod answer;
mod ask;
mod compute;
mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "attend",
    title: "What does a head read?",
    summary: "The output of a head at given queries, its Gaussian limit, and how far finite prompts are from it.",
    example: r#"kind = "attend"
query = [0.5, -1.0]
length = [100, 1e12]

[tokens]
family = "gaussian"
dimension = 2
"#,
}
