//! One decay per key channel: what token t keeps of token r is Π_{r<j≤t} α_ja in channel a.
//!
//! The weight of token r at time t is Σ_a q_ta k_ra Π_{r<j≤t} α_ja. It is computed without dividing by decayed products: for
//! neighbouring blocks of 1, 2, 4, … 32 tokens, the pairs between the first block and the second are a matrix product whose
//! factors decay towards the border between them, so every factor is at most one. What a token keeps towards the borders of
//! its block doubles from level to level by products; decays over whole chunks are exponentials of sums, so that small
//! log-decays are not lost on the way.

use super::chunked_sum::{Around, CHUNK, Decay, Inside, Rows};
use super::matrix::{Matrix, set_product};
use super::slices::{add_product_of, add_scaled, dot, multiply, multiply_into};
use crate::number::Real;

/// Blocks of this many tokens and fewer are multiplied in plain loops: a library's product costs more than it saves.
const PLAIN: usize = 4;

/// Factors of one chunk, used again for the next.
pub(crate) struct PerChannel<T> {
    keys: usize,
    /// Tokens of the chunk.
    size: usize,
    /// G_t.
    sums: Vec<T>,
    /// e^{G_t} and e^{G_C − G_t}.
    since_start: Vec<T>,
    until_end: Vec<T>,
    /// What is kept between the start of a token's block and the token, and between it and the block's end.
    since_block: Vec<T>,
    until_block: Vec<T>,
    /// Query or key times that.
    leaning: Vec<T>,
    block: Vec<T>,
    products: Vec<T>,
}

impl<T: Real> Decay<T> for PerChannel<T> {
    fn new(keys: usize) -> Self {
        let zeros = |size: usize| vec![T::zero(); size];
        PerChannel {
            keys,
            size: 0,
            sums: zeros(CHUNK * keys),
            since_start: zeros(CHUNK * keys),
            until_end: zeros(CHUNK * keys),
            since_block: zeros(CHUNK * keys),
            until_block: zeros(CHUNK * keys),
            leaning: zeros(CHUNK * keys),
            block: zeros(CHUNK * CHUNK),
            products: zeros(CHUNK * keys),
        }
    }

    fn read(&mut self, chunk: &Rows<'_, T>) {
        let (keys, size) = (self.keys, chunk.length());
        self.size = size;
        self.sums[..keys].copy_from_slice(&chunk.gates[..keys]);
        for t in 1..size {
            let (before, here) = self.sums.split_at_mut(t * keys);
            for ((sum, &last), &g) in
                here.iter_mut().zip(&before[(t - 1) * keys..]).zip(&chunk.gates[t * keys..(t + 1) * keys])
            {
                *sum = last + g;
            }
        }
        let all = size * keys;
        self.since_start[..all].copy_from_slice(&self.sums[..all]);
        T::exponentials(&mut self.since_start[..all]);
        // Summed from the end, since the difference of two large sums would lose small ones.
        self.until_end[(size - 1) * keys..all].fill(T::zero());
        for t in (0..size - 1).rev() {
            let (here, after) = self.until_end.split_at_mut((t + 1) * keys);
            for ((sum, &next), &g) in here[t * keys..]
                .iter_mut()
                .zip(&after[..keys])
                .zip(&chunk.gates[(t + 1) * keys..(t + 2) * keys])
            {
                *sum = next + g;
            }
        }
        T::exponentials(&mut self.until_end[..all]);
    }

