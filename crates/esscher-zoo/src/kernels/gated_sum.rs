//! Sums with one decay per key channel: S_t = diag(α_t) S_{t−1} + k_t v_tᵀ, o_t = s S_tᵀ q_t, in chunks.
//!
//! The weight of token r at time t is Σ_a q_ta k_ra Π_{r<j≤t} α_ja. It is computed without dividing by decayed products: for
//! neighbouring blocks of 1, 2, 4, … 32 tokens, the pairs between the first block and the second are a matrix product whose
//! factors decay towards the border between them, so every factor is at most one. What a token keeps towards the borders of
//! its block doubles from level to level by products; decays over whole chunks are exponentials of sums, so that small
//! log-decays are not lost on the way.

use super::matrix::{Matrix, add_product, set_product};
use super::slices::{add, add_product_of, add_scaled, dot, multiply, multiply_into};
use crate::number::Real;

/// Tokens per chunk: the largest power of two for which the work between tokens of a chunk is not the bulk.
const CHUNK: usize = 64;

/// Blocks of this many tokens and fewer are multiplied in plain loops: a library's product costs more than it saves.
const PLAIN: usize = 4;

/// The sequence that a sum runs over.
#[derive(Clone, Copy)]
pub(crate) struct GatedSum<'a, T> {
    pub(crate) key_width: usize,
    pub(crate) value_width: usize,
    /// The factor on every weight.
    pub(crate) scale: T,
    pub(crate) query: &'a [T],
    pub(crate) key: &'a [T],
    pub(crate) value: &'a [T],
    pub(crate) log_decay: &'a [T],
}

/// Derivatives in what a sum runs over; `backward` adds to them.
pub(crate) struct GatedSlopes<'a, T> {
    pub(crate) query: &'a mut [T],
    pub(crate) key: &'a mut [T],
    pub(crate) value: &'a mut [T],
    pub(crate) log_decay: &'a mut [T],
}

impl<'a, T: Real> GatedSum<'a, T> {
    /// Writes outputs, moves `state` (d_k × d_v) behind the last token; returns the states at all chunk borders and the
    /// weights inside of chunks, for `backward`.
    pub(crate) fn forward(&self, state: &mut [T], outputs: &mut [T]) -> Vec<T> {
        let (keys, values) = (self.key_width, self.value_width);
        let length = self.query.len() / keys;
        let chunks = length.div_ceil(CHUNK);
        let mut saved = Vec::with_capacity((chunks + 1) * keys * values + chunks * CHUNK * CHUNK);
        saved.extend_from_slice(state);
        let mut weights_of_all = Vec::with_capacity(chunks * CHUNK * CHUNK);
        let mut work = Work::new(keys);
        for from in (0..length).step_by(CHUNK) {
            let chunk = self.chunk(from, (from + CHUNK).min(length));
            let size = chunk.size;
            let outputs = &mut outputs[from * values..(from + size) * values];
            work.gates(&chunk);
            work.weights(&chunk);
            set_product(
                outputs,
                self.scale,
                Matrix::new(&work.weights, size, size),
                Matrix::new(chunk.value, size, values),
            );
            multiply_into(&mut work.decayed, chunk.query, &work.since_start);
            add_product(
                outputs,
                self.scale,
                Matrix::new(&work.decayed, size, keys),
                Matrix::new(state, keys, values),
            );
            chunk.advance(&mut work, state, values);
            saved.extend_from_slice(state);
            weights_of_all.extend_from_slice(&work.weights[..size * size]);
        }
        saved.append(&mut weights_of_all);
        saved
    }

