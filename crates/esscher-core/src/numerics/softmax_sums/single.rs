//! One query at a time: blocks of tokens meet it in four steps, scores, their maximum, exponentials, weighted sums.
//!
//! In the first and the last step the coordinates of a token lie in the lanes of registers, in between the tokens
//! do. Every sum has a fixed number of lanes, whatever the registers hold, and is added up in a fixed order: AVX2 and
//! AVX-512 give the same bits, the portable set differs in the last ones.

#![allow(clippy::needless_range_loop, reason = "loops over lanes read and write several arrays")]

use super::{QuerySums, Tokens};
use crate::error::{Error, Result};
use crate::numerics::{Arithmetic, InstructionSet, Kernel, Register, exp};

/// Tokens of a block at most, and numbers in it: they stay in the first-level cache from the scores to the sums.
const MOST_TOKENS: usize = 128;
const BLOCK_ENTRIES: usize = 2048;

/// Lanes of the sum that is a score.
const SCORE_LANES: usize = 8;

/// Lanes of the mass, and coordinates whose weighted sums are formed together.
const LANES: usize = 16;

/// Numbers that four registers hold at most: blocks are filled up to a multiple.
const FOUR_REGISTERS: usize = 32;

/// Calls a function with a number below eight, the remainder of a dimension, as its last generic argument.
macro_rules! by_remainder {
    ($remainder:expr, $function:ident::<$arithmetic:ident>($($argument:expr),* $(,)?)) => {
        match $remainder {
            0 => $function::<$arithmetic, 0>($($argument),*),
            1 => $function::<$arithmetic, 1>($($argument),*),
            2 => $function::<$arithmetic, 2>($($argument),*),
            3 => $function::<$arithmetic, 3>($($argument),*),
            4 => $function::<$arithmetic, 4>($($argument),*),
            5 => $function::<$arithmetic, 5>($($argument),*),
            6 => $function::<$arithmetic, 6>($($argument),*),
            _ => $function::<$arithmetic, 7>($($argument),*),
        }
    };
}

/// Adds tokens to the sums of a query.
///
/// # Errors
/// [`Error::Overflow`] if a score is +∞ or NaN, or −∞ only because a fused sum forgot a product of +∞. Other scores of −∞ have no
/// weight.
pub(super) fn add(set: InstructionSet, tokens: Tokens<'_>, tilt: &[f64], sums: &mut QuerySums) -> Result<()> {
    set.run(AddTokens { tokens, tilt, sums })
}

struct AddTokens<'a> {
    tokens: Tokens<'a>,
    tilt: &'a [f64],
    sums: &'a mut QuerySums,
}

impl Kernel for AddTokens<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Result<()> {
        let AddTokens { tokens: Tokens { dimension, entries, log_weights }, tilt, sums } = self;
        let tokens_per_block = (BLOCK_ENTRIES / dimension).clamp(LANES, MOST_TOKENS);
        let mut scores = [0.0; MOST_TOKENS];
        for (block, tokens) in entries.chunks(tokens_per_block * dimension).enumerate() {
            let count = tokens.len() / dimension;
            let scores = &mut scores[..count.next_multiple_of(FOUR_REGISTERS)];
            by_remainder!(dimension % SCORE_LANES, fill_scores::<A>(tokens, tilt, &mut scores[..count]));
            if let Some(log_weights) = log_weights {
                let start = block * tokens_per_block;
                for (score, log_weight) in scores.iter_mut().zip(&log_weights[start..start + count]) {
                    *score += log_weight;
                }
            }
            let Some(largest) = largest_score::<A>(scores, count, tokens, tilt)? else { continue };
            sums.raise_to(largest);
            sums.mass += exponentiate::<A>(scores, count, sums.largest);
            add_tokens::<A>(tokens, dimension, &scores[..count], &mut sums.sums);
        }
        Ok(())
    }
}

/// ⟨θ, z⟩ of each token; `REST` is the remainder of the dimension by the lanes.
#[inline(always)]
fn fill_scores<A: Arithmetic, const REST: usize>(tokens: &[f64], tilt: &[f64], scores: &mut [f64]) {
    let dimension = tilt.len();
    let (tilt, tilt_rest) = tilt.split_at(dimension - REST);
    for (token, score) in tokens.chunks_exact(dimension).zip(scores) {
        let (token, token_rest) = token.split_at(dimension - REST);
        let mut rest = 0.0;
        for lane in 0..REST {
            rest = A::multiply_add(tilt_rest[lane], token_rest[lane], rest);
        }
        *score = dot::<A>(tilt, token) + rest;
    }
}

/// ⟨a, b⟩ of vectors whose length is a multiple of the lanes; of its own because it is fused on registers of the set.
#[inline(always)]
fn dot<A: Arithmetic>(a: &[f64], b: &[f64]) -> f64 {
    let width = A::Register::<f64>::WIDTH;
    // Registers of eight lanes need the first of these, registers of four lanes both.
    let mut registers = [A::Register::splat(0.0); 2];
    for (a, b) in a.chunks_exact(SCORE_LANES).zip(b.chunks_exact(SCORE_LANES)) {
        for k in 0..SCORE_LANES / width {
            let lanes = k * width..(k + 1) * width;
            registers[k] =
                A::Register::load(&a[lanes.clone()]).multiply_add(A::Register::load(&b[lanes]), registers[k]);
        }
    }
    let mut halves = [0.0; SCORE_LANES];
    if width == SCORE_LANES {
        registers[0].store(&mut halves);
        for lane in 0..4 {
            halves[lane] += halves[lane + 4];
        }
    } else {
        registers[0].add(registers[1]).store(&mut halves);
    }
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}