    fn weights(&mut self, chunk: &Rows<'_, T>, weights: &mut [T]) {
        let (keys, size) = (self.keys, self.size);
        weights[..size * size].fill(T::zero());
        for t in 0..size {
            let row = t * keys..(t + 1) * keys;
            weights[t * size + t] = dot(&chunk.query[row.clone()], &chunk.key[row]);
        }
        self.start_factors(chunk);
        for block in blocks_of(size) {
            self.lean(chunk, block);
            for pair in pairs_of(size, block) {
                let (columns, rows) = (pair.middle - pair.from, pair.to - pair.middle);
                if block <= PLAIN {
                    for t in pair.middle..pair.to {
                        for r in pair.from..pair.middle {
                            weights[t * size + r] = dot(
                                &self.leaning[t * keys..(t + 1) * keys],
                                &self.leaning[r * keys..(r + 1) * keys],
                            );
                        }
                    }
                    continue;
                }
                let left = Matrix::new(&self.leaning[pair.middle * keys..], rows, keys);
                let right = Matrix::new(&self.leaning[pair.from * keys..], columns, keys);
                set_product(&mut self.block, T::one(), left, right.transposed());
                for (t, row) in (pair.middle..pair.to).zip(self.block.chunks_exact(columns)) {
                    weights[t * size + pair.from..t * size + pair.middle].copy_from_slice(row);
                }
            }
            self.double_factors(block);
        }
    }

    fn since_start(&self, to: &mut [T], rows: &[T]) {
        multiply_into(to, rows, &self.since_start);
    }

    fn until_end(&self, to: &mut [T], rows: &[T]) {
        multiply_into(to, rows, &self.until_end);
    }

    fn over_chunk(&self, state: &mut [T]) {
        let kept = &self.since_start[(self.size - 1) * self.keys..self.size * self.keys];
        let values = state.len() / self.keys;
        for (row, kept) in state.chunks_exact_mut(values).zip(kept) {
            row.iter_mut().for_each(|x| *x *= *kept);
        }
    }

    /// Token r ≤ t meets the decays r+1 … t: the derivative in G_t is q·dq − k·dk, where a token's weight on itself cancels and
    /// is left out. The last G also carries what is handed on.
    fn backward(&mut self, chunk: &Rows<'_, T>, around: &Around<'_, T>, slopes: &mut Inside<'_, T>) {
        let (keys, values, size) = (self.keys, chunk.value_width, self.size);
        self.weight_slopes_to_tokens(chunk, slopes);
        let mut running: Vec<T> = (0..keys)
            .map(|a| {
                let row = a * values..(a + 1) * values;
                around.after_slopes[row.clone()]
                    .iter()
                    .zip(&around.after[row])
                    .fold(T::zero(), |sum, (&x, &y)| sum + x * y)
            })
            .collect();
        for t in (0..size).rev() {
            let row = t * keys..(t + 1) * keys;
            let parts = slopes.query[row.clone()].iter().zip(&chunk.query[row.clone()]);
            let parts = parts.zip(slopes.key[row.clone()].iter().zip(&chunk.key[row.clone()]));
            for ((sum, slope), ((&dq, &q), (&dk, &k))) in
                running.iter_mut().zip(&mut slopes.gates[row]).zip(parts)
            {
                *sum += q * dq - k * dk;
                *slope += *sum;
            }
        }
        for t in 0..size {
            let own = slopes.weights[t * size + t];
            let row = t * keys..(t + 1) * keys;
            add_scaled(&mut slopes.query[row.clone()], own, &chunk.key[row.clone()]);
            add_scaled(&mut slopes.key[row.clone()], own, &chunk.query[row]);
        }
    }
}

impl<T: Real> PerChannel<T> {
    /// Factors of blocks of one token: a query has seen its own decay, a key none.
    fn start_factors(&mut self, chunk: &Rows<'_, T>) {
        let all = self.size * self.keys;
        self.since_block[..all].copy_from_slice(chunk.gates);
        T::exponentials(&mut self.since_block[..all]);
        self.until_block[..all].fill(T::one());
    }

    /// Queries of second halves times their decay since the border, keys of first halves times their decay until it.
    fn lean(&mut self, chunk: &Rows<'_, T>, block: usize) {
        let keys = self.keys;
        for pair in pairs_of(self.size, block) {
            let (first, second) = (pair.from * keys..pair.middle * keys, pair.middle * keys..pair.to * keys);
            multiply_into(
                &mut self.leaning[first.clone()],
                &chunk.key[first.clone()],
                &self.until_block[first],
            );
            multiply_into(
                &mut self.leaning[second.clone()],
                &chunk.query[second.clone()],
                &self.since_block[second],
            );
        }
    }

