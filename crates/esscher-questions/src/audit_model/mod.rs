//! The audit of a model: what assignments of replacements to heads do to its predictions on a text that calibrated nothing.

pub mod answer;
mod ask;
pub(crate) mod compute;
mod describe;
mod figures;
pub(crate) mod headline;
mod written;

pub(crate) use ask::written;
pub use ask::{Ask, AssignmentAsk};
pub(crate) use describe::{REPLACED, WRITTEN};

use crate::question::Question;
use esscher_lab::specification::Keys;

pub(crate) const QUESTION: Question = Question {
    name: "audit-model",
    title: "The audit of a model with replaced heads",
    summary: "A real checkpoint with replaced heads on held-out text: perplexity, needles, and the bytes of its cache.",
    example: r#"kind = "audit-model"
model = "tiny-random"
text = "bible"
test = "jargon"
length = 96
texts = 3
window = 16

[[assignments]]
name = "all dropped"
everywhere = "dropped"

[[assignments]]
name = "first layer"
running = "offline"
rows = ["tilted-gaussian mean mean mean", "exact exact exact exact"]
"#,
    properties: Ask::properties,
    read: compute::ModelPlan::read,
};
