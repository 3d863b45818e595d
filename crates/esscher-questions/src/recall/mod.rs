//! Recall: small models of several mechanisms learn to look up values by their keys, seed by seed.

pub mod answer;
mod ask;
mod compute;
mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "recall",
    title: "Recall by small models",
    summary: "Small models of any mechanisms, trained on multi-query associative recall: loss, accuracy, streaming, state.",
    example: r#"kind = "recall"
mechanisms = ["softmax", "gla"]
vocabulary = 32
length = 16
pairs = 2
width = 32
heads = 1
steps = 700
batch = 32
learning_rate = 0.01
warm_up = 20
test_examples = 500
"#,
}
