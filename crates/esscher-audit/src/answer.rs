//! The answers of a candidate to all queries of the heads that share keys, on a whole text.

use crate::assignment::Running;
use crate::candidate::{Candidate, Frame};
use crate::eviction::Eviction;
use crate::head::{Head, LARGEST_VALUE};
use crate::model::{ExactAttention, LayerAttention, LayerInput, Shape};
use crate::readers::Readers;
use crate::{Error, eviction, replacement};
use esscher_core::{Monitor, Unwatched};

/// The outputs of every head of a group, a table of tokens × dimension for each.
///
/// Eviction is always streaming: what is gone stays gone.
///
/// # Errors
/// Heads whose tables do not fit each other, values above 10¹⁵.
pub fn answers(
    candidate: Candidate,
    frame: &Frame,
    running: Running,
    group: &[Head<'_>],
    readers: &Readers,
) -> Result<Vec<Vec<f32>>, Error> {
    answers_watched(candidate, frame, running, group, readers, &Unwatched)
}

/// The same; [`Error::Stopped`] if the monitor asked to stop.
pub(crate) fn answers_watched(
    candidate: Candidate,
    frame: &Frame,
    running: Running,
    group: &[Head<'_>],
    readers: &Readers,
    monitor: &dyn Monitor,
) -> Result<Vec<Vec<f32>>, Error> {
    let reach = group.iter().flat_map(|head| head.values).fold(0.0_f32, |most, entry| {
        // The larger of a number and NaN is the number.
        if entry.is_nan() {
            f32::NAN
        } else if most.is_nan() {
            most
        } else {
            most.max(entry.abs())
        }
    });
    if reach.is_nan() || reach > LARGEST_VALUE {
        return Err(Error::ValuesTooLarge { what: "a head".to_string(), reach });
    }
    match candidate {
        Candidate::Exact => group.iter().map(|head| exact(head, monitor)).collect(),
        Candidate::Measure { top, middle } => {
            let replacement = frame.replacement(top, middle);
            match running {
                Running::Offline => {
                    let outputs = |head| replacement::offline::outputs(&replacement, head, monitor);
                    group.iter().map(outputs).collect()
                }
                Running::Streaming => replacement::streaming::outputs(&replacement, group, readers, monitor),
            }
        }
        Candidate::Kept { policy, budget } => {
            let eviction = Eviction::beside(policy, &frame.atoms, frame.window, budget);
            eviction::outputs(&eviction, group, readers, monitor)
        }
    }
}

/// Exact attention of one head.
fn exact(head: &Head<'_>, monitor: &dyn Monitor) -> Result<Vec<f32>, Error> {
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
    ExactAttention::watched(&shape, monitor).attend(&input, &mut output)?;
    Ok(output)
}