    /// Adds derivatives to `slopes`; `state_slopes` enters as the derivative in the final state and leaves as that in the initial one.
    pub(crate) fn backward(
        &self,
        saved: &[T],
        output_slopes: &[T],
        state_slopes: &mut [T],
        slopes: &mut GatedSlopes<'_, T>,
    ) {
        let (keys, values) = (self.key_width, self.value_width);
        let length = self.query.len() / keys;
        let chunks = length.div_ceil(CHUNK);
        let (states, weights) = saved.split_at((chunks + 1) * keys * values);
        let mut work = Work::new(keys);
        for index in (0..chunks).rev() {
            let from = index * CHUNK;
            let chunk = self.chunk(from, (from + CHUNK).min(length));
            let size = chunk.size;
            let before = &states[index * keys * values..(index + 1) * keys * values];
            let after = &states[(index + 1) * keys * values..(index + 2) * keys * values];
            // All earlier chunks are full.
            let weights = Matrix::new(&weights[from * CHUNK..], size, size);
            let output_slopes = Matrix::new(&output_slopes[from * values..], size, values);
            work.gates(&chunk);

            let value_slopes = &mut slopes.value[from * values..(from + size) * values];
            add_product(value_slopes, self.scale, weights.transposed(), output_slopes);
            multiply_into(&mut work.decayed, chunk.key, &work.until_end);
            add_product(
                value_slopes,
                T::one(),
                Matrix::new(&work.decayed, size, keys),
                Matrix::new(state_slopes, keys, values),
            );

            // Through the state before the chunk, and into the state after it. These reach the log-decays as q·dq − k·dk.
            set_product(
                &mut work.query_slopes,
                self.scale,
                output_slopes,
                Matrix::new(before, keys, values).transposed(),
            );
            multiply(&mut work.query_slopes[..size * keys], &work.since_start);
            set_product(
                &mut work.key_slopes,
                T::one(),
                Matrix::new(chunk.value, size, values),
                Matrix::new(state_slopes, keys, values).transposed(),
            );
            multiply(&mut work.key_slopes[..size * keys], &work.until_end);

            set_product(
                &mut work.weight_slopes,
                self.scale,
                output_slopes,
                Matrix::new(chunk.value, size, values).transposed(),
            );
            work.weight_slopes_to_tokens(&chunk);

            // Token r ≤ t meets the decays r+1 … t: the derivative in G_t is q·dq − k·dk, where a token's weight on itself cancels
            // and was left out. The last G also carries what is handed on.
            let decay_slopes = &mut slopes.log_decay[from * keys..(from + size) * keys];
            let mut running: Vec<T> = (0..keys)
                .map(|a| {
                    let row = a * values..(a + 1) * values;
                    state_slopes[row.clone()]
                        .iter()
                        .zip(&after[row])
                        .fold(T::zero(), |sum, (&x, &y)| sum + x * y)
                })
                .collect();
            for t in (0..size).rev() {
                let row = t * keys..(t + 1) * keys;
                let parts = work.query_slopes[row.clone()].iter().zip(&chunk.query[row.clone()]);
                let parts = parts.zip(work.key_slopes[row.clone()].iter().zip(&chunk.key[row.clone()]));
                for ((sum, slope), ((&dq, &q), (&dk, &k))) in
                    running.iter_mut().zip(&mut decay_slopes[row]).zip(parts)
                {
                    *sum += q * dq - k * dk;
                    *slope += *sum;
                }
            }

            let query_slopes = &mut slopes.query[from * keys..(from + size) * keys];
            let key_slopes = &mut slopes.key[from * keys..(from + size) * keys];
            add(query_slopes, &work.query_slopes);
            add(key_slopes, &work.key_slopes);
            for t in 0..size {
                let own = work.weight_slopes[t * size + t];
                let row = t * keys..(t + 1) * keys;
                add_scaled(&mut query_slopes[row.clone()], own, &chunk.key[row.clone()]);
                add_scaled(&mut key_slopes[row.clone()], own, &chunk.query[row]);
            }

            // The derivative in the state before the chunk.
            for (row, kept) in
                state_slopes.chunks_exact_mut(values).zip(&work.since_start[(size - 1) * keys..size * keys])
            {
                row.iter_mut().for_each(|x| *x *= *kept);
            }
            multiply_into(&mut work.decayed, chunk.query, &work.since_start);
            add_product(
                state_slopes,
                self.scale,
                Matrix::new(&work.decayed, size, keys).transposed(),
                output_slopes,
            );
        }
    }

    fn chunk(&self, from: usize, to: usize) -> Chunk<'a, T> {
        let (keys, values) = (self.key_width, self.value_width);
        Chunk {
            size: to - from,
            keys,
            query: &self.query[from * keys..to * keys],
            key: &self.key[from * keys..to * keys],
            value: &self.value[from * values..to * values],
            log_decay: &self.log_decay[from * keys..to * keys],
        }
    }
}

struct Chunk<'a, T> {
    size: usize,
    keys: usize,
    query: &'a [T],
    key: &'a [T],
    value: &'a [T],
    log_decay: &'a [T],
}

impl<T: Real> Chunk<'_, T> {
    /// S ← diag(e^{G_C}) S + Σ_r (k_r e^{G_C − G_r}) v_rᵀ.
    fn advance(&self, work: &mut Work<T>, state: &mut [T], values: usize) {
        let kept = &work.since_start[(self.size - 1) * self.keys..self.size * self.keys];
        for (row, kept) in state.chunks_exact_mut(values).zip(kept) {
            row.iter_mut().for_each(|x| *x *= *kept);
        }
        multiply_into(&mut work.decayed, self.key, &work.until_end);
        add_product(
            state,
            T::one(),
            Matrix::new(&work.decayed, self.size, self.keys).transposed(),
            Matrix::new(self.value, self.size, values),
        );
    }
}

/// A pair of neighbouring blocks: tokens `from..middle` are keys, `middle..to` are queries.
struct Pair {
    from: usize,
    middle: usize,
    to: usize,
}

/// Buffers of one chunk, used again for the next.
struct Work<T> {
    keys: usize,
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
    decayed: Vec<T>,
    block: Vec<T>,
    products: Vec<T>,
    weights: Vec<T>,
    weight_slopes: Vec<T>,
    query_slopes: Vec<T>,
    key_slopes: Vec<T>,
}

