//! One growing prompt: how its attention approaches the limit token by token, prompt by prompt.

pub mod answer;
mod ask;
mod compute;
pub mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "path",
    title: "One prompt that grows",
    summary: "The distance of attention from its limit along single prompts: every length is a prefix of the same tokens.",
    example: r#"kind = "path"
prompts = 3
sigmas = [1, 2]
lengths = { from = 10, to = 1e4, per_decade = 2 }
queries = [[1, 0], [0, 1]]

[[law]]
name = "normal tokens"
family = "gaussian"
dimension = 2

[[law]]
name = "random signs"
family = "rademacher"
dimension = 2
"#,
}
