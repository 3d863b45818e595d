//! Eviction: what people use today, a head's context cut down to a budget of exact tokens.
//!
//! All policies run alike, as a stream: at the start of every block of [`BLOCK`] tokens the cache is cut down to
//! `budget − BLOCK` tokens, so that with the block's own it never holds more than the budget (a [`Replacement`] counts its
//! window in the same way); what is evicted stays evicted. The heads that share keys and values share the cache. Keys keep
//! the positions that they were rotated to.
//!
//! | policy | from | where ours differs |
//! |---|---|---|
//! | [`Policy::SinkWindow`] | StreamingLLM, key `xiao2023` | there positions are counted within the cache, here in the text |
//! | [`Policy::ObservedAttention`] | H2O, key `zhang2023` (SnapKV, key `li2024`, asks only the last queries of a prompt) | there one token is evicted at each step, here 32 at each block; query heads that share keys add their attention |
//! | [`Policy::ExpectedAttention`] | KVPress, key `devoto2025` | there the queries' mean and covariance are those of the prompt, rotated on average to the next 512 positions, and scores are averaged over the query heads; here they are the [`Readers`]', pooled over positions and query heads. There a prompt is cut once, here again and again, and half of what is kept may be recent (see [`Eviction::usual`]) |
//! | [`Policy::ClusterMeans`] | [`Middle::TiltedMeans`] | not an eviction: what would be evicted joins a mean |

mod cache;
mod policy;

pub use policy::{Eviction, Policy};

use crate::Error;
use crate::head::{Head, Order, Readers};
use crate::replacement::{BLOCK, streaming};
use cache::EvictingCache;

#[cfg(doc)]
use crate::replacement::{Middle, Replacement};

/// The outputs of every query of the heads that share one key-value head: heads × tokens × dimension.
///
/// The tokens are those of the first head; outputs of tokens without a tilt are zero.
///
/// # Errors
/// [`Error::Request`] if the budget has no room for a block, sinks, recent tokens and one more, or if every token sees all.
pub fn outputs(eviction: &Eviction, heads: &[Head<'_>], readers: &Readers) -> Result<Vec<f32>, Error> {
    eviction.check()?;
    let Some(first) = heads.first() else { return Ok(Vec::new()) };
    if first.order == Order::Whole {
        return Err(Error::Request(
            "eviction follows a text from left to right, but in this model every token sees all: compare with \
             replacements without a window instead"
                .to_string(),
        ));
    }
    if let Some(replacement) = eviction.as_replacement() {
        return Ok(streaming::outputs(&replacement, heads, readers));
    }
    let (d, tokens) = (first.dimension, first.len());
    let mut result = vec![0.0; heads.len() * tokens * d];
    if d == 0 {
        return Ok(result);
    }
    let mut cache = EvictingCache::new(eviction, readers, d);
    for start in (0..tokens).step_by(BLOCK) {
        let end = (start + BLOCK).min(tokens);
        cache.evict();
        let rows = first.keys.chunks_exact(d).zip(first.values.chunks_exact(d));
        rows.skip(start).take(end - start).for_each(|(key, value)| cache.push(key, value));
        for (head, output) in heads.iter().zip(result.chunks_exact_mut(tokens * d)) {
            if let Some(tilts) = head.tilts.get(start * d..end * d) {
                cache.read(tilts, start, &mut output[start * d..end * d]);
            }
        }
    }
    Ok(result)
}
