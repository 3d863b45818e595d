//! The answers of a candidate to all queries of the heads that share keys, on a whole text.

use crate::assignment::Running;
use crate::candidate::{Candidate, Frame};
use crate::head::{Head, Readers};
use crate::{eviction, model, replacement};

/// The outputs of every head of a group, a table of tokens × dimension for each.
///
/// Eviction is always streaming: what is gone stays gone.
pub fn answers(
    candidate: Candidate,
    frame: &Frame,
    running: Running,
    group: &[Head<'_>],
    readers: &Readers,
) -> Vec<Vec<f32>> {
    match candidate {
        Candidate::Exact => group.iter().map(model::attend_exactly).collect(),
        Candidate::Measure { top, middle } => {
            let replacement = frame.replacement(top, middle);
            match running {
                Running::Offline => {
                    group.iter().map(|head| replacement::offline::outputs(&replacement, head, readers)).collect()
                }
                Running::Streaming => replacement::streaming::outputs(&replacement, group, readers),
            }
        }
        Candidate::Kept { policy, budget } => eviction::outputs(policy, frame, budget, group, readers),
    }
}
