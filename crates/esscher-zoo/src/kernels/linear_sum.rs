//! Sums without decay: S = Σ_r k_r v_rᵀ and z = Σ_r k_r; per query the numerator Sᵀq and the total z·q, over r ≤ t or all r.
//!
//! Causal sums go in chunks: inside of a chunk all pairs at once, before it through the sums so far.

use super::chunked_sum::{CHUNK, Rows, Slopes, chunks};
use super::matrix::{Matrix, add_product, set_product};
use crate::mechanism::Order;
use crate::number::Real;
use std::ops::Range;

/// What the sums run over; queries and keys are features already.
#[derive(Clone, Copy)]
pub(crate) struct LinearSum<'a, T> {
    pub(crate) rows: Rows<'a, T>,
    pub(crate) order: Order,
}

/// S, row by row, then z.
pub(crate) struct Sums<'a, T> {
    pub(crate) products: &'a mut [T],
    pub(crate) keys: &'a mut [T],
}

impl<T: Real> LinearSum<'_, T> {
    /// The products of the queries and keys of a chunk, zero above the diagonal.
    fn weights(chunk: &Rows<'_, T>, weights: &mut [T]) {
        set_product(weights, T::one(), chunk.queries(), chunk.keys().transposed());
        clear_above_diagonal(weights, chunk.length());
    }

    /// Takes tokens into the sums.
    fn absorb(tokens: &Rows<'_, T>, sums: &mut Sums<'_, T>) {
        add_product(sums.products, T::one(), tokens.keys().transposed(), tokens.values());
        for key in tokens.key.chunks_exact(tokens.key_width) {
            sums.keys.iter_mut().zip(key).for_each(|(sum, &k)| *sum += k);
        }
    }

    /// Writes numerators and totals and moves the sums behind the last token; returns the sums before every chunk (in
    /// whole order: after the last), for `backward`.
    pub(crate) fn forward(&self, sums: &mut Sums<'_, T>, numerators: &mut [T], totals: &mut [T]) -> Vec<T> {
        let (keys, values) = (self.rows.key_width, self.rows.value_width);
        let mut borders = Vec::new();
        let keep = |sums: &Sums<'_, T>, borders: &mut Vec<T>| {
            borders.extend_from_slice(sums.products);
            borders.extend_from_slice(sums.keys);
        };
        match self.order {
            Order::Whole => {
                Self::absorb(&self.rows, sums);
                let queries = self.rows.queries();
                set_product(numerators, T::one(), queries, Matrix::new(sums.products, keys, values));
                set_product(totals, T::one(), queries, Matrix::new(sums.keys, keys, 1));
                keep(sums, &mut borders);
            }
            Order::Causal => {
                let chunks = chunks(self.rows.length());
                borders.reserve_exact(chunks.len() * keys * (values + 1));
                let mut weights = vec![T::zero(); CHUNK * CHUNK];
                for tokens in chunks {
                    let (chunk, size) = (self.rows.of(&tokens), tokens.len());
                    let numerators = &mut numerators[tokens.start * values..tokens.end * values];
                    let totals = &mut totals[tokens];
                    Self::weights(&chunk, &mut weights);
                    let queries = chunk.queries();
                    set_product(numerators, T::one(), Matrix::new(&weights, size, size), chunk.values());
                    add_product(numerators, T::one(), queries, Matrix::new(sums.products, keys, values));
                    set_product(totals, T::one(), queries, Matrix::new(sums.keys, keys, 1));
                    for (total, weights) in totals.iter_mut().zip(weights.chunks_exact(size)) {
                        *total = weights.iter().fold(*total, |sum, &weight| sum + weight);
                    }
                    keep(sums, &mut borders);
                    Self::absorb(&chunk, sums);
                }
            }
        }
        borders
    }

    /// Adds derivatives to `slopes`; `sum_slopes` enter as those in the final sums and leave as those in the initial ones.
    pub(crate) fn backward(
        &self,
        borders: &[T],
        numerator_slopes: &[T],
        total_slopes: &[T],
        sum_slopes: &mut Sums<'_, T>,
        slopes: &mut Slopes<'_, T>,
    ) {
        let (keys, values) = (self.rows.key_width, self.rows.value_width);
        let read_at = |tokens: &Range<usize>| Read {
            numerators: Matrix::new(&numerator_slopes[tokens.start * values..], tokens.len(), values),
            totals: Matrix::new(&total_slopes[tokens.start..], tokens.len(), 1),
        };
        match self.order {
            Order::Whole => {
                let read = read_at(&(0..self.rows.length()));
                read.to_queries(borders, keys, values, slopes.query);
                read.to_sums(self.rows.queries(), sum_slopes);
                Self::absorb_backward(&self.rows, sum_slopes, slopes);
            }
            Order::Causal => {
                let mut weights = vec![T::zero(); CHUNK * CHUNK];
                let mut weight_slopes = vec![T::zero(); CHUNK * CHUNK];
                for (index, tokens) in chunks(self.rows.length()).enumerate().rev() {
                    let (chunk, size) = (self.rows.of(&tokens), tokens.len());
                    let before = &borders[index * keys * (values + 1)..(index + 1) * keys * (values + 1)];
                    let mut slopes = slopes.of(&self.rows, &tokens);
                    let read = read_at(&tokens);
                    Self::absorb_backward(&chunk, sum_slopes, &mut slopes);

                    Self::weights(&chunk, &mut weights);
                    let into_values = Matrix::new(&weights, size, size).transposed();
                    add_product(slopes.value, T::one(), into_values, read.numerators);
                    set_product(&mut weight_slopes, T::one(), read.numerators, chunk.values().transposed());
                    for (row, &slope) in weight_slopes.chunks_exact_mut(size).zip(&total_slopes[tokens]) {
                        row.iter_mut().for_each(|x| *x += slope);
                    }
                    clear_above_diagonal(&mut weight_slopes, size);
                    let weight_slopes = Matrix::new(&weight_slopes, size, size);
                    add_product(slopes.query, T::one(), weight_slopes, chunk.keys());
                    add_product(slopes.key, T::one(), weight_slopes.transposed(), chunk.queries());

                    read.to_queries(before, keys, values, slopes.query);
                    read.to_sums(chunk.queries(), sum_slopes);
                }
            }
        }
    }

    /// From the sums to the tokens that went into them.
    fn absorb_backward(tokens: &Rows<'_, T>, sum_slopes: &Sums<'_, T>, slopes: &mut Slopes<'_, T>) {
        let products = Matrix::new(sum_slopes.products, tokens.key_width, tokens.value_width);
        add_product(slopes.key, T::one(), tokens.values(), products.transposed());
        for key in slopes.key.chunks_exact_mut(tokens.key_width) {
            key.iter_mut().zip(&*sum_slopes.keys).for_each(|(slope, &x)| *slope += x);
        }
        add_product(slopes.value, T::one(), tokens.keys(), products);
    }
}

/// Slopes in what was read off the sums.
struct Read<'a, T> {
    numerators: Matrix<'a, T>,
    totals: Matrix<'a, T>,
}

impl<T: Real> Read<'_, T> {
    /// To the queries that read these sums.
    fn to_queries(&self, sums: &[T], keys: usize, values: usize, query_slopes: &mut [T]) {
        let (products, key_sums) = sums.split_at(keys * values);
        let products = Matrix::new(products, keys, values).transposed();
        add_product(query_slopes, T::one(), self.numerators, products);
        add_product(query_slopes, T::one(), self.totals, Matrix::new(key_sums, 1, keys));
    }

    /// To the sums, read by these queries.
    fn to_sums(&self, queries: Matrix<'_, T>, sum_slopes: &mut Sums<'_, T>) {
        add_product(sum_slopes.products, T::one(), queries.transposed(), self.numerators);
        add_product(sum_slopes.keys, T::one(), queries.transposed(), self.totals);
    }
}

fn clear_above_diagonal<T: Real>(square: &mut [T], size: usize) {
    for (t, row) in square.chunks_exact_mut(size).take(size).enumerate() {
        row[t + 1..].fill(T::zero());
    }
}
