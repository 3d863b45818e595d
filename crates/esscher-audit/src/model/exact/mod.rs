//! Exact attention in blocks: of a whole prompt, or of new tokens after a cache that grows.
//!
//! Softmax is accumulated block after block of keys: a row keeps the largest score m so far, Σ e^{s − m} and Σ e^{s − m} v, all
//! multiplied by e^{m − m'} when a larger m' arrives. The table of all scores never exists.

mod cache;
mod prompt;

pub use cache::ExactCache;
pub use prompt::ExactAttention;

use super::{LayerInput, Shape};
use crate::Error;

/// The numbers of heads and of their entries.
#[derive(Debug, Clone, Copy)]
struct Heads {
    heads: usize,
    key_value_heads: usize,
    dimension: usize,
}

impl Heads {
    fn of(shape: &Shape) -> Self {
        Heads {
            heads: shape.heads,
            key_value_heads: shape.key_value_heads.max(1),
            dimension: shape.head_dimension.max(1),
        }
    }

    fn check(self, input: &LayerInput<'_>, output: &[f32]) -> Result<(), Error> {
        let queries = input.count * self.heads * self.dimension;
        let keys = input.count * self.key_value_heads * self.dimension;
        let found = [input.tilts.len(), input.keys.len(), input.values.len(), output.len()];
        if found != [queries, keys, keys, queries] {
            return Err(Error::WrongSizes {
                what: format!(
                    "tilts, keys, values and outputs of {} tokens with {} query heads, {} key-value heads and {} numbers per head",
                    input.count, self.heads, self.key_value_heads, self.dimension
                ),
                expected: format!("{:?}", [queries, keys, keys, queries]),
                found: found.to_vec(),
            });
        }
        Ok(())
    }
}

#[inline(always)]
fn largest_of(numbers: &[f32], start: f32) -> f32 {
    let (blocks, rest) = numbers.as_chunks::<16>();
    let mut lanes = [start; 16];
    for block in blocks {
        for lane in 0..16 {
            lanes[lane] = if block[lane] > lanes[lane] { block[lane] } else { lanes[lane] };
        }
    }
    lanes.iter().chain(rest).fold(start, |a, b| if *b > a { *b } else { a })
}