impl<T: Real> Work<T> {
    fn new(keys: usize) -> Self {
        let zeros = |size: usize| vec![T::zero(); size];
        Work {
            keys,
            sums: zeros(CHUNK * keys),
            since_start: zeros(CHUNK * keys),
            until_end: zeros(CHUNK * keys),
            since_block: zeros(CHUNK * keys),
            until_block: zeros(CHUNK * keys),
            leaning: zeros(CHUNK * keys),
            decayed: zeros(CHUNK * keys),
            block: zeros(CHUNK * CHUNK),
            products: zeros(CHUNK * keys),
            weights: zeros(CHUNK * CHUNK),
            weight_slopes: zeros(CHUNK * CHUNK),
            query_slopes: zeros(CHUNK * keys),
            key_slopes: zeros(CHUNK * keys),
        }
    }

    fn gates(&mut self, chunk: &Chunk<'_, T>) {
        let (keys, size) = (self.keys, chunk.size);
        self.sums[..keys].copy_from_slice(&chunk.log_decay[..keys]);
        for t in 1..size {
            let (before, here) = self.sums.split_at_mut(t * keys);
            for ((sum, &last), &g) in
                here.iter_mut().zip(&before[(t - 1) * keys..]).zip(&chunk.log_decay[t * keys..(t + 1) * keys])
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
                .zip(&chunk.log_decay[(t + 1) * keys..(t + 2) * keys])
            {
                *sum = next + g;
            }
        }
        T::exponentials(&mut self.until_end[..all]);
    }

    /// Factors of blocks of one token: a query has seen its own decay, a key none.
    fn start_factors(&mut self, chunk: &Chunk<'_, T>) {
        let all = chunk.size * self.keys;
        self.since_block[..all].copy_from_slice(chunk.log_decay);
        T::exponentials(&mut self.since_block[..all]);
        self.until_block[..all].fill(T::one());
    }

    /// Queries of second halves times their decay since the border, keys of first halves times their decay until it.
    fn lean(&mut self, chunk: &Chunk<'_, T>, block: usize) {
        let keys = self.keys;
        for pair in pairs_of(chunk.size, block) {
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
    fn double_factors(&mut self, size: usize, block: usize) {
        let keys = self.keys;
        for pair in pairs_of(size, block) {
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

    /// A_tr = Σ_a q_ta k_ra e^{G_ta − G_ra} for r ≤ t, zero above.
    fn weights(&mut self, chunk: &Chunk<'_, T>) {
        let (keys, size) = (self.keys, chunk.size);
        self.weights[..size * size].fill(T::zero());
        for t in 0..size {
            let row = t * keys..(t + 1) * keys;
            self.weights[t * size + t] = dot(&chunk.query[row.clone()], &chunk.key[row]);
        }
        self.start_factors(chunk);
        for block in blocks_of(size) {
            self.lean(chunk, block);
            for pair in pairs_of(size, block) {
                let (columns, rows) = (pair.middle - pair.from, pair.to - pair.middle);
                if block <= PLAIN {
                    for t in pair.middle..pair.to {
                        for r in pair.from..pair.middle {
                            self.weights[t * size + r] = dot(
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
                    self.weights[t * size + pair.from..t * size + pair.middle].copy_from_slice(row);
                }
            }
            self.double_factors(size, block);
        }
    }

    /// From the derivatives in A to those in queries and keys, without a token's weight on itself.
    fn weight_slopes_to_tokens(&mut self, chunk: &Chunk<'_, T>) {
        let (keys, size) = (self.keys, chunk.size);
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
                            let slope = self.weight_slopes[t * size + r];
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
                    add_product_of(
                        &mut self.query_slopes[second.clone()],
                        to_queries,
                        &self.since_block[second],
                    );
                    add_product_of(&mut self.key_slopes[first.clone()], to_keys, &self.until_block[first]);
                    continue;
                }
                for (t, row) in (pair.middle..pair.to).zip(self.block.chunks_exact_mut(columns)) {
                    row.copy_from_slice(&self.weight_slopes[t * size + pair.from..t * size + pair.middle]);
                }
                let slopes = Matrix::new(&self.block, rows, columns);
                set_product(
                    &mut self.products,
                    T::one(),
                    slopes,
                    Matrix::new(&self.leaning[first.clone()], columns, keys),
                );
                add_product_of(
                    &mut self.query_slopes[second.clone()],
                    &self.products,
                    &self.since_block[second.clone()],
                );
                set_product(
                    &mut self.products,
                    T::one(),
                    slopes.transposed(),
                    Matrix::new(&self.leaning[second], rows, keys),
                );
                add_product_of(&mut self.key_slopes[first.clone()], &self.products, &self.until_block[first]);
            }
            self.double_factors(size, block);
        }
    }
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
