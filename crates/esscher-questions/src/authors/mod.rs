//! The authors' own experiment: softmax and linear attention trained by SGD at each length, beside what could be had.

pub mod answer;
mod ask;
mod compute;
pub mod describe;

pub use ask::Ask;

use crate::question::Question;
use esscher_lab::specification::Keys;

pub(crate) const QUESTION: Question = Question {
    name: "authors",
    title: "The authors' experiment",
    summary: "Softmax and linear attention trained by SGD in five dimensions, beside optima and Bayes.",
    example: r#"kind = "authors"
lengths = [10, 40]
steps = 200
rate = 0.1
test_prompts = 1000
bayes_trials = 1000
"#,
    properties: Ask::properties,
    read: compute::read,
};
