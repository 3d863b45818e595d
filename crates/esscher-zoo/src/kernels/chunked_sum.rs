//! Sums that forget, in chunks: S_t = α_t ⊙ S_{t−1} + k_t v_tᵀ, o_t = s S_tᵀ q_t; a [`Decay`] says what α_t is.
//!
//! Inside of a chunk all pairs of tokens are weighed at once; what was before it is read off the state S, decayed since the
//! chunk began, and keys go into S decayed until the chunk ends. Sums of other kinds share [`Rows`], [`Slopes`] and [`chunks`].

use super::diagonal_scan::blocks;
use super::matrix::{Matrix, add_product, set_product};
use super::slices::add;
use crate::number::Real;
use std::ops::Range;

/// Tokens per chunk: the largest power of two for which the work between tokens of a chunk is not the bulk.
pub(crate) const CHUNK: usize = 64;

/// The chunks of a sequence, the last perhaps cut short.
pub(crate) fn chunks(length: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
    blocks(length, CHUNK)
}

/// Queries, keys, values and gates of a sequence or of one chunk of it.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a, T> {
    pub(crate) key_width: usize,
    pub(crate) value_width: usize,
    pub(crate) query: &'a [T],
    pub(crate) key: &'a [T],
    pub(crate) value: &'a [T],
    /// Any number per token; none where the sum has no gates.
    pub(crate) gates: &'a [T],
}

impl<'a, T: Real> Rows<'a, T> {
    pub(crate) fn length(&self) -> usize {
        self.query.len() / self.key_width
    }

    pub(crate) fn of(&self, tokens: &Range<usize>) -> Self {
        let part = |rows: &'a [T], width: usize| &rows[tokens.start * width..tokens.end * width];
        Rows {
            query: part(self.query, self.key_width),
            key: part(self.key, self.key_width),
            value: part(self.value, self.value_width),
            gates: part(self.gates, self.gates.len() / self.length()),
            ..*self
        }
    }

    pub(crate) fn queries(&self) -> Matrix<'a, T> {
        Matrix::new(self.query, self.length(), self.key_width)
    }

    pub(crate) fn keys(&self) -> Matrix<'a, T> {
        Matrix::new(self.key, self.length(), self.key_width)
    }

    pub(crate) fn values(&self) -> Matrix<'a, T> {
        Matrix::new(self.value, self.length(), self.value_width)
    }
}

/// Derivatives in what a sum runs over; backward passes add to them.
pub(crate) struct Slopes<'a, T> {
    pub(crate) query: &'a mut [T],
    pub(crate) key: &'a mut [T],
    pub(crate) value: &'a mut [T],
    pub(crate) gates: &'a mut [T],
}

impl<T> Slopes<'_, T> {
    pub(crate) fn of(&mut self, rows: &Rows<'_, T>, tokens: &Range<usize>) -> Slopes<'_, T> {
        let length = self.query.len() / rows.key_width;
        let part = |width: usize| tokens.start * width..tokens.end * width;
        Slopes {
            query: &mut self.query[part(rows.key_width)],
            key: &mut self.key[part(rows.key_width)],
            value: &mut self.value[part(rows.value_width)],
            gates: &mut self.gates[part(rows.gates.len() / length)],
        }
    }
}

/// What is kept of the past, token by token, from log-decays in the gates; with buffers for one chunk at a time.
pub(crate) trait Decay<T: Real> {
    /// Buffers for keys of this width.
    fn new(key_width: usize) -> Self;

    /// Reads the gates of a chunk; the other functions speak about that chunk.
    fn read(&mut self, chunk: &Rows<'_, T>);

    /// A_tr = what token t reads of token r ≤ t of its chunk, zero above.
    fn weights(&mut self, chunk: &Rows<'_, T>, weights: &mut [T]);

    /// to ← rows times what is kept between the start of the chunk and their token.
    fn since_start(&self, to: &mut [T], rows: &[T]);

    /// to ← rows times what is kept between their token and the end of the chunk.
    fn until_end(&self, to: &mut [T], rows: &[T]);

    /// The state times what is kept of it over the chunk.
    fn over_chunk(&self, state: &mut [T]);

    /// From slopes in the weights A to those in queries and keys, and from all of these to the gates.
    fn backward(&mut self, chunk: &Rows<'_, T>, around: &Around<'_, T>, slopes: &mut Inside<'_, T>);
}

/// What surrounds a chunk in the backward pass.
pub(crate) struct Around<'a, T> {
    /// States before and after the chunk.
    pub(crate) before: &'a [T],
    pub(crate) after: &'a [T],
    /// Slopes in the state after the chunk.
    pub(crate) after_slopes: &'a [T],
    /// The weights A inside the chunk.
    pub(crate) weights: &'a [T],
}

/// Slopes of one chunk.
pub(crate) struct Inside<'a, T> {
    /// In A, to be used up.
    pub(crate) weights: &'a mut [T],
    /// In queries and keys: comes with those of reading the state before and writing the state after, leaves with all.
    pub(crate) query: &'a mut [T],
    pub(crate) key: &'a mut [T],
    /// In the gates, to be added to.
    pub(crate) gates: &'a mut [T],
}

/// A sum that forgets.
#[derive(Clone, Copy)]
pub(crate) struct ChunkedSum<'a, T> {
    /// Gates are log-decays.
    pub(crate) rows: Rows<'a, T>,
    /// The factor on every weight.
    pub(crate) scale: T,
}

