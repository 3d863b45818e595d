//! Sums without decay: S = Σ_r k_r v_rᵀ and z = Σ_r k_r; per query the numerator Sᵀq and the total z·q, over r ≤ t or all r.
//!
//! Causal sums go in chunks: inside of a chunk all pairs at once, before it through the sums so far.

use super::matrix::{Matrix, add_product, set_product};
use crate::mechanism::Order;
use crate::number::Real;
use std::ops::Range;

/// Tokens per chunk, as in `gated_sum`.
const CHUNK: usize = 64;

/// The sequence that the sums run over; queries and keys are features already.
#[derive(Clone, Copy)]
pub(crate) struct LinearSum<'a, T> {
    pub(crate) key_width: usize,
    pub(crate) value_width: usize,
    pub(crate) order: Order,
    pub(crate) query: &'a [T],
    pub(crate) key: &'a [T],
    pub(crate) value: &'a [T],
}

/// S, row by row, then z.
pub(crate) struct Sums<'a, T> {
    pub(crate) products: &'a mut [T],
    pub(crate) keys: &'a mut [T],
}

/// Derivatives in what the sums run over; `backward` adds to them.
pub(crate) struct LinearSlopes<'a, T> {
    pub(crate) query: &'a mut [T],
    pub(crate) key: &'a mut [T],
    pub(crate) value: &'a mut [T],
}

impl<'a, T: Real> LinearSum<'a, T> {
    fn length(&self) -> usize {
        self.query.len() / self.key_width
    }

    fn chunks(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator {
        let length = self.length();
        (0..length.div_ceil(CHUNK)).map(move |index| index * CHUNK..((index + 1) * CHUNK).min(length))
    }

    fn queries(&self, rows: &Range<usize>) -> Matrix<'a, T> {
        Matrix::new(&self.query[rows.start * self.key_width..], rows.len(), self.key_width)
    }