/// The largest of the first `count` scores; none if all are −∞. What follows them is overwritten.
#[inline(always)]
fn largest_score<A: Arithmetic>(
    scores: &mut [f64],
    count: usize,
    tokens: &[f64],
    tilt: &[f64],
) -> Result<Option<f64>> {
    // Not above any finite score, and finite itself.
    scores[count..].fill(f64::MIN);
    let zero = A::Register::splat(0.0);
    let (mut largest, mut zeros) = (A::Register::splat(f64::MIN), zero);
    for scores in scores.chunks_exact(A::Register::<f64>::WIDTH) {
        let scores = A::Register::load(scores);
        largest = scores.larger(largest);
        zeros = scores.multiply_add(zero, zeros);
    }
    let mut lanes = [0.0; SCORE_LANES];
    zeros.store(&mut lanes);
    if lanes.iter().all(|zero| zero.is_finite()) {
        lanes = [f64::MIN; SCORE_LANES];
        largest.store(&mut lanes);
        return Ok(Some(lanes.into_iter().fold(f64::MIN, f64::max)));
    }
    let scores = &scores[..count];
    // −∞ + ab is −∞ where the product is not rounded before it is added, even if ab overflows: such a score is unknown.
    let has_large_products = |token: &[f64]| {
        token.iter().zip(tilt).map(|(entry, factor)| (entry * factor).max(0.0)).sum::<f64>() > 0.25 * f64::MAX
    };
    let is_unknown = |(&score, token): (&f64, &[f64])| match score {
        f64::NEG_INFINITY => has_large_products(token),
        score => !score.is_finite(),
    };
    if scores.iter().zip(tokens.chunks_exact(tilt.len())).any(is_unknown) {
        return Err(Error::Overflow { what: "a score of the prompt" });
    }
    Ok(scores.iter().copied().reduce(f64::max).filter(|largest| largest.is_finite()))
}

/// scores ← e^{score − largest}, zero beyond `count`; returns their sum.
#[inline(always)]
fn exponentiate<A: Arithmetic>(scores: &mut [f64], count: usize, largest: f64) -> f64 {
    let largest = A::Register::splat(largest);
    // The vector exponential of anything low is tiny. Without it, weights below 1e-307 are zero.
    let [tiny] = exp([A::Register::splat(f64::NEG_INFINITY)]);
    let width = A::Register::<f64>::WIDTH;
    for scores in scores.chunks_exact_mut(4 * width) {
        let mut registers = [tiny; 4];
        for (register, scores) in registers.iter_mut().zip(scores.chunks_exact(width)) {
            *register = A::Register::load(scores).subtract(largest);
        }
        let weights = exp(registers);
        for (weight, scores) in weights.into_iter().zip(scores.chunks_exact_mut(width)) {
            weight.subtract(tiny).store(scores);
        }
    }
    scores[count..].fill(0.0);
    let mut lanes = [0.0; LANES];
    for weights in scores.chunks_exact(LANES) {
        for lane in 0..LANES {
            lanes[lane] += weights[lane];
        }
    }
    lanes.into_iter().sum()
}

/// sums += Σ weight · token, for the coordinates that `sums` has.
#[inline(always)]
fn add_tokens<A: Arithmetic>(tokens: &[f64], dimension: usize, weights: &[f64], sums: &mut [f64]) {
    let mut start = 0;
    while start + LANES <= sums.len() {
        add_coordinates::<A, LANES>(tokens, dimension, start, weights, &mut sums[start..start + LANES]);
        start += LANES;
    }
    if start + 8 <= sums.len() {
        add_coordinates::<A, 8>(tokens, dimension, start, weights, &mut sums[start..start + 8]);
        start += 8;
    }
    by_remainder!(
        sums.len() - start,
        add_coordinates::<A>(tokens, dimension, start, weights, &mut sums[start..])
    );
}

/// The same for `N` coordinates from `start` on; tokens of even and odd number are summed apart.
#[inline(always)]
fn add_coordinates<A: Arithmetic, const N: usize>(
    tokens: &[f64],
    dimension: usize,
    start: usize,
    weights: &[f64],
    sums: &mut [f64],
) {
    let (mut even, mut odd) = ([0.0; N], [0.0; N]);
    let (pairs, pair_weights) = (tokens.chunks_exact(2 * dimension), weights.chunks_exact(2));
    if let [weight] = pair_weights.remainder() {
        let token = &pairs.remainder()[start..start + N];
        for lane in 0..N {
            even[lane] = weight * token[lane];
        }
    }
    for (pair, weights) in pairs.zip(pair_weights) {
        let (first, second) = (&pair[start..start + N], &pair[dimension + start..dimension + start + N]);
        for lane in 0..N {
            even[lane] = A::multiply_add(weights[0], first[lane], even[lane]);
            odd[lane] = A::multiply_add(weights[1], second[lane], odd[lane]);
        }
    }
    for lane in 0..N {
        sums[lane] += even[lane] + odd[lane];
    }
}
