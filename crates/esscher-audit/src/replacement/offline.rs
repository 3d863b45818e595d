//! Replacements that may look at the whole cache: the best that a kind of middle can do.
//!
//! The base tilt, the metric, the expected attention and the median value are those of this head on this text. The window
//! follows the rule of [`streaming`]; moments are those of the actual prefix. Clusters are found again whenever the middle
//! has grown by an eighth; between, its new tokens join the nearest.

use super::Replacement;
use super::streaming::{self, StreamingCache};
use crate::head::{Head, Readers};

/// The outputs of every query: tokens × dimension.
pub fn outputs(replacement: &Replacement, head: &Head<'_>) -> Vec<f32> {
    outputs_read_by(replacement, head, &Readers::of_head(head))
}

/// The same with the readers of somewhere else: what their fixed tilt costs, with all else offline.
pub fn outputs_read_by(replacement: &Replacement, head: &Head<'_>, readers: &Readers) -> Vec<f32> {
    streaming::run(StreamingCache::offline(replacement, readers, head.dimension), &[*head]).concat()
}