impl<T: Real> ChunkedSum<'_, T> {
    /// Writes outputs, moves `state` (d_k × d_v) behind the last token; returns for `backward` the state before every chunk with
    /// the weights inside of it, and the last state.
    pub(crate) fn forward<D: Decay<T>>(&self, state: &mut [T], outputs: &mut [T]) -> Vec<T> {
        let (keys, values) = (self.rows.key_width, self.rows.value_width);
        let chunks = chunks(self.rows.length());
        let mut saved = Vec::with_capacity(chunks.len() * (keys * values + CHUNK * CHUNK) + keys * values);
        let mut decay = D::new(keys);
        let mut decayed = vec![T::zero(); CHUNK * keys];
        let mut weights = vec![T::zero(); CHUNK * CHUNK];
        for tokens in chunks {
            let (chunk, size) = (self.rows.of(&tokens), tokens.len());
            let outputs = &mut outputs[tokens.start * values..tokens.end * values];
            saved.extend_from_slice(state);
            decay.read(&chunk);
            decay.weights(&chunk, &mut weights);
            set_product(outputs, self.scale, Matrix::new(&weights, size, size), chunk.values());
            decay.since_start(&mut decayed, chunk.query);
            let queries = Matrix::new(&decayed, size, keys);
            add_product(outputs, self.scale, queries, Matrix::new(state, keys, values));

            decay.over_chunk(state);
            decay.until_end(&mut decayed, chunk.key);
            add_product(state, T::one(), Matrix::new(&decayed, size, keys).transposed(), chunk.values());
            saved.extend_from_slice(&weights[..size * size]);
        }
        saved.extend_from_slice(state);
        saved
    }

    /// Adds derivatives to `slopes`; `state_slopes` enters as the derivative in the final state and leaves as that in the initial one.
    pub(crate) fn backward<D: Decay<T>>(
        &self,
        saved: &[T],
        output_slopes: &[T],
        state_slopes: &mut [T],
        slopes: &mut Slopes<'_, T>,
    ) {
        let (keys, values) = (self.rows.key_width, self.rows.value_width);
        let mut decay = D::new(keys);
        let zeros = |size: usize| vec![T::zero(); size];
        let (mut decayed, mut query_slopes) = (zeros(CHUNK * keys), zeros(CHUNK * keys));
        let (mut key_slopes, mut weight_slopes) = (zeros(CHUNK * keys), zeros(CHUNK * CHUNK));
        for (index, tokens) in chunks(self.rows.length()).enumerate().rev() {
            let (chunk, size) = (self.rows.of(&tokens), tokens.len());
            let slopes = slopes.of(&self.rows, &tokens);
            // All earlier chunks are full.
            let (before, rest) = saved[index * (keys * values + CHUNK * CHUNK)..].split_at(keys * values);
            let (weights, after) = rest.split_at(size * size);
            let output_slopes = Matrix::new(&output_slopes[tokens.start * values..], size, values);
            decay.read(&chunk);

            let into_values = Matrix::new(weights, size, size).transposed();
            add_product(slopes.value, self.scale, into_values, output_slopes);
            decay.until_end(&mut decayed, chunk.key);
            let after_slopes = Matrix::new(state_slopes, keys, values);
            add_product(slopes.value, T::one(), Matrix::new(&decayed, size, keys), after_slopes);

            // Through the state before the chunk, and into the state after it.
            let (query_slopes, key_slopes) =
                (&mut query_slopes[..size * keys], &mut key_slopes[..size * keys]);
            let read_off = Matrix::new(before, keys, values).transposed();
            set_product(&mut decayed, self.scale, output_slopes, read_off);
            decay.since_start(query_slopes, &decayed[..size * keys]);
            set_product(&mut decayed, T::one(), chunk.values(), after_slopes.transposed());
            decay.until_end(key_slopes, &decayed[..size * keys]);

            set_product(&mut weight_slopes, self.scale, output_slopes, chunk.values().transposed());
            let around =
                Around { before, after: &after[..keys * values], after_slopes: state_slopes, weights };
            let weights = &mut weight_slopes[..size * size];
            let mut inside = Inside { weights, query: query_slopes, key: key_slopes, gates: slopes.gates };
            decay.backward(&chunk, &around, &mut inside);
            add(slopes.query, query_slopes);
            add(slopes.key, key_slopes);

            decay.over_chunk(state_slopes);
            decay.since_start(&mut decayed, chunk.query);
            let queries = Matrix::new(&decayed, size, keys).transposed();
            add_product(state_slopes, self.scale, queries, output_slopes);
        }
    }
}
