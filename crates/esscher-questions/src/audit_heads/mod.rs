//! The audit of heads: the portrait of every head of a checkpoint, and how far every replacement is from its outputs, text by text.

pub mod answer;
mod ask;
pub(crate) mod compute;
mod describe;
mod describe_candidates;
pub(crate) mod evidence;
mod verdict_map;

pub use ask::Ask;
pub(crate) use ask::{CANDIDATES, TOLERANCES};
pub(crate) use verdict_map::VERDICTS;

use crate::question::Question;
use esscher_lab::specification::Keys;

pub(crate) const QUESTION: Question = Question {
    name: "audit-heads",
    title: "The audit of a checkpoint's heads",
    summary: "Every head of a real checkpoint: score variance, effective tokens, sinks, and the error of every replacement.",
    example: r#"kind = "audit-heads"
model = "tiny-random"
text = "bible"
lengths = [96]
texts = 3
window = 16
candidates = ["dropped", "mean", "tilted-gaussian"]
"#,
    properties: Ask::properties,
    read: compute::HeadsPlan::read,
};
