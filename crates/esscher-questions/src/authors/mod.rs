//! The authors' own experiment: softmax and linear attention trained at each length, beside what could be had.

pub mod answer;
mod ask;
mod compute;
pub mod describe;

pub use ask::Ask;

crate::question::question! {
    name: "authors",
    title: "The authors' experiment",
    summary: "Softmax and linear attention trained in five dimensions, beside optima and Bayes.",
    example: r#"kind = "authors"
lengths = [10, 40]
steps = 200
rate = 0.1
test_prompts = 1000
bayes_trials = 1000
"#,
}