    fn keys(&self, rows: &Range<usize>) -> Matrix<'a, T> {
        Matrix::new(&self.key[rows.start * self.key_width..], rows.len(), self.key_width)
    }

    fn values(&self, rows: &Range<usize>) -> Matrix<'a, T> {
        Matrix::new(&self.value[rows.start * self.value_width..], rows.len(), self.value_width)
    }

    /// The products of the queries and keys of a chunk, zero above the diagonal.
    fn weights(&self, rows: &Range<usize>, weights: &mut [T]) {
        set_product(weights, T::one(), self.queries(rows), self.keys(rows).transposed());
        clear_above_diagonal(weights, rows.len());
    }

    /// Takes a range of tokens into the sums.
    fn absorb(&self, rows: &Range<usize>, sums: &mut Sums<'_, T>) {
        add_product(sums.products, T::one(), self.keys(rows).transposed(), self.values(rows));
        for key in
            self.key[rows.start * self.key_width..rows.end * self.key_width].chunks_exact(self.key_width)
        {
            sums.keys.iter_mut().zip(key).for_each(|(sum, &k)| *sum += k);
        }
    }

    /// Writes numerators and totals and moves the sums behind the last token; returns the sums before every chunk (in
    /// whole order: after the last), for `backward`.
    pub(crate) fn forward(&self, sums: &mut Sums<'_, T>, numerators: &mut [T], totals: &mut [T]) -> Vec<T> {
        let (keys, values) = (self.key_width, self.value_width);
        let mut borders = Vec::new();
        let keep = |sums: &Sums<'_, T>, borders: &mut Vec<T>| {
            borders.extend_from_slice(sums.products);
            borders.extend_from_slice(sums.keys);
        };
        match self.order {
            Order::Whole => {
                let all = 0..self.length();
                self.absorb(&all, sums);
                set_product(
                    numerators,
                    T::one(),
                    self.queries(&all),
                    Matrix::new(sums.products, keys, values),
                );
                set_product(totals, T::one(), self.queries(&all), Matrix::new(sums.keys, keys, 1));
                keep(sums, &mut borders);
            }
            Order::Causal => {
                borders.reserve_exact(self.length().div_ceil(CHUNK) * keys * (values + 1));
                let mut weights = vec![T::zero(); CHUNK * CHUNK];
                for rows in self.chunks() {
                    let size = rows.len();
                    let numerators = &mut numerators[rows.start * values..rows.end * values];
                    let totals = &mut totals[rows.clone()];
                    self.weights(&rows, &mut weights);
                    let queries = self.queries(&rows);
                    set_product(numerators, T::one(), Matrix::new(&weights, size, size), self.values(&rows));
                    add_product(numerators, T::one(), queries, Matrix::new(sums.products, keys, values));
                    set_product(totals, T::one(), queries, Matrix::new(sums.keys, keys, 1));
                    for (total, weights) in totals.iter_mut().zip(weights.chunks_exact(size)) {
                        *total = weights.iter().fold(*total, |sum, &weight| sum + weight);
                    }
                    keep(sums, &mut borders);
                    self.absorb(&rows, sums);
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
        slopes: &mut LinearSlopes<'_, T>,
    ) {
        let (keys, values) = (self.key_width, self.value_width);
        match self.order {
            Order::Whole => {
                let all = 0..self.length();
                self.read_backward(&all, borders, numerator_slopes, total_slopes, slopes.query);
                self.hand_back(&all, numerator_slopes, total_slopes, sum_slopes);
                self.absorb_backward(&all, sum_slopes, slopes);
            }
            Order::Causal => {
                let mut weights = vec![T::zero(); CHUNK * CHUNK];
                let mut weight_slopes = vec![T::zero(); CHUNK * CHUNK];
                for (index, rows) in self.chunks().enumerate().rev() {
                    let size = rows.len();
                    let before = &borders[index * keys * (values + 1)..(index + 1) * keys * (values + 1)];
                    let output_slopes = Matrix::new(&numerator_slopes[rows.start * values..], size, values);
                    self.absorb_backward(&rows, sum_slopes, slopes);

                    self.weights(&rows, &mut weights);
                    add_product(
                        &mut slopes.value[rows.start * values..],
                        T::one(),
                        Matrix::new(&weights, size, size).transposed(),
                        output_slopes,
                    );
                    set_product(&mut weight_slopes, T::one(), output_slopes, self.values(&rows).transposed());
                    for (row, &slope) in weight_slopes.chunks_exact_mut(size).zip(&total_slopes[rows.clone()])
                    {
                        row.iter_mut().for_each(|x| *x += slope);
                    }
                    clear_above_diagonal(&mut weight_slopes, size);
                    let weight_slopes = Matrix::new(&weight_slopes, size, size);
                    add_product(
                        &mut slopes.query[rows.start * keys..],
                        T::one(),
                        weight_slopes,
                        self.keys(&rows),
                    );
                    add_product(
                        &mut slopes.key[rows.start * keys..],
                        T::one(),
                        weight_slopes.transposed(),
                        self.queries(&rows),
                    );

                    self.read_backward(&rows, before, numerator_slopes, total_slopes, slopes.query);
                    self.hand_back(&rows, numerator_slopes, total_slopes, sum_slopes);
                }
            }
        }
    }

    /// From numerators and totals read off these sums to the queries.
    fn read_backward(
        &self,
        rows: &Range<usize>,
        sums: &[T],
        numerator_slopes: &[T],
        total_slopes: &[T],
        query_slopes: &mut [T],
    ) {
        let (keys, values, size) = (self.key_width, self.value_width, rows.len());
        let (products, key_sums) = sums.split_at(keys * values);
        let query_slopes = &mut query_slopes[rows.start * keys..];
        add_product(
            query_slopes,
            T::one(),
            Matrix::new(&numerator_slopes[rows.start * values..], size, values),
            Matrix::new(products, keys, values).transposed(),
        );
        add_product(
            query_slopes,
            T::one(),
            Matrix::new(&total_slopes[rows.start..], size, 1),
            Matrix::new(key_sums, 1, keys),
        );
    }

    /// From numerators and totals to the sums that they were read off.
    fn hand_back(
        &self,
        rows: &Range<usize>,
        numerator_slopes: &[T],
        total_slopes: &[T],
        sum_slopes: &mut Sums<'_, T>,
    ) {
        let queries = self.queries(rows).transposed();
        add_product(
            sum_slopes.products,
            T::one(),
            queries,
            Matrix::new(&numerator_slopes[rows.start * self.value_width..], rows.len(), self.value_width),
        );
        add_product(
            sum_slopes.keys,
            T::one(),
            queries,
            Matrix::new(&total_slopes[rows.start..], rows.len(), 1),
        );
    }

    /// From the sums to the tokens that went into them.
    fn absorb_backward(
        &self,
        rows: &Range<usize>,
        sum_slopes: &Sums<'_, T>,
        slopes: &mut LinearSlopes<'_, T>,
    ) {
        let (keys, values) = (self.key_width, self.value_width);
        let products = Matrix::new(sum_slopes.products, keys, values);
        let key_slopes = &mut slopes.key[rows.start * keys..rows.end * keys];
        add_product(key_slopes, T::one(), self.values(rows), products.transposed());
        for key in key_slopes.chunks_exact_mut(keys) {
            key.iter_mut().zip(&*sum_slopes.keys).for_each(|(slope, &x)| *slope += x);
        }
        add_product(&mut slopes.value[rows.start * values..], T::one(), self.keys(rows), products);
    }
}

fn clear_above_diagonal<T: Real>(square: &mut [T], size: usize) {
    for (t, row) in square.chunks_exact_mut(size).take(size).enumerate() {
        row[t + 1..].fill(T::zero());
    }
}
