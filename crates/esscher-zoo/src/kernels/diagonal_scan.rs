//! Channels that each keep a part of themselves: h_t = e^{g_t} ⊙ h_{t−1} + b_t, forwards, and backwards given slopes in all h_t.
//!
//! Rows are tokens, so that the loop over channels is the inner one and runs in vector registers. Callers hand over a block
//! of [`block_of`] tokens at a time: gates, additions and states of a block stay in the cache between making and using them.

use crate::number::Real;
use std::ops::Range;

/// Numbers of a block: a few buffers of this size fit the second-level cache.
const BLOCK_NUMBERS: usize = 1 << 14;

/// Tokens per block for this many channels, 8 to 64: below that the states at the borders are the bulk, above it nothing is gained.
pub(crate) fn block_of(channels: usize) -> usize {
    (BLOCK_NUMBERS / channels.max(1)).clamp(8, 64)
}

/// The blocks of a sequence, the last perhaps cut short.
pub(crate) fn blocks(
    length: usize,
    block: usize,
) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
    (0..length.div_ceil(block)).map(move |index| index * block..((index + 1) * block).min(length))
}

/// Turns the additions b into the states h and moves `state` behind the last token; `decays` are e^g.
pub(crate) fn forward<T: Real>(decays: &[T], additions: &mut [T], state: &mut [T]) {
    let channels = state.len();
    for (row, kept) in additions.chunks_exact_mut(channels).zip(decays.chunks_exact(channels)) {
        for ((h, &b), &kept) in state.iter_mut().zip(&*row).zip(kept) {
            *h = kept * *h + b;
        }
        row.copy_from_slice(state);
    }
}

/// Turns slopes in the states h into slopes in the additions b, and writes those in the log-decays g.
///
/// `initial` and `states` are the states before and of the forward pass; `state_slopes` enters as the derivative in the last
/// state (beyond what `slopes` says of it) and leaves as that in the initial one.
pub(crate) fn backward<T: Real>(
    decays: &[T],
    initial: &[T],
    states: &[T],
    slopes: &mut [T],
    decay_slopes: &mut [T],
    state_slopes: &mut [T],
) {
    let channels = initial.len();
    for t in (0..slopes.len() / channels).rev() {
        let row = t * channels..(t + 1) * channels;
        let before = if t == 0 { initial } else { &states[row.start - channels..row.start] };
        let parts = slopes[row.clone()].iter_mut().zip(&mut decay_slopes[row.clone()]);
        let given = decays[row].iter().zip(before);
        for (((slope, decay_slope), (&kept, &before)), carried) in parts.zip(given).zip(&mut *state_slopes) {
            *slope += *carried;
            *carried = kept * *slope;
            *decay_slope = *carried * before;
        }
    }
}
