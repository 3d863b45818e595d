//! The large-prompt question, asked of any mechanisms: where outputs go as i.i.d. prompts grow, and how far they are at every length.

pub mod answer;
mod ask;
mod compute;
mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "large-prompts",
    title: "Mechanisms on large prompts",
    summary: "Any mechanisms on growing prompts of i.i.d. tokens: limit, distance to softmax's limit, error at every length.",
    example: r#"kind = "large-prompts"
mechanisms = ["softmax", "inline", "linear-elu", "luna", "gla", "delta-rule"]
query = [1, 0.5]
lengths = { from = 10, to = 1e4, per_decade = 2 }
prompts = 100

[tokens]
family = "gaussian"
dimension = 2
"#,
}
