//! Replacements that may look at the whole cache: the best that a kind of middle can do.
//!
//! The base tilt, the metric, the expected attention and the median value are those of this head's own queries and values so
//! far: no later query is known, so that what a model predicts with them is a prediction. Whenever the text has grown by an eighth,
//! top tokens, clusters and moments are made again from the whole cache for the readers of that moment; between, new tokens join as
//! they do in [`streaming`]. The window follows the same rule. Where every token sees all, everything is known at once.

use super::streaming::StreamingCache;
use super::{BLOCK, Replacement};
use crate::Error;
use crate::error::go_on;
use crate::head::{Head, Order};
use crate::readers::{ReaderSums, Readers};
use esscher_core::Monitor;

#[cfg(doc)]
use super::streaming;

/// The outputs of every query: tokens × dimension.
///
/// # Errors
/// [`Error::Stopped`] if the monitor asked to stop.
pub fn outputs(replacement: &Replacement, head: &Head<'_>, monitor: &dyn Monitor) -> Result<Vec<f32>, Error> {
    let d = head.dimension;
    let mut sums = ReaderSums::new(d, 1);
    let mut told = 0;
    run(replacement, head, monitor, &mut |tokens| {
        let part = |table| rows(table, d, told, tokens);
        sums.add(&[Head { tilts: part(head.tilts), values: part(head.values), ..*head }]);
        told = tokens;
        sums.readers()
    })
}

/// Rows of a table, as far as it has them.
fn rows(table: &[f32], dimension: usize, from: usize, to: usize) -> &[f32] {
    let end = table.len().min(to * dimension);
    &table[(from * dimension).min(end)..end]
}

/// The same with the readers of somewhere else: what their fixed tilt costs, with all else offline.
///
/// # Errors
/// [`Error::Stopped`] if the monitor asked to stop.
pub fn outputs_read_by(
    replacement: &Replacement,
    head: &Head<'_>,
    readers: &Readers,
    monitor: &dyn Monitor,
) -> Result<Vec<f32>, Error> {
    run(replacement, head, monitor, &mut |_| readers.clone())
}

/// Runs over a text with the readers that are known after so many tokens.
fn run(
    replacement: &Replacement,
    head: &Head<'_>,
    monitor: &dyn Monitor,
    readers_after: &mut dyn FnMut(usize) -> Readers,
) -> Result<Vec<f32>, Error> {
    let mut result = vec![vec![0.0; head.keys.len()]];
    let known = if head.order == Order::Whole { head.len() } else { 0 };
    let mut cache = StreamingCache::offline(replacement, &readers_after(known), head.dimension);
    if head.order == Order::Whole {
        cache.absorb_whole(head);
        cache.remake(&readers_after(known), monitor)?;
    }
    let mut due = replacement.window.saturating_add(1);
    for start in (0..head.len()).step_by(BLOCK) {
        go_on(monitor)?;
        if head.order == Order::Causal && start >= due {
            cache.remake(&readers_after(start), monitor)?;
            due = start + (start / 8).max(1);
        }
        cache.run_block(start, std::slice::from_ref(head), &mut result);
    }
    Ok(result.concat())
}
