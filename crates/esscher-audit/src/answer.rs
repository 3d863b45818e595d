//! The answers of a candidate to all queries of the heads that share keys, on a whole text.

use crate::assignment::Running;
use crate::candidate::{Candidate, Frame};
use crate::eviction::Eviction;
use crate::head::Head;
use crate::model::{ExactAttention, LayerAttention, LayerInput, Shape};
use crate::readers::Readers;
use crate::{Error, eviction, replacement};

/// The outputs of every head of a group, a table of tokens × dimension for each.
///
/// Eviction is always streaming: what is gone stays gone.
///
/// # Errors
/// Heads whose tables do not fit each other.
pub fn answers(
    candidate: Candidate,
    frame: &Frame,
    running: Running,
    group: &[Head<'_>],
    readers: &Readers,
) -> Result<Vec<Vec<f32>>, Error> {
    match candidate {
        Candidate::Exact => group.iter().map(exact).collect(),
        Candidate::Measure { top, middle } => {
            let replacement = frame.replacement(top, middle);
            match running {
                Running::Offline => {
                    Ok(group.iter().map(|head| replacement::offline::outputs(&replacement, head)).collect())
                }
                Running::Streaming => Ok(replacement::streaming::outputs(&replacement, group, readers)),
            }
        }
        Candidate::Kept { policy, budget } => {
            let eviction = Eviction::beside(policy, &frame.atoms, frame.window, budget);
            Ok(eviction::outputs(&eviction, group, readers))
        }
    }
}

/// Exact attention of one head.
fn exact(head: &Head<'_>) -> Result<Vec<f32>, Error> {
    let shape = Shape {
        layers: 1,
        heads: 1,
        key_value_heads: 1,
        head_dimension: head.dimension,
        width: 0,
        vocabulary: 0,
        context: head.len(),
        order: head.order,
    };
    let input = LayerInput {
        layer: 0,
        start: 0,
        count: head.len(),
        tilts: head.tilts,
        keys: head.keys,
        values: head.values,
        residual: &[],
    };
    let mut output = vec![0.0; head.values.len()];
    ExactAttention::new(&shape).attend(&input, &mut output)?;
    Ok(output)
}