    /// From factors of blocks to those of blocks twice as large: products, whose factors are at most one.
    fn double_factors(&mut self, block: usize) {
        let keys = self.keys;
        for pair in pairs_of(self.size, block) {
            let (middle, to) = (pair.middle * keys, pair.to * keys);
            for t in pair.from..pair.middle {
                multiply(&mut self.until_block[t * keys..(t + 1) * keys], &self.since_block[to - keys..to]);
            }
            let (first, second) = self.since_block.split_at_mut(middle);
            for row in second[..to - middle].chunks_exact_mut(keys) {
                multiply(row, &first[middle - keys..]);
            }
        }
    }

    /// From the derivatives in A to those in queries and keys, without a token's weight on itself.
    fn weight_slopes_to_tokens(&mut self, chunk: &Rows<'_, T>, slopes: &mut Inside<'_, T>) {
        let (keys, size) = (self.keys, self.size);
        self.start_factors(chunk);
        for block in blocks_of(size) {
            self.lean(chunk, block);
            for pair in pairs_of(size, block) {
                let (columns, rows) = (pair.middle - pair.from, pair.to - pair.middle);
                let (first, second) =
                    (pair.from * keys..pair.middle * keys, pair.middle * keys..pair.to * keys);
                if block <= PLAIN {
                    self.products[..(rows + columns) * keys].fill(T::zero());
                    let (to_queries, to_keys) = self.products.split_at_mut(rows * keys);
                    for (i, t) in (pair.middle..pair.to).enumerate() {
                        for (j, r) in (pair.from..pair.middle).enumerate() {
                            let slope = slopes.weights[t * size + r];
                            add_scaled(
                                &mut to_queries[i * keys..(i + 1) * keys],
                                slope,
                                &self.leaning[r * keys..(r + 1) * keys],
                            );
                            add_scaled(
                                &mut to_keys[j * keys..(j + 1) * keys],
                                slope,
                                &self.leaning[t * keys..(t + 1) * keys],
                            );
                        }
                    }
                    add_product_of(&mut slopes.query[second.clone()], to_queries, &self.since_block[second]);
                    add_product_of(&mut slopes.key[first.clone()], to_keys, &self.until_block[first]);
                    continue;
                }
                for (t, row) in (pair.middle..pair.to).zip(self.block.chunks_exact_mut(columns)) {
                    row.copy_from_slice(&slopes.weights[t * size + pair.from..t * size + pair.middle]);
                }
                let weight_slopes = Matrix::new(&self.block, rows, columns);
                set_product(
                    &mut self.products,
                    T::one(),
                    weight_slopes,
                    Matrix::new(&self.leaning[first.clone()], columns, keys),
                );
                add_product_of(
                    &mut slopes.query[second.clone()],
                    &self.products,
                    &self.since_block[second.clone()],
                );
                set_product(
                    &mut self.products,
                    T::one(),
                    weight_slopes.transposed(),
                    Matrix::new(&self.leaning[second], rows, keys),
                );
                add_product_of(&mut slopes.key[first.clone()], &self.products, &self.until_block[first]);
            }
            self.double_factors(block);
        }
    }
}

/// A pair of neighbouring blocks: tokens `from..middle` are keys, `middle..to` are queries.
struct Pair {
    from: usize,
    middle: usize,
    to: usize,
}

/// Sizes of blocks in a chunk of `size` tokens: the powers of two below it.
fn blocks_of(size: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |block| Some(2 * block)).take_while(move |&block| block < size)
}

/// The pairs of neighbouring blocks of one size, the last perhaps cut short.
fn pairs_of(size: usize, block: usize) -> impl Iterator<Item = Pair> {
    (0..size.saturating_sub(block)).step_by(2 * block).map(move |from| Pair {
        from,
        middle: from + block,
        to: (from + 2 * block).min(size),
    })
}
