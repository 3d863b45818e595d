//! Eviction: what people use today, a head's context cut down to a budget of exact tokens.
//!
//! All policies run alike, as a stream: at the start of every block of [`BLOCK`] tokens the cache is cut down to sinks, recent
//! tokens and those that the policy chooses, so that with the block's own it never holds more than the budget (a
//! [`Replacement`] counts its window in the same way); what is evicted stays evicted. The heads that share keys and values share the cache. Keys keep
//! the positions that they were rotated to.
//!
//! | policy | from | where ours differs |
//! |---|---|---|
//! | [`Policy::SinkWindow`] | StreamingLLM, key `xiao2023` | there positions are counted within the cache, here in the text |
//! | [`Policy::ObservedAttention`] | H2O, key `zhang2023` (SnapKV, key `li2024`, asks only the last queries of a prompt) | there one token is evicted at each step, here 32 at each block; query heads that share keys add their attention |
//! | [`Policy::ExpectedAttention`] | KVPress, key `devoto2025` | there the queries' mean and covariance are those of the prompt, rotated on average to the next 512 positions; here they are the [`Readers`]', over all positions. As there, each query head has its own, and their softmax weights are averaged. There a prompt is cut once, here again and again |
//! | [`Policy::ClusterMeans`] | [`Middle::TiltedMeans`] | not an eviction: what would be evicted joins a mean |

mod cache;
mod policy;

pub use policy::{Eviction, Policy};

use crate::Error;
use crate::error::go_on;
use crate::head::{Head, Order};
use crate::readers::Readers;
use crate::replacement::{BLOCK, streaming};
use cache::EvictingCache;
use esscher_core::Monitor;

#[cfg(doc)]
use crate::replacement::{Middle, Replacement};

/// The outputs of every query of the heads that share one key-value head: a table of tokens × dimension for each.
///
/// The tokens are those of the first head; outputs of tokens without a tilt are zero. Where every token sees all, the whole text
/// is cut once, by the attention that all its queries pay if that is what decides.
///
/// # Errors
/// [`Error::Stopped`] if the monitor asked to stop.
pub fn outputs(
    eviction: &Eviction,
    heads: &[Head<'_>],
    readers: &Readers,
    monitor: &dyn Monitor,
) -> Result<Vec<Vec<f32>>, Error> {
    let Some(first) = heads.first() else { return Ok(Vec::new()) };
    // Measures of a text where all see all know its own queries: so does eviction.
    let own = match first.order {
        Order::Whole => Readers::from_heads(&[heads.to_vec()]).ok(),
        Order::Causal => None,
    };
    let readers = own.as_ref().unwrap_or(readers);
    if let Some(replacement) = eviction.as_replacement(first.order) {
        return streaming::outputs(&replacement, heads, readers, monitor);
    }
    let (d, tokens) = (first.dimension, first.len());
    let mut result = vec![vec![0.0; tokens * d]; heads.len()];
    if d == 0 {
        return Ok(result);
    }
    let mut cache = EvictingCache::new(eviction, readers, d);
    let rows = || first.keys.chunks_exact(d).zip(first.values.chunks_exact(d));
    match first.order {
        Order::Causal => {
            for start in (0..tokens).step_by(BLOCK) {
                go_on(monitor)?;
                let end = (start + BLOCK).min(tokens);
                cache.evict();
                rows().skip(start).take(end - start).for_each(|(key, value)| cache.push(key, value));
                for (head, output) in heads.iter().zip(&mut result) {
                    if let Some(tilts) = head.tilts.get(start * d..end * d) {
                        cache.read(tilts, Some(start), &mut output[start * d..end * d]);
                    }
                }
            }
        }
        Order::Whole => {
            rows().for_each(|(key, value)| cache.push(key, value));
            if eviction.policy == Policy::ObservedAttention {
                read_whole(&mut cache, heads, &mut result, monitor)?;
            }
            cache.evict();
            read_whole(&mut cache, heads, &mut result, monitor)?;
        }
    }
    Ok(result)
}

/// Answers all queries of every head that has as many as there are tokens; in blocks, so that the table of all scores never exists.
fn read_whole(
    cache: &mut EvictingCache<'_>,
    heads: &[Head<'_>],
    outputs: &mut [Vec<f32>],
    monitor: &dyn Monitor,
) -> Result<(), Error> {
    for (head, output) in heads.iter().zip(outputs) {
        let Some(tilts) = head.tilts.get(..output.len()) else { continue };
        let size = BLOCK * head.dimension;
        for (tilts, output) in tilts.chunks(size).zip(output.chunks_mut(size)) {
            go_on(monitor)?;
            cache.read(tilts, None, output);
        }
    }
    Ok(())
}
